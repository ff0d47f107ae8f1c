//! Protocol machines: bytes and a time in; events, bytes and a deadline out.
//!
//! Deliberately absent: sockets, clocks, threads, configuration, and the standard library itself.
#![no_std]
extern crate alloc;

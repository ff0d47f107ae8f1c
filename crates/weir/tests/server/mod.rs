//! Backends and clients of the program's tests.

#![allow(dead_code, reason = "each test file uses what it needs")]

pub mod backend;
pub mod counting;
pub mod crowd;

//! Where the system has no more memory, what must not fail comes out of the reserve, and buffers
//! that may fail do.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use net::memory::{self, Allocator};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const SMALL: usize = 32 * 1024;
const LARGE: usize = 256 * 1024;
/// Memory that the process may take in addition to its own, in bytes.
const MORE: u64 = 1024 * 1024;
/// More than that and what the allocator has mapped for the thread, which are 64 MB.
const PIECES_MAX: usize = 400;

fn address_space() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn what_must_not_fail_comes_out_of_the_reserve_and_buffers_fail() {
    memory::hold_reserve();
    assert!(!memory::is_short() && memory::try_with_capacity(LARGE).is_ok());
    let before = getrlimit(Resource::As);
    let current = Some(address_space() + MORE);
    setrlimit(Resource::As, Rlimit { current, ..before }).unwrap();
    let mut pieces = Vec::with_capacity(PIECES_MAX);
    while !memory::is_short() && pieces.len() < PIECES_MAX {
        pieces.push(Vec::<u8>::with_capacity(LARGE));
    }
    let (short, large) = (memory::is_short(), memory::try_with_capacity(LARGE));
    let small = memory::try_with_capacity(SMALL);
    setrlimit(Resource::As, before).unwrap();
    assert!(short && large.is_err() && small.is_ok(), "{}", pieces.len());
    memory::hold_reserve();
    assert!(!memory::is_short() && memory::try_with_capacity(LARGE).is_ok());
}

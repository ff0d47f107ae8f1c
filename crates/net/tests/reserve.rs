//! When the system is out of memory, small allocations use the reserve, and large buffers fail.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use net::memory::{self, Allocator};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const SMALL: usize = 32 * 1024;
const LARGE: usize = 256 * 1024;
/// Address space that the process may use in addition to its own, in bytes.
const MORE: u64 = 1024 * 1024;
/// Enough to use that up, and the 64 MB that the allocator has mapped for the thread.
const PIECES_MAX: usize = 400;

fn address_space() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn small_allocations_use_the_reserve_and_large_buffers_fail() {
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

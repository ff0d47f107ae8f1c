//! What this process uses of the system.

use std::time::Duration;

use crate::process;

/// What the system has given this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessUsage {
    /// CPU time of the program and of the kernel on its behalf.
    pub user: Duration,
    pub system: Duration,
    /// Bytes of memory that are in use.
    pub memory: u64,
    /// Open descriptors; `None`: the system does not say how many in one call.
    pub descriptors: Option<u64>,
    /// The limit of open descriptors, if there is one.
    pub descriptors_max: Option<u64>,
}

impl ProcessUsage {
    /// What it uses now: five system calls.
    pub fn now() -> Self {
        let (user, system) = cpu();
        let descriptors = std::fs::metadata("/proc/self/fd").ok().map(|fds| fds.len());
        Self {
            user,
            system,
            memory: memory("/proc/self/statm").unwrap_or(0),
            descriptors: descriptors.filter(|open| *open > 0),
            descriptors_max: process::open_files_limit().0,
        }
    }
}

fn cpu() -> (Duration, Duration) {
    // SAFETY: all-zero bytes are a valid value of this struct of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place for the result, and nothing keeps the pointer.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let time = |time: libc::timeval| {
        Duration::new(time.tv_sec.max(0) as u64, time.tv_usec.max(0) as u32 * 1000)
    };
    (time(usage.ru_utime), time(usage.ru_stime))
}

/// Bytes of memory that a process of the same user has in use; `None`: it has ended.
pub fn process_memory(pid: u64) -> Option<u64> {
    memory(&format!("/proc/{pid}/statm"))
}

fn memory(statm: &str) -> Option<u64> {
    let pages = std::fs::read_to_string(statm).ok()?;
    let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    // SAFETY: the call takes no pointers.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page_bytes).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_uses_something() {
        let usage = ProcessUsage::now();
        assert!(usage.memory > 100_000, "{usage:?}");
        assert!(usage.descriptors.is_none_or(|open| open >= 3), "{usage:?}");
    }
}

//! System calls of each row, counted in an extra turn whose other figures are not used.
//!
//! perf(1) counts them cheaply, but only for root. Without it the counts are missing.

use std::collections::BTreeMap;
use std::path::Path;

use super::subject::RunningSubject;
use crate::profile::PerfProcess;
use crate::record::{ALL_CALLS, CallsRecord};

/// The calls that perf counts by name: those that servers make for requests.
const CALLS: [&str; 21] = [
    "accept4",
    "bind",
    "close",
    "connect",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_wait",
    "newfstat",
    "io_uring_enter",
    "newfstatat",
    "openat",
    "pread64",
    "read",
    "readv",
    "recvfrom",
    "sendfile64",
    "sendto",
    "setsockopt",
    "socket",
    "write",
    "writev",
];
const ALL: &str = "raw_syscalls:sys_enter";

/// The calls of each subject, as long as `goes_on`; subjects whose calls cannot be counted are left
/// out.
pub(super) fn count(
    subjects: &mut [RunningSubject],
    goes_on: impl Fn() -> bool,
) -> Vec<CallsRecord> {
    subjects.sort_by_key(|running| (running.subject.program, running.subject.row));
    let record = |running: &mut RunningSubject| {
        let per_request = of_turn(running)?;
        let (program, row) = (running.subject.program, running.subject.row);
        Some(CallsRecord { program, row, per_request })
    };
    subjects.iter_mut().take_while(|_| goes_on()).filter_map(record).collect()
}

fn of_turn(running: &mut RunningSubject) -> Option<BTreeMap<String, f64>> {
    let perf = attach(running.pid?)?;
    // Without the pause, counts would be too low.
    PerfProcess::wait_for_begin();
    let turn = running.generator.turn();
    let output = perf.stop().ok()?;
    let calls = read(&String::from_utf8_lossy(&output.stderr));
    let requests = turn.ok()?.requests as f64;
    (!calls.is_empty())
        .then(|| calls.into_iter().map(|(name, count)| (name, count / requests)).collect())
}

fn attach(pid: u32) -> Option<PerfProcess> {
    // Which calls exist depends on the processor's architecture.
    let is_known = |call: &&&str| {
        Path::new("/sys/kernel/tracing/events/syscalls").join(format!("sys_enter_{call}")).exists()
    };
    let calls = CALLS.iter().filter(is_known).map(|call| format!("syscalls:sys_enter_{call}"));
    let events: Vec<String> = std::iter::once(ALL.to_owned()).chain(calls).collect();
    PerfProcess::attach(pid, &["stat", "-x,", "-e", &events.join(",")]).ok()
}

/// The counts by the names of calls, and the count of all calls as `all`, from lines such as
/// `12345,,syscalls:sys_enter_read,...`.
fn read(csv: &str) -> BTreeMap<String, f64> {
    let line = |line: &str| {
        let mut fields = line.split(',');
        let count: f64 = fields.next()?.parse().ok()?;
        let name = match fields.nth(1)? {
            ALL => ALL_CALLS,
            event => event.strip_prefix("syscalls:sys_enter_")?,
        };
        (count > 0.0).then(|| (name.to_owned(), count))
    };
    csv.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_are_read() {
        let csv = "# started on Mon\n\n50,,raw_syscalls:sys_enter,50,100.00,,\n\
                   20,,syscalls:sys_enter_read,1,100.00,,\n0,,syscalls:sys_enter_write,1,1,,\n\
                   <not supported>,,syscalls:sys_enter_bind,0,0,,\n";
        let calls = super::read(csv);
        assert_eq!((calls["all"], calls["read"], calls.len()), (50.0, 20.0, 2));
        assert!(super::read("Error: no permission").is_empty());
    }
}

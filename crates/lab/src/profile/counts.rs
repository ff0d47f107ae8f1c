//! Events that `perf stat` counts.

use std::collections::BTreeMap;
use std::path::Path;

/// An event per request, with its name and format in tables.
pub(crate) struct CountedEvent {
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
    pub(crate) text: fn(f64) -> String,
}

/// The events of a profile. Locks are the kernel's.
pub(crate) const COUNTED: [CountedEvent; 7] = [
    CountedEvent { key: "instructions", name: "instructions", text: |count| format!("{count:.0}") },
    CountedEvent { key: "cycles", name: "cycles", text: |count| format!("{count:.0}") },
    CountedEvent { key: "cache-misses", name: "cache misses", text: |count| format!("{count:.1}") },
    CountedEvent {
        key: "branch-misses",
        name: "branch misses",
        text: |count| format!("{count:.1}"),
    },
    CountedEvent { key: FUTEX, name: "futex calls", text: |count| format!("{count:.4}") },
    CountedEvent { key: LOCK_WAITS, name: "waits for locks", text: |count| format!("{count:.4}") },
    CountedEvent { key: LOCK_WAIT_US, name: "waiting for locks", text: |us| format!("{us:.3} us") },
];

pub(super) const FUTEX: &str = "futex";
pub(super) const LOCK_WAITS: &str = "lock-waits";
pub(super) const LOCK_WAIT_US: &str = "lock-wait-us";

const HARDWARE: [&str; 4] = ["instructions", "cycles", "cache-misses", "branch-misses"];
const FUTEX_EVENT: &str = "syscalls:sys_enter_futex";
const TRACING: &str = "/sys/kernel/tracing/events";

/// The events that perf knows here; a machine may be unable to count some of them.
pub(super) fn events() -> String {
    // An unknown tracepoint would make perf refuse them all.
    let traced = Path::new(TRACING).join(FUTEX_EVENT.replace(':', "/")).exists();
    HARDWARE.into_iter().chain(traced.then_some(FUTEX_EVENT)).collect::<Vec<_>>().join(",")
}

/// The counts by key, from lines such as `12345,,instructions,...`. Those of a processor with two
/// kinds of cores (`cpu_core/instructions/`) are added up.
pub(crate) fn read(csv: &str) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    for line in csv.lines() {
        let mut fields = line.split(',');
        let Some(count) = fields.next().and_then(|count| count.parse::<f64>().ok()) else {
            continue;
        };
        let event = fields.nth(1).unwrap_or_default();
        let hardware = HARDWARE.into_iter().find(|key| event.contains(key));
        let key = hardware.or((event == FUTEX_EVENT).then_some(FUTEX));
        if let Some(key) = key.filter(|_| count.is_finite() && count >= 0.0) {
            *counts.entry(key.to_owned()).or_default() += count;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_are_read() {
        let csv = "# started\n\n10,,cpu_core/instructions/,1,100.00,,\n\
                   5,,cpu_atom/instructions/,1,,\n\
                   7,,cache-misses:u,1,1,,\n0,,syscalls:sys_enter_futex,1,100.00,,\n\
                   <not supported>,,cycles,0,100.00,,\n3,,page-faults,1,,\n";
        let counts = super::read(csv);
        let expected = [("cache-misses", 7.0), ("futex", 0.0), ("instructions", 15.0)];
        assert_eq!(counts, expected.map(|(key, count)| (key.to_owned(), count)).into());
        assert!(super::read("Error: no permission\ninf,,cycles\n-1,,cycles\n").is_empty());
    }
}

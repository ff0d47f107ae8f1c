//! Counters, by address and in total.
//!
//! Every thread has its own counters, so counting costs a store. Only the number of requests in
//! progress is shared, because its maximum cannot be computed otherwise.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// One past the highest status.
pub(super) const STATUS_END: usize = 600;

/// Counters other than those of replies by status, which have the numbers from 100 on.
#[derive(Clone, Copy)]
pub(super) enum Count {
    /// Connections accepted.
    Accepted,
    /// Connections closed.
    Closed,
    /// Requests whose heads were received; datagrams.
    Requests,
    /// Bytes of request bodies; all received bytes of echo connections.
    Received,
    /// Bytes sent, including heads.
    Sent,
}

/// The counters of one thread at one address. Only that thread writes them.
#[repr(align(64))]
pub(super) struct ThreadCounters([AtomicU64; STATUS_END]);

impl ThreadCounters {
    fn new() -> Self {
        Self([const { AtomicU64::new(0) }; STATUS_END])
    }

    pub(super) fn add(&self, what: Count, more: u64) {
        self.set(what as usize, |now| now + more);
    }

    /// Decreases a counter by one.
    pub(super) fn take_back(&self, what: Count) {
        self.set(what as usize, |now| now.wrapping_sub(1));
    }

    pub(super) fn add_status(&self, status: u16) {
        self.set(usize::from(status), |now| now + 1);
    }

    fn set(&self, index: usize, change: impl Fn(u64) -> u64) {
        let cell = &self.0[index];
        cell.store(change(cell.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}

/// A current number and its maximum.
#[derive(Default)]
pub(super) struct Gauge {
    now: AtomicU64,
    highest: AtomicU64,
}

impl Gauge {
    /// Adds one. Returns the new number.
    pub(super) fn rise(&self) -> u64 {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        if now > self.highest.load(Ordering::Relaxed) {
            self.highest.fetch_max(now, Ordering::Relaxed);
        }
        now
    }

    /// Subtracts one.
    pub(super) fn fall(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn reset(&self) {
        self.highest.store(self.now.load(Ordering::SeqCst), Ordering::Relaxed);
    }
}

/// Everything about one address.
pub(super) struct Port {
    /// The address as a URL.
    pub(super) name: String,
    /// Requests in progress.
    pub(super) level: Gauge,
    threads: Vec<ThreadCounters>,
    /// The counters at the last reset.
    before: Mutex<Vec<u64>>,
}

impl Port {
    /// The counters of an address that `threads` threads serve.
    pub(super) fn new(name: String, threads: usize) -> Self {
        let threads = (0..threads).map(|_| ThreadCounters::new()).collect();
        Self { name, level: Gauge::default(), threads, before: Mutex::new(vec![0; STATUS_END]) }
    }

    pub(super) fn counts(&self, thread: usize) -> &ThreadCounters {
        &self.threads[thread]
    }

    fn reset(&self) {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = self.sums();
        self.level.reset();
    }

    fn sums(&self) -> Vec<u64> {
        let sum = |index: usize| {
            let of = |counts: &ThreadCounters| counts.0[index].load(Ordering::Relaxed);
            self.threads.iter().map(of).fold(0, u64::wrapping_add)
        };
        (0..STATUS_END).map(sum).collect()
    }

    fn summary(&self) -> StatsSummary {
        let sums = self.sums();
        let open = sums[Count::Accepted as usize].wrapping_sub(sums[Count::Closed as usize]);
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let since = sums.iter().zip(before.iter()).map(|(now, then)| now.wrapping_sub(*then));
        StatsSummary::new(since.collect(), open, &self.level)
    }
}

#[derive(Default)]
pub(super) struct Stats {
    pub(super) ports: Vec<Port>,
    /// Requests in progress at all of them.
    pub(super) level: Gauge,
}

impl Stats {
    /// Resets the counters, except those of open connections and requests in progress.
    pub(super) fn reset(&self) {
        self.ports.iter().for_each(Port::reset);
        self.level.reset();
    }

    /// The total, and the addresses by name.
    pub(super) fn json(&self) -> String {
        let mut json = String::from("{");
        self.total().write(&mut json);
        json.push_str(",\"ports\":{");
        for (port, index) in self.ports.iter().zip(0..) {
            let comma = if index == 0 { "" } else { "," };
            // Rust's quoting of paths is close enough to that of JSON.
            let _ = write!(json, "{comma}\n{:?}:{{", port.name);
            port.summary().write(&mut json);
            json.push('}');
        }
        json.push_str("}}\n");
        json
    }

    pub(super) fn text(&self) -> String {
        let total = self.total();
        let mut text = format!(
            "{} requests on {} connections, at most {} at once, {} bytes sent",
            total.of(Count::Requests),
            total.of(Count::Accepted),
            total.highest,
            total.of(Count::Sent)
        );
        for (status, count) in total.statuses() {
            let _ = write!(text, "; {status}: {count}");
        }
        text
    }

    fn total(&self) -> StatsSummary {
        let mut total = StatsSummary::new(vec![0; STATUS_END], 0, &self.level);
        for port in self.ports.iter().map(Port::summary) {
            total.open += port.open;
            total.sums.iter_mut().zip(port.sums).for_each(|(sum, more)| *sum += more);
        }
        total
    }
}

struct StatsSummary {
    sums: Vec<u64>,
    open: u64,
    in_progress: u64,
    highest: u64,
}

impl StatsSummary {
    fn new(sums: Vec<u64>, open: u64, level: &Gauge) -> Self {
        let in_progress = level.now.load(Ordering::SeqCst);
        Self { sums, open, in_progress, highest: level.highest.load(Ordering::Relaxed) }
    }

    fn of(&self, what: Count) -> u64 {
        self.sums[what as usize]
    }

    fn statuses(&self) -> impl Iterator<Item = (usize, u64)> {
        let all = self.sums.iter().copied().enumerate();
        all.filter(|(status, count)| *status >= 100 && *count > 0)
    }

    fn write(&self, json: &mut String) {
        let statuses: Vec<_> =
            self.statuses().map(|(status, count)| format!("\"{status}\":{count}")).collect();
        let _ = write!(
            json,
            "\"accepted\":{},\"open\":{},\"requests\":{},\"in_progress\":{},\"highest\":{},\
             \"bytes_received\":{},\"bytes_sent\":{},\"statuses\":{{{}}}",
            self.of(Count::Accepted),
            self.open,
            self.of(Count::Requests),
            self.in_progress,
            self.highest,
            self.of(Count::Received),
            self.of(Count::Sent),
            statuses.join(",")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> Stats {
        let ports = ["http://a:1", "http://a:2"].map(|name| Port::new(name.into(), 2));
        Stats { ports: ports.into(), ..Stats::default() }
    }

    #[test]
    fn threads_and_ports_are_added_up() {
        let stats = stats();
        for (port, thread) in [(0, 0), (0, 1), (1, 1)] {
            let counts = stats.ports[port].counts(thread);
            counts.add(Count::Requests, 1);
            counts.add(Count::Sent, 100);
            counts.add_status(200);
            stats.level.rise();
        }
        let json = stats.json();
        let total = "{\"accepted\":0,\"open\":0,\"requests\":3,\"in_progress\":3,\"highest\":3,\
                     \"bytes_received\":0,\"bytes_sent\":300,\"statuses\":{\"200\":3},\"ports\":";
        assert!(json.starts_with(total), "{json}");
        assert!(
            json.contains("\"http://a:1\":{\"accepted\":0,\"open\":0,\"requests\":2"),
            "{json}"
        );
        let text = "3 requests on 0 connections, at most 3 at once, 300 bytes sent; 200: 3";
        assert_eq!(stats.text(), text);
    }

    #[test]
    fn a_reset_keeps_open_connections_counted() {
        let stats = stats();
        let counts = stats.ports[0].counts(0);
        counts.add(Count::Accepted, 3);
        counts.add(Count::Closed, 1);
        for level in [&stats.level, &stats.ports[0].level] {
            assert_eq!((level.rise(), level.rise()), (1, 2));
            level.fall();
        }
        stats.reset();
        counts.add(Count::Closed, 1);
        let expected = "{\"accepted\":0,\"open\":1,\"requests\":0,\"in_progress\":1,\"highest\":1,";
        assert!(stats.json().starts_with(expected), "{}", stats.json());
    }
}

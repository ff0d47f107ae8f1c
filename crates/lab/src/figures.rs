//! The figures of a turn, and how tables name and format them.

use serde::{Deserialize, Serialize};

use crate::distribution::LatencyCounts;

/// The figures of a turn.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct MeasuredRun {
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    pub(crate) errors: u64,
    pub(crate) rate: f64,
    pub(crate) mean_us: f64,
    pub(crate) p50_us: f64,
    #[serde(default)]
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    #[serde(default)]
    pub(crate) p9999_us: f64,
    pub(crate) max_us: f64,
    /// Old records have none.
    #[serde(rename = "latency_us", default, skip_serializing_if = "LatencyCounts::is_empty")]
    pub(crate) latencies: LatencyCounts,
    /// CPU time of the server's processes per request.
    pub(crate) cpu_us: f64,
    /// The shares of it in user space and in the kernel.
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
    /// The average number of processors that the server used.
    pub(crate) busy: f64,
    /// The memory of the server's processes.
    pub(crate) memory_bytes: f64,
    /// The memory that the server gained with its idle connections, for each of them.
    #[serde(default)]
    pub(crate) idle_memory_bytes: f64,
    /// Context switches per request.
    pub(crate) switches: f64,
    /// The share of time that the generator's busiest thread was on a processor.
    pub(crate) generator_busy: f64,
    /// CPU time of the generator per request.
    #[serde(default)]
    pub(crate) generator_us: f64,
    /// The share of the machine's time that other virtual machines took (steal).
    pub(crate) stolen: f64,
    /// The share of the machine's time that processes outside the study took.
    pub(crate) others: f64,
    /// Traffic per second on the server's network interfaces; on loopback addresses, the traffic
    /// between all parts.
    pub(crate) packets_in: f64,
    pub(crate) packets_out: f64,
    pub(crate) bytes_in: f64,
    pub(crate) bytes_out: f64,
    /// TCP sockets of the server's host in the middle of the turn, outside TIME_WAIT and in it; on
    /// loopback addresses, the sockets of all parts.
    pub(crate) sockets: usize,
    pub(crate) time_wait: usize,
    /// The established ones among them.
    #[serde(default)]
    pub(crate) established: usize,
    /// Bytes of a reply with its head, as the generator received them.
    #[serde(default)]
    pub(crate) reply_bytes: f64,
    /// The share of the time of the server's processors that went to softirqs.
    #[serde(default)]
    pub(crate) softirq: f64,
    /// Time for which the server could run but waited for a processor, per request.
    #[serde(default)]
    pub(crate) run_delay_us: f64,
}

/// A figure, with its name and format in tables.
#[derive(Clone, Copy)]
pub(crate) struct StudyMeasure {
    /// Its name in the columns of a study.
    pub(crate) key: &'static str,
    /// Its name in tables.
    pub(crate) name: &'static str,
    pub(crate) of: fn(&MeasuredRun) -> f64,
    pub(crate) text: fn(f64) -> String,
}

/// Requests per second.
pub(crate) const RATE: StudyMeasure =
    StudyMeasure { key: "rate", name: "requests/s", of: |run| run.rate, text: whole };
/// CPU time per request.
pub(crate) const CPU: StudyMeasure =
    StudyMeasure { key: "cpu", name: "CPU/request", of: |run| run.cpu_us, text: microseconds };
pub(crate) const P50: StudyMeasure =
    StudyMeasure { key: "p50", name: "p50", of: |run| run.p50_us, text: latency };
pub(crate) const P99: StudyMeasure =
    StudyMeasure { key: "p99", name: "p99", of: |run| run.p99_us, text: latency };
pub(crate) const P999: StudyMeasure =
    StudyMeasure { key: "p999", name: "p99.9", of: |run| run.p999_us, text: latency };
pub(crate) const MAX: StudyMeasure =
    StudyMeasure { key: "max", name: "max", of: |run| run.max_us, text: latency };

const MEASURES: &[StudyMeasure] = &[
    RATE,
    CPU,
    StudyMeasure { key: "mean", name: "mean", of: |run| run.mean_us, text: latency },
    P50,
    StudyMeasure { key: "p90", name: "p90", of: |run| run.p90_us, text: latency },
    P99,
    P999,
    StudyMeasure { key: "p9999", name: "p99.99", of: |run| run.p9999_us, text: latency },
    MAX,
    StudyMeasure { key: "user", name: "user/request", of: |run| run.user_us, text: microseconds },
    StudyMeasure {
        key: "system",
        name: "system/request",
        of: |run| run.system_us,
        text: microseconds,
    },
    StudyMeasure { key: "busy", name: "%CPU", of: |run| run.busy * 100.0, text: whole },
    StudyMeasure { key: "errors", name: "errors", of: |run| run.errors as f64, text: whole },
    StudyMeasure {
        key: "memory",
        name: "memory",
        of: |run| run.memory_bytes / 1e6,
        text: |megabytes| format!("{megabytes:.1} MB"),
    },
    StudyMeasure {
        key: "idle-memory",
        name: "bytes/idle connection",
        of: |run| run.idle_memory_bytes,
        text: some_whole,
    },
    StudyMeasure {
        key: "generator-cpu",
        name: "generator CPU/request",
        of: |run| run.generator_us,
        text: microseconds,
    },
    StudyMeasure {
        key: "switches",
        name: "switches/request",
        of: |run| run.switches,
        text: |switches| format!("{switches:.2}"),
    },
    StudyMeasure { key: "packets-in", name: "packets/s in", of: |run| run.packets_in, text: whole },
    StudyMeasure {
        key: "packets-out",
        name: "packets/s out",
        of: |run| run.packets_out,
        text: whole,
    },
    StudyMeasure { key: "bytes-in", name: "bytes/s in", of: |run| run.bytes_in, text: whole },
    StudyMeasure { key: "bytes-out", name: "bytes/s out", of: |run| run.bytes_out, text: whole },
    StudyMeasure { key: "sockets", name: "sockets", of: |run| run.sockets as f64, text: whole },
    StudyMeasure {
        key: "time-wait",
        name: "TIME_WAIT",
        of: |run| run.time_wait as f64,
        text: whole,
    },
    StudyMeasure {
        key: "established",
        name: "ESTABLISHED",
        of: |run| run.established as f64,
        text: whole,
    },
    StudyMeasure {
        key: "reply-bytes",
        name: "bytes/reply",
        of: |run| run.reply_bytes,
        text: whole,
    },
    StudyMeasure {
        key: "softirq",
        name: "softirq",
        of: |run| run.softirq * 100.0,
        text: |percent| format!("{percent:.1} %"),
    },
    StudyMeasure {
        key: "run-delay",
        name: "run delay/request",
        of: |run| run.run_delay_us,
        text: microseconds,
    },
];

/// Figures that may be 0, so that they have no ratios.
const COUNTS: [&str; 8] = [
    "errors",
    "sockets",
    "established",
    "time-wait",
    "switches",
    "idle-memory",
    "softirq",
    "run-delay",
];

/// The columns of a study that lists none.
const USUAL: [&str; 6] = ["rate", "rate effect", "cpu", "cpu effect", "p99", "found"];

/// The content of a column.
#[derive(Clone, Copy)]
pub(crate) enum StudyColumn {
    Level(StudyMeasure),
    Effect(StudyMeasure),
    /// The effect compared with the first row, also where `compared_with` names another.
    Overall(StudyMeasure),
    /// The finding of the study's source.
    Found,
}

/// The columns of these names; the usual ones if there are no names.
pub(crate) fn columns(names: &[String]) -> Vec<StudyColumn> {
    match names {
        [] => USUAL.iter().filter_map(|name| column(name)).collect(),
        names => names.iter().filter_map(|name| column(name)).collect(),
    }
}

/// The column of a name: `rate`, `rate effect`, `rate overall`, `found`.
pub(crate) fn column(name: &str) -> Option<StudyColumn> {
    let measure = |key: &str| MEASURES.iter().copied().find(|measure| measure.key == key);
    // Figures that may be 0 have no ratio.
    let ratio = |key: &str| measure(key).filter(|_| !COUNTS.contains(&key));
    match name.split_once(' ') {
        None if name == "found" => Some(StudyColumn::Found),
        None => measure(name).map(StudyColumn::Level),
        Some((key, "effect")) => ratio(key).map(StudyColumn::Effect),
        Some((key, "overall")) => ratio(key).map(StudyColumn::Overall),
        Some(_) => None,
    }
}

/// The names allowed in `columns`, as an error message.
pub(crate) fn column_names() -> String {
    let keys = MEASURES.iter().map(|measure| measure.key).collect::<Vec<_>>().join(", ");
    let counts = COUNTS.join(", ");
    let ratios = format!("alone or (not {counts}) with \" effect\" or \" overall\"");
    format!("it must be found, or one of {keys}, {ratios}")
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

/// The same; 0 is no figure.
fn some_whole(number: f64) -> String {
    if number == 0.0 { "-".to_owned() } else { whole(number) }
}

fn microseconds(us: f64) -> String {
    format!("{us:.2} us")
}

fn latency(us: f64) -> String {
    // Some generators print no percentiles.
    if us == 0.0 { "-".to_owned() } else { format!("{:.2} ms", us / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_levels_effects_or_findings() {
        assert!(matches!(column("rate"), Some(StudyColumn::Level(_))));
        assert!(matches!(column("rate effect"), Some(StudyColumn::Effect(_))));
        assert!(matches!(column("reply-bytes overall"), Some(StudyColumn::Overall(_))));
        assert!(matches!(column("found"), Some(StudyColumn::Found)));
        for name in ["found effect", "rate total", "established effect", "errors overall", "x"] {
            assert!(column(name).is_none(), "{name}");
        }
    }
}

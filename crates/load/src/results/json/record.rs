//! The fields of the files, in their order.
//!
//! Derived values (rates, percentiles) are written for other readers of the file, and not read
//! back. Unknown fields are ignored.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use super::super::compare::turns::{Effects, effects};
use super::super::histogram::histogram;
use super::super::statuses::CLASSES;
use super::super::{
    AgreedTls, BackgroundStats, ComparedSide, Errors, IdleStats, Judged, LoadKind, Moment, Results,
    RunStats, SlowStats, Spread, StatusCounts, TlsStats, TurnBlock, Turns,
};

/// The field `format` of a run.
const FORMAT: &str = "weir load 1";
/// The field `format` of two servers that took turns.
const FORMAT_OF_TURNS: &str = "weir load against 1";

/// The largest count: readers of JSON use doubles, in which every whole number up to here is exact.
pub(super) const COUNT_MAX: u64 = 1 << 53;

#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct RunRecord<'r> {
    #[serde(deserialize_with = "format")]
    format: Cow<'static, str>,
    urls: Cow<'r, [String]>,
    threads: u64,
    connections: u64,
    duration_s: Option<f64>,
    pace: LoadKind,
    began_unix_ms: u64,
    elapsed_s: f64,
    interrupted: bool,
    busiest_thread: f64,
    cpu_s: f64,
    replies: u64,
    #[serde(skip_deserializing)]
    replies_per_s: f64,
    bytes: u64,
    statuses: [u64; CLASSES],
    /// Older files lack it.
    #[serde(default)]
    status_codes: BTreeMap<u16, u64>,
    unsent: u64,
    errors: Errors,
    latency_us: HistogramRecord,
    lateness_us: HistogramRecord,
    thread_rate: HistogramRecord,
    seconds: Cow<'r, [Moment]>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    tls: Option<TlsRecord<'r>>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    idle: Option<IdleStats>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    slow: Option<SlowStats>,
    #[serde(skip_deserializing, skip_serializing_if = "<[_]>::is_empty")]
    expectations: &'r [Judged],
}

/// Refuses files with other fields, whatever is wrong with these.
fn format<'de, D: Deserializer<'de>>(file: D) -> Result<Cow<'static, str>, D::Error> {
    match String::deserialize(file)? {
        format if format == FORMAT => Ok(FORMAT.into()),
        format if format == FORMAT_OF_TURNS => Err(D::Error::custom(format!(
            "the format is \"{format}\": this file already contains a comparison, in .effect"
        ))),
        format => {
            Err(D::Error::custom(format!("the format is \"{format}\", expected \"{FORMAT}\"")))
        }
    }
}

#[derive(Serialize, Deserialize)]
struct HistogramRecord {
    #[serde(flatten, skip_deserializing)]
    summary: HistogramSummary,
    counts: Vec<(u64, u64)>,
}

#[derive(Default, Serialize)]
struct HistogramSummary {
    mean: f64,
    stdev: f64,
    p50: u64,
    p75: u64,
    p90: u64,
    p99: u64,
    #[serde(rename = "p99.9")]
    p99_9: u64,
    #[serde(rename = "p99.99")]
    p99_99: u64,
    max: u64,
}

#[derive(Serialize)]
struct TlsRecord<'r> {
    agreed: &'r [AgreedTls],
    connect_us: HistogramRecord,
}

#[derive(Serialize)]
pub(super) struct TurnsRecord<'r> {
    format: &'static str,
    turn_s: f64,
    a: RunRecord<'r>,
    b: RunRecord<'r>,
    effect: Effects,
    turns: Vec<TurnFields<'r>>,
}

#[derive(Serialize)]
struct TurnFields<'r> {
    server: ComparedSide,
    block: usize,
    replies_per_s: f64,
    #[serde(flatten)]
    moment: &'r Moment,
}

/// A turn of `--on-demand`.
#[derive(Serialize)]
pub(super) struct OrderedTurn<'r> {
    /// Replies per second while every connection was at work.
    pub steady_replies_per_s: f64,
    pub run: RunRecord<'r>,
}

impl<'r> From<&'r Results> for RunRecord<'r> {
    fn from(run: &'r Results) -> Self {
        let tally = &run.tally;
        Self {
            format: FORMAT.into(),
            urls: (&run.urls).into(),
            threads: run.threads,
            connections: run.connections,
            duration_s: run.duration.map(|time| time.as_secs_f64()),
            pace: run.pace,
            began_unix_ms: run.began_unix_ms,
            elapsed_s: run.elapsed.as_secs_f64(),
            interrupted: run.interrupted,
            busiest_thread: run.busiest_thread,
            cpu_s: run.cpu.as_secs_f64(),
            replies: tally.replies,
            replies_per_s: run.replies_per_second(),
            bytes: tally.bytes,
            statuses: tally.statuses.classes(),
            status_codes: tally.statuses.codes().iter().copied().collect(),
            unsent: tally.unsent,
            errors: tally.errors,
            latency_us: (&tally.latency_us).into(),
            lateness_us: (&tally.lateness_us).into(),
            thread_rate: (&tally.rate).into(),
            seconds: (&run.seconds).into(),
            tls: (!tally.tls.agreed.is_empty()).then(|| (&tally.tls).into()),
            idle: Some(tally.background.idle).filter(|idle| idle.connections > 0),
            slow: Some(tally.background.slow).filter(|slow| slow.connections > 0),
            expectations: &run.judged,
        }
    }
}

impl TryFrom<RunRecord<'_>> for Results {
    type Error = String;

    fn try_from(run: RunRecord<'_>) -> Result<Self, String> {
        run.check_counts()?;
        Ok(Self {
            threads: run.threads,
            connections: run.connections,
            duration: run.duration_s.map(|time| duration("duration_s", time)).transpose()?,
            pace: run.pace,
            began_unix_ms: run.began_unix_ms,
            elapsed: duration("elapsed_s", run.elapsed_s)?,
            tally: RunStats {
                replies: run.replies,
                bytes: run.bytes,
                statuses: run.status_counts()?,
                latency_us: run.latency_us.histogram("latency_us")?,
                rate: run.thread_rate.histogram("thread_rate")?,
                lateness_us: run.lateness_us.histogram("lateness_us")?,
                unsent: run.unsent,
                errors: run.errors,
                tls: TlsStats::default(),
                background: BackgroundStats::default(),
            },
            cpu: duration("cpu_s", run.cpu_s)?,
            busiest_thread: run.busiest_thread,
            interrupted: run.interrupted,
            judged: Vec::new(),
            urls: run.urls.into_owned(),
            seconds: run.seconds.into_owned(),
        })
    }
}

fn duration(field: &str, seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{field}: {error}"))
}

impl RunRecord<'_> {
    /// Checks that sums of the counts cannot overflow.
    fn check_counts(&self) -> Result<(), String> {
        let errors = self.errors.named().map(|(_, count)| count);
        let seconds = self.seconds.iter().flat_map(|second| [second.replies, second.errors]);
        let mut counts = [self.replies, self.bytes, self.unsent]
            .into_iter()
            .chain(self.statuses)
            .chain(self.status_codes.values().copied())
            .chain(errors)
            .chain(seconds);
        match counts.find(|count| *count > COUNT_MAX) {
            Some(count) => Err(format!("the count {count} is too large")),
            None => Ok(()),
        }
    }

    /// The statuses by code; the rest, of files without codes, by class.
    fn status_counts(&self) -> Result<StatusCounts, String> {
        let mut statuses = StatusCounts::default();
        for (&status, &count) in &self.status_codes {
            if !(1..=999).contains(&status) {
                return Err(format!("status_codes: {status} is not a status"));
            }
            statuses.add(status, count);
        }
        for ((class, all), known) in (0..).zip(self.statuses).zip(statuses.classes()) {
            let rest = all.checked_sub(known);
            let rest = rest.ok_or("status_codes: more responses than in statuses")?;
            statuses.add_class(class, rest);
        }
        Ok(statuses)
    }
}

impl From<&Histogram<u64>> for HistogramRecord {
    fn from(histogram: &Histogram<u64>) -> Self {
        let Spread { mean, stdev, .. } = Spread::of(histogram);
        let at = |quantile| histogram.value_at_quantile(quantile);
        let summary = HistogramSummary {
            mean,
            stdev,
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: histogram.max(),
        };
        let counts = histogram.iter_recorded();
        let counts = counts.map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        Self { summary, counts }
    }
}

impl HistogramRecord {
    fn histogram(&self, field: &str) -> Result<Histogram<u64>, String> {
        let mut histogram = histogram();
        for &(value, count) in &self.counts {
            if count == 0 || histogram.len().saturating_add(count) > COUNT_MAX {
                return Err(format!("{field}: invalid count {count}"));
            }
            histogram.record_n(value, count).map_err(|error| format!("{field}: {error}"))?;
        }
        Ok(histogram)
    }
}

impl<'r> From<&'r TlsStats> for TlsRecord<'r> {
    fn from(tls: &'r TlsStats) -> Self {
        Self { agreed: &tls.agreed, connect_us: (&tls.connect_us).into() }
    }
}

impl<'r> From<&'r Turns> for TurnsRecord<'r> {
    fn from(turns: &'r Turns) -> Self {
        let [a, b] = turns.sides.each_ref().map(RunRecord::from);
        let blocks = turns.blocks.iter().zip(1..);
        let of_block = |(block, n): (&'r TurnBlock, usize)| {
            block.turns.iter().map(move |turn| TurnFields {
                server: turn.side,
                block: n,
                replies_per_s: turn.rate,
                moment: &turn.moment,
            })
        };
        Self {
            format: FORMAT_OF_TURNS,
            turn_s: turns.turn.as_secs_f64(),
            a,
            b,
            effect: effects(turns),
            turns: blocks.flat_map(of_block).collect(),
        }
    }
}

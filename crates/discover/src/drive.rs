//! Runs sources, each part on a thread, and the core, which sends what it decides to the server.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::backoff::{Backoff, seed};
use crate::core::{Core, CoreSettings, CoreStep};
use crate::metrics_page::MetricsPage;
use crate::sources::Source;
use crate::wanted::WantedGroups;
use crate::weir_api::WeirApi;

/// The first and the longest wait after a source failed.
const SOURCE_BACKOFF_MS: (u64, u64) = (200, 10_000);
/// Reports of sources that wait; a source waits for room.
const REPORTS_MAX: usize = 16;
/// How often the page of metrics is renewed.
const METRICS_EACH_MS: u64 = 1000;
/// How long `--once` waits for source and server.
const ONCE_MAX_MS: u64 = 60_000;

/// What a part of the source told.
struct SourceReport {
    part: usize,
    told: Result<WantedGroups, String>,
}

pub struct Drive {
    pub api: WeirApi,
    pub empty_after_ms: Option<u64>,
    pub metrics: Option<MetricsPage>,
    /// Whether to end as soon as the server has all lists.
    pub is_once: bool,
    /// Takes the lines of the log.
    pub log: fn(&str),
}

impl Drive {
    /// Runs until the process ends, or with `is_once` until the server has all lists.
    pub fn run(mut self, sources: Vec<Box<dyn Source>>) -> Result<(), String> {
        let settings = CoreSettings {
            empty_after_ms: self.empty_after_ms,
            run: format!("{:016x}", seed()),
            seed: seed(),
            parts: sources.len(),
        };
        let mut core = Core::new(settings);
        let (reports, reported) = sync_channel(REPORTS_MAX);
        for (part, source) in sources.into_iter().enumerate() {
            let reports = reports.clone();
            thread::spawn(move || watch(source, part, &reports));
        }
        let start = Instant::now();
        let mut metrics_due_ms = 0;
        loop {
            let now_ms = start.elapsed().as_millis() as u64;
            for SourceReport { part, told } in reported.try_iter() {
                core.source_told(part, told, now_ms);
            }
            if now_ms >= metrics_due_ms {
                metrics_due_ms = now_ms + METRICS_EACH_MS;
                self.metrics.iter().for_each(|page| page.set("discovery", core.metrics(now_ms)));
            }
            let step = core.next(now_ms);
            core.lines().iter().for_each(|line| (self.log)(line));
            match step {
                CoreStep::Probe => core.server_told(self.api.which(), now_ms),
                CoreStep::Put(put) => core.answered(&put.group, self.api.put(&put), now_ms),
                CoreStep::Release(group) => {
                    core.answered(&group, self.api.release(&group), now_ms);
                }
                CoreStep::Wait(until) => {
                    if self.is_once && core.is_settled() {
                        return ended(&core);
                    }
                    let until = until.min(metrics_due_ms);
                    let report = await_report(&reported, until.saturating_sub(now_ms));
                    if let Some(SourceReport { part, told }) = report {
                        core.source_told(part, told, start.elapsed().as_millis() as u64);
                    }
                }
            }
            if self.is_once && now_ms > ONCE_MAX_MS {
                return Err("the lists were not sent in time".to_owned());
            }
        }
    }
}

fn ended(core: &Core) -> Result<(), String> {
    core.is_good().then_some(()).ok_or_else(|| "the server did not take all lists".to_owned())
}

fn await_report(reported: &Receiver<SourceReport>, most_ms: u64) -> Option<SourceReport> {
    let most = Duration::from_millis(most_ms);
    match reported.recv_timeout(most) {
        Ok(report) => Some(report),
        Err(RecvTimeoutError::Timeout) => None,
        // No source is left; the lists stay.
        Err(RecvTimeoutError::Disconnected) => {
            thread::sleep(most);
            None
        }
    }
}

/// Watches a part of the source, again and again.
fn watch(mut source: Box<dyn Source>, part: usize, reports: &SyncSender<SourceReport>) {
    let (first, most) = SOURCE_BACKOFF_MS;
    let mut backoff = Backoff::new(first, most, seed());
    loop {
        let result = source.watch(&mut |wanted| {
            backoff.succeeded();
            let report = SourceReport { part, told: Ok(wanted) };
            reports.send(report).map_err(|_| String::new())
        });
        let told = result.map(|never| match never {});
        if reports.send(SourceReport { part, told }).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(backoff.failed()));
    }
}

/// Writes a line of the log.
pub fn tell(line: &str) {
    // There is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "weir-discover: {line}");
}

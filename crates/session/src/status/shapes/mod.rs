//! The shapes in which the program shows itself: Angie's `/status/`, which Weir's own pages extend,
//! and the API of NGINX Plus.

mod angie;
mod own;
mod plus;

use std::sync::Arc;

use conf::Subsystem;
use metrics::tree::{Items, TreeSource, Visitor, list, object};
use metrics::{Histogram, WorkerCounters, Workers};
use wire::date;

use super::{CacheOutcome, ShownCache, SubsystemStatus, published};
use crate::slabs::{ShownSlab, SlabUse};

pub use angie::angie;
pub use own::own;
pub use plus::plus;

/// How a tree is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// With what only Weir has.
    pub is_extended: bool,
    /// Times as seconds since 1970 instead of text.
    pub is_epoch: bool,
}

/// Tells a time, given in milliseconds since 1970.
fn time(out: &mut dyn Visitor, name: &[u8], unix_ms: u64, shape: Shape) {
    if shape.is_epoch {
        return out.number(name, unix_ms / 1000);
    }
    let mut text = date::iso8601((unix_ms / 1000) as i64, 0)[..19].to_vec();
    text.extend_from_slice(format!(".{:03}Z", unix_ms % 1000).as_bytes());
    out.text(name, &text);
}

/// Tells the counts of a histogram, and the sum in seconds.
fn histogram(out: &mut dyn Visitor, name: &[u8], times: Histogram<'_>) {
    if !out.open(name) {
        return;
    }
    list(out, b"counts", |out| times.counts().iter().for_each(|count| out.number(b"", *count)));
    out.float(b"sum", times.sum_ns() as f64 / 1e9);
    out.close();
}

/// The memory of zones, of both subsystems.
fn slabs() -> Items {
    let all = [published(Subsystem::Http), published(Subsystem::Stream)];
    let source = |slab: &ShownSlab| -> (Box<[u8]>, Arc<dyn TreeSource>) {
        let read = slab.clone();
        let source = move |out: &mut dyn Visitor| write_slab(out, &read.read());
        (slab.name.clone(), Arc::new(source))
    };
    Items::Named(all.iter().flat_map(|status| &status.slabs).map(source).collect())
}

fn write_slab(out: &mut dyn Visitor, memory: &SlabUse) {
    object(out, b"pages", |out| {
        out.number(b"used", memory.pages_used);
        out.number(b"free", memory.pages_free);
    });
    object(out, b"slots", |out| {
        for slot in &memory.slots {
            object(out, slot.bytes.to_string().as_bytes(), |out| {
                out.number(b"used", slot.used);
                out.number(b"free", slot.free);
            });
        }
    });
}

/// The mean in milliseconds; 0 without any.
fn mean_ms(times: Histogram<'_>) -> u64 {
    times.sum_ns().checked_div(times.count()).unwrap_or(0) / 1_000_000
}

/// The workers that count, by process and number.
fn counted_workers() -> Vec<WorkerCounters<'static>> {
    let all = Workers::metric().live_blocks().filter(|worker| worker.process().get() > 0);
    let mut all: Vec<_> = all.collect();
    all.sort_unstable_by_key(|worker| (worker.process().get(), worker.worker().get()));
    all
}

/// The caches of responses, in the shape that Angie and the API of NGINX Plus have in common.
fn caches(status: &SubsystemStatus, shape: Shape) -> Items {
    let source = |cache: &ShownCache| -> Arc<dyn TreeSource> {
        let cache = cache.clone();
        Arc::new(move |out: &mut dyn Visitor| cache_fields(out, &cache, shape))
    };
    Items::Named(status.caches.iter().map(|cache| (cache.name.clone(), source(cache))).collect())
}

fn cache_fields(out: &mut dyn Visitor, cache: &ShownCache, shape: Shape) {
    let (levels, totals) = ((cache.levels)(), cache.metric.totals());
    let all = totals.get();
    out.number(b"size", levels.size);
    if let Some(most) = levels.size_max {
        out.number(b"max_size", most);
    }
    out.flag(b"cold", levels.is_cold);
    if shape.is_extended {
        out.number(b"entries", levels.entries);
        out.number(b"max_entries", levels.entries_max);
        out.number(b"purge_rules", levels.purge_rules);
    }
    for outcome in CacheOutcome::ALL {
        object(out, outcome.name().as_bytes(), |out| {
            let at = outcome as usize;
            out.number(b"responses", all.responses().at(at).get());
            out.number(b"bytes", all.bytes().at(at).get());
            if outcome.is_fetched() {
                out.number(b"responses_written", all.responses_written().at(at).get());
                out.number(b"bytes_written", all.bytes_written().at(at).get());
            }
        });
    }
}

/// The text of a status.
fn status_text(status: u16) -> Vec<u8> {
    match status {
        0 => b"xxx".to_vec(),
        status => status.to_string().into_bytes(),
    }
}

//! Weir's own tree: Angie's, with what only Weir has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use conf::Subsystem;
use metrics::WorkerCounters;
use metrics::tree::{Items, StatusTree, TreeSource, Visitor, list, object};
use net::tls::HandshakeFault;
use net::{ProcessUsage, clock, process_memory};

use super::{Shape, angie, counted_workers, histogram};
use crate::status::{Program, ProgramFacts, ShowMore, ShownCertificate, ShownZone, published};

/// Weir's own tree. `address`: that of the server which answers.
pub fn own(address: &[u8], shape: Shape) -> StatusTree {
    let mut tree = StatusTree::default();
    tree.fields(&[b"weir"], program);
    tree.fields(&[b"process"], process);
    let shape = Shape { is_extended: true, ..shape };
    tree.sections.extend(angie(address, shape).sections);
    tree.fields(&[b"tls"], handshakes);
    tree.add(&[b"tls", b"certificates"], Items::List(certificates()));
    tree.add(&[b"workers"], Items::List(workers()));
    tree.add(&[b"processes"], Items::List(processes()));
    more().into_iter().for_each(|more| more(&mut tree));
    tree
}

/// What features add in any subsystem, once each.
fn more() -> Vec<ShowMore> {
    let mut all: Vec<ShowMore> = Vec::new();
    for status in [published(Subsystem::Http), published(Subsystem::Stream)] {
        for more in &status.more {
            if !all.iter().any(|known| std::ptr::fn_addr_eq(*known, *more)) {
                all.push(*more);
            }
        }
    }
    all
}

fn program(out: &mut dyn Visitor) {
    let facts = ProgramFacts::get();
    let totals = Program::metric().totals();
    let all = totals.get();
    out.text(b"version", facts.version.as_bytes());
    out.number(b"pid", std::process::id().into());
    out.number(b"generation", all.loaded().get());
    out.number(b"started_at", facts.started_ms);
    out.number(b"now_at", clock::unix_ms());
    let state: &[u8] = if facts.is_draining.load(Relaxed) { b"draining" } else { b"serving" };
    out.text(b"state", state);
    object(out, b"reloads", |out| {
        out.number(b"done", all.loaded().get().saturating_sub(1));
        out.number(b"failed", all.refused().get());
        let last_ms = all.loaded_ms().get().max(all.refused_ms().get());
        if all.loaded().get() > 1 || all.refused().get() > 0 {
            object(out, b"last", |out| {
                out.number(b"at", last_ms);
                let is_ok = all.loaded_ms().get() >= all.refused_ms().get();
                out.flag(b"ok", is_ok);
                let why = all.refusal().text();
                if !is_ok && !why.is_empty() {
                    out.text(b"message", &why);
                }
            });
        }
    });
}

/// Handshakes of all servers with a zone.
fn handshakes(out: &mut dyn Visitor) {
    let (mut done, mut resumed) = (0, 0);
    let mut failed = [0; HandshakeFault::ALL.len()];
    for status in [published(Subsystem::Http), published(Subsystem::Stream)] {
        for (_, zone) in status.servers.iter().flat_map(ShownZone::all) {
            let totals = zone.totals();
            let zone = totals.get();
            done += zone.handshakes().get();
            resumed += zone.reuses().get();
            let faults = zone.handshakes_failed().iter();
            failed.iter_mut().zip(faults).for_each(|(sum, count)| *sum += count);
        }
    }
    out.number(b"handshakes", done);
    out.number(b"resumed", resumed);
    object(out, b"failed", |out| {
        for (fault, count) in HandshakeFault::ALL.iter().zip(failed) {
            out.number(fault.name().as_bytes(), count);
        }
    });
}

fn certificates() -> Vec<Arc<dyn TreeSource>> {
    let mut all: Vec<ShownCertificate> = Vec::new();
    for status in [published(Subsystem::Http), published(Subsystem::Stream)] {
        let new = status.certificates.iter().filter(|shown| !all.contains(shown));
        let new: Vec<_> = new.cloned().collect();
        all.extend(new);
    }
    let source = |shown: ShownCertificate| -> Arc<dyn TreeSource> {
        Arc::new(move |out: &mut dyn Visitor| {
            out.text(b"file", &shown.file);
            list(out, b"names", |out| shown.names.iter().for_each(|name| out.text(b"", name)));
            out.number(b"not_after_at", (shown.not_after_s.max(0) as u64) * 1000);
        })
    };
    all.into_iter().map(source).collect()
}

fn process(out: &mut dyn Visitor) {
    let usage = ProcessUsage::now();
    out.float(b"cpu_user", usage.user.as_secs_f64());
    out.float(b"cpu_system", usage.system.as_secs_f64());
    out.number(b"memory", usage.memory);
    object(out, b"descriptors", |out| {
        if let Some(open) = usage.descriptors {
            out.number(b"open", open);
        }
        if let Some(limit) = usage.descriptors_max {
            out.number(b"limit", limit);
        }
    });
    out.number(b"lost_log_lines", observe::lost_log_lines());
}

fn workers() -> Vec<Arc<dyn TreeSource>> {
    let source = |worker: WorkerCounters<'static>| -> Arc<dyn TreeSource> {
        Arc::new(move |out: &mut dyn Visitor| {
            out.number(b"id", worker.worker().get());
            out.number(b"pid", worker.process().get());
            object(out, b"connections", |out| {
                out.number(b"accepted", worker.connections().total() + worker.refused().get());
                out.number(b"active", worker.connections().now());
            });
            object(out, b"requests", |out| out.number(b"total", worker.requests().total()));
            out.float(b"busy", worker.turns().sum_ns() as f64 / 1e9);
            out.number(b"tasks", worker.tasks().get());
            histogram(out, b"turns", worker.turns());
            out.float(b"longest_turn", worker.longest_turn().get() as f64 / 1e9);
        })
    };
    counted_workers().into_iter().map(source).collect()
}

/// The worker processes: while a reload passes from one to another, there are two.
fn processes() -> Vec<Arc<dyn TreeSource>> {
    let mut tasks: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for worker in counted_workers() {
        tasks.entry(worker.process().get()).or_default().push(worker.tasks().get());
    }
    let source = |(pid, tasks): (u64, Vec<u64>)| -> Arc<dyn TreeSource> {
        Arc::new(move |out: &mut dyn Visitor| {
            out.number(b"pid", pid);
            out.number(b"workers", tasks.len() as u64);
            out.number(b"tasks", tasks.iter().sum());
            if let Some(memory) = process_memory(pid) {
                out.number(b"memory", memory);
            }
        })
    };
    tasks.into_iter().map(source).collect()
}

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use conf::{MemoryFiles, Subsystem};
use net::Mailbox;
use session::ControlJob;
use session::keyval::{KeyvalOperation, KeyvalPair};

use zones::TwoProcesses;

use super::*;
use crate::config_origin::ConfigOrigin;
use crate::load;

type Calls = Rc<RefCell<Vec<String>>>;

struct ToyJob {
    name: &'static str,
    calls: Calls,
}

impl ToyJob {
    fn note(&self, what: &str) {
        self.calls.borrow_mut().push(format!("{} {what}", self.name));
    }
}

impl ControlJob<Sites> for ToyJob {
    fn adopt(&mut self, sites: &Sites, _: &Zones) {
        // The sites' own, and the one made here.
        let is_unused = |site: &Arc<_>| Arc::strong_count(site) == 2;
        assert!(sites.shared().iter().all(is_unused), "no worker has them yet");
        self.note("adopts");
    }

    fn leave(&mut self) {
        self.note("leaves");
    }

    fn finish(&mut self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.note("finishes");
        Box::pin(std::future::pending())
    }
}

fn toy_jobs(calls: &Calls) -> ControlJobs<Sites> {
    let job = |name| Box::new(ToyJob { name, calls: calls.clone() }) as Box<dyn ControlJob<Sites>>;
    ["first", "second"].map(job).into()
}

fn loaded(before: &Zones) -> LoadedConfig {
    loaded_from(before, "worker_processes 2; error_log stderr emerg; events {} http {} stream {}")
}

fn loaded_from(before: &Zones, text: &str) -> LoadedConfig {
    let mut files = MemoryFiles::default().with("/conf", text);
    let origin = ConfigOrigin { conf: b"/conf"[..].into(), ..ConfigOrigin::default() };
    load::load_quietly(before, &origin, &mut files).unwrap()
}

async fn wait_for(events: &mut Mailbox<Event>, is_it: impl Fn(&Event) -> bool) {
    while let Some(event) = events.next().await {
        if is_it(&event) {
            return;
        }
    }
}

#[test]
fn jobs_adopt_each_configuration_before_the_workers_and_leave_and_finish_once() {
    let calls = Calls::default();
    let note = |what: &str| calls.borrow_mut().push(what.to_owned());
    net::run(async {
        let (sender, mut events) = net::mailbox();
        note("start");
        let first = loaded(&Zones::default());
        let started = Control::with_jobs(toy_jobs(&calls), 1, first, &[], Vec::new(), &sender);
        let mut control = started.unwrap();
        note("reload");
        let next = loaded(control.zones());
        control.serve(2, next, &[], Vec::new()).unwrap();
        wait_for(&mut events, |event| matches!(event, Event::GenerationOver(1))).await;
        control.generation_over(1);
        note("quit");
        control.leave();
        control.leave();
        for is_last in [false, true] {
            wait_for(&mut events, |event| matches!(event, Event::WorkerLeft)).await;
            assert_eq!(control.worker_left(), is_last);
        }
        // The first job never finishes, so the process ends without the second.
        control.finish().await;
    })
    .unwrap();
    let expected = "start, first adopts, second adopts, reload, first adopts, second adopts, quit, \
                    first leaves, second leaves, first finishes";
    assert_eq!(calls.borrow().join(", "), expected);
}

/// A table of another size begins anew, and the generation before keeps its own.
#[test]
fn a_change_of_a_table_is_made_in_every_generation() {
    let of_size = |size: &str, before: &Zones| {
        let zone = format!("http {{ keyval_zone zone=z:{size}; keyval $uri $found zone=z; }}");
        let main = "worker_processes 1; error_log stderr emerg; events {}";
        loaded_from(before, &format!("{main} {zone}"))
    };
    net::run(async {
        let (sender, mut events) = net::mailbox();
        let first = of_size("32k", &Zones::default());
        let jobs = toy_jobs(&Calls::default());
        let started = Control::with_jobs(jobs, 1, first, &[], Vec::new(), &sender);
        let mut control = started.unwrap();
        for (number, size) in [(2, "32k"), (3, "64k")] {
            let next = of_size(size, control.zones());
            control.serve(number, next, &[], Vec::new()).unwrap();
        }
        let pair = KeyvalPair { key: (*b"a").into(), value: (*b"1").into(), deadline_ms: None };
        let change = WorkerChange::Keyval(KeyvalChange {
            subsystem: Subsystem::Http,
            zone: (*b"z").into(),
            operation: KeyvalOperation::Put(vec![pair]),
        });
        control.change(&change).unwrap();
        for (number, sites) in &control.sites {
            let table = sites.keyval_zone(Subsystem::Http, b"z").unwrap().table();
            let value = table.get(b"a", 0).map(|entry| entry.value.clone());
            assert_eq!(value.as_deref(), Some(&b"1"[..]), "in generation {number}");
        }
        assert_eq!(control.sites.len(), 3);
        control.leave();
        wait_for(&mut events, |event| matches!(event, Event::WorkerLeft)).await;
    })
    .unwrap();
}

/// docs/reload.md has a row for each kind of state, with its rule for two processes.
#[test]
fn each_kind_of_zone_is_in_the_document_on_reloads() {
    const ALL: &str = "events {}
        http {
            keyval_zone zone=k:1m;
            limit_req_zone $uri zone=r:1m rate=1r/s; limit_conn_zone $uri zone=c:1m;
            limit_upstream_zone l 1m; nodes valkey://127.0.0.1;
            proxy_cache_path cache keys_zone=p:1m;
            upstream a { zone z 1m; server 127.0.0.1:1 max_conns=1; queue 2; }
            upstream b { server 127.0.0.1:1; sticky learn create=$arg_a lookup=$arg_b zone=s:1m; }
            upstream d { server 127.0.0.1:1; limit_upstream_conn limit=1 zone=l; }
            server { listen 1; ssl_session_cache shared:t:1m; ssl_ocsp_cache shared:o:1m; }
        }";
    let document = std::fs::read_to_string("../../docs/reload.md").unwrap();
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    let loaded = loaded_from(&Zones::default(), ALL);
    let rules: Vec<_> = loaded.zones.rules().collect();
    for rule in &rules {
        let is_shared = rule.two_processes == TwoProcesses::Shared;
        for directive in rule.directives {
            let name = format!("`{directive}`");
            let row = rows.iter().find(|row| row.split('|').nth(1).unwrap().contains(&name));
            let row = row.unwrap_or_else(|| panic!("no row for {name}"));
            assert_eq!(row.contains("| shared: "), is_shared, "{row}");
            assert_eq!(row.contains("| each process "), !is_shared, "{row}");
        }
    }
    assert!(rules.len() >= 8, "{rules:?}");
}

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use zones::Zones;

use super::{WaitRefused, Waited, WaitingRequest};
use crate::testing::{FakeConnection, ask, group, lease, load, load_after, shared_key, short};
use crate::{Ask, Attempt, Group, Lease, LiveNodes, ServerChoice};

const NOW: u64 = 1_000_000;

fn at(now_ms: u64) -> Ask<'static> {
    Ask { now_ms, ..Ask::default() }
}

/// A request that finds the group busy and waits.
fn waiting(group: &Arc<Group>, attempt: &mut Attempt) -> WaitingRequest {
    assert!(matches!(group.choose(attempt, &at(NOW)), ServerChoice::Busy));
    group.wait(attempt, NOW).unwrap_or_else(|why| panic!("{why:?}"))
}

fn poll(waiting: &mut WaitingRequest, attempt: &mut Attempt, now_ms: u64) -> Poll<Waited> {
    waiting.poll(&mut Context::from_waker(Waker::noop()), attempt, now_ms)
}

fn granted(waited: Poll<Waited>) -> Lease {
    match waited {
        Poll::Ready(Waited::Server(lease)) => lease,
        other => panic!("{other:?}"),
    }
}

const QUEUE: &str = "queue 2 timeout=5s;";

#[test]
fn a_queue_serves_in_order_whatever_server_comes_free() {
    let group =
        group(&format!("{QUEUE} server 10.0.0.1 max_conns=1; server 10.0.0.2 max_conns=1;"));
    let mut leases: Vec<Lease> = (0..2).map(|_| lease(ask(&group, at(NOW)))).collect();
    let mut attempts = [Attempt::default(), Attempt::default(), Attempt::default()];
    let [first, second, third] = &mut attempts;
    let mut one = waiting(&group, first);
    let mut other = waiting(&group, second);
    assert!(matches!(group.choose(third, &at(NOW)), ServerChoice::Busy));
    assert_eq!(group.wait(third, NOW).err(), Some(WaitRefused::Full), "two may wait");
    assert!(poll(&mut one, first, NOW + 1).is_pending());
    let name = short(&leases.pop().unwrap());
    assert!(matches!(ask(&group, at(NOW)), ServerChoice::Busy), "it belongs to those that wait");
    assert!(poll(&mut other, second, NOW + 7).is_pending());
    let lease = granted(poll(&mut one, first, NOW + 7));
    assert_eq!(short(&lease), name);
    assert_eq!(lease.server().in_progress(), 1);
    let limit = group.limit().unwrap();
    assert_eq!((limit.timeout_ms(), limit.timeout_status()), (Some(5000), 502));
    assert!(other.give_up(second, NOW + 5000).is_none());
    let stats = limit.stats();
    assert_eq!((stats.in_progress, stats.waiting, stats.timed_out, stats.rejected), (2, 0, 1, 1));
    assert_eq!((stats.waited_ms, stats.waited_ms_max), (5007, 5000));
}

#[test]
fn a_request_that_leaves_frees_its_place() {
    let group = group(&format!("{QUEUE} server 10.0.0.1 max_conns=1;"));
    let held = lease(ask(&group, at(NOW)));
    let mut attempts = [Attempt::default(), Attempt::default()];
    let [first, second] = &mut attempts;
    let one = waiting(&group, first);
    let mut other = waiting(&group, second);
    drop(held);
    drop(one);
    let lease = granted(poll(&mut other, second, NOW));
    drop(lease);
    assert!(matches!(ask(&group, at(NOW)), ServerChoice::Server(_)));
    assert_eq!(group.servers()[0].in_progress(), 0);
}

#[test]
fn requests_stop_waiting_for_a_server_that_fails() {
    let servers = "server 10.0.0.1 max_conns=1; server 10.0.0.2 max_conns=1;";
    let group = group(&format!("{QUEUE} {servers}"));
    let mut leases: Vec<Lease> = (0..2).map(|_| lease(ask(&group, at(NOW)))).collect();
    let mut attempt = Attempt::default();
    let mut one = waiting(&group, &mut attempt);
    let mut failing = leases.remove(0);
    let failed = short(&failing);
    assert!(failing.failed(NOW).is_some());
    drop(failing);
    assert!(poll(&mut one, &mut attempt, NOW).is_pending());
    assert!(leases[0].failed(NOW).is_some());
    assert!(matches!(poll(&mut one, &mut attempt, NOW), Poll::Ready(Waited::None)));
    assert!(matches!(group.choose(&mut attempt, &at(NOW)), ServerChoice::None));
    assert_ne!(failed, short(&leases[0]));
}

#[test]
fn groups_of_a_zone_share_the_count() {
    let zone = "limit_upstream_conn zone=shared limit=2 backlog=1 timeout=3s;";
    let text = format!(
        "limit_upstream_zone shared 1m; \
         upstream limit_a {{ {zone} server 10.9.0.1; }} \
         upstream limit_b {{ {zone} server 10.9.0.1; }}"
    );
    let groups = crate::testing::load_all(&text).unwrap();
    let (a, b) = (&groups[0], &groups[1]);
    let _held = [lease(ask(a, at(NOW))), lease(ask(b, at(NOW)))];
    let mut attempts = [Attempt::default(), Attempt::default()];
    let [first, second] = &mut attempts;
    let mut one = waiting(b, first);
    assert!(matches!(a.choose(second, &at(NOW)), ServerChoice::Busy));
    assert_eq!(a.wait(second, NOW).err(), Some(WaitRefused::Full), "the backlog is the server's");
    assert_eq!(a.limit().unwrap().timeout_status(), 408);
    let [held, _other] = _held;
    drop(held);
    assert_eq!(granted(poll(&mut one, first, NOW)).name(), b"10.9.0.1:80");
}

#[test]
fn a_server_that_is_back_or_new_is_given_to_those_that_wait() {
    let servers = "server 10.0.0.1 max_conns=1 fail_timeout=1s; server 10.0.0.2 max_conns=1;";
    let resolved = "resolver 127.0.0.1; server name resolve max_conns=1;";
    let group = group(&format!("{QUEUE} {servers} {resolved}"));
    let mut leases: Vec<Lease> = (0..2).map(|_| lease(ask(&group, at(NOW)))).collect();
    let failed = leases.iter().position(|lease| short(lease) == "1").unwrap();
    let mut lease_of_one = leases.remove(failed);
    assert!(lease_of_one.failed(NOW).is_some());
    drop(lease_of_one);
    let mut attempts = [Attempt::default(), Attempt::default()];
    let [first, second] = &mut attempts;
    let mut one = waiting(&group, first);
    let mut other = waiting(&group, second);
    // Its time is over: the next request tries it and succeeds.
    let mut trial = lease(ask(&group, at(NOW + 1001)));
    assert_eq!(short(&trial), "1");
    trial.succeeded(NOW + 1001);
    assert!(poll(&mut one, first, NOW + 1001).is_pending());
    drop(trial);
    let held = granted(poll(&mut one, first, NOW + 1001));
    assert_eq!(short(&held), "1");
    let address = "10.0.0.3:80".parse().unwrap();
    let peer = crate::resolver::ResolvedPeer { backup: false, address, name: None, weight: 1 };
    group.found(2, &[peer]);
    assert_eq!(short(&granted(poll(&mut other, second, NOW + 1001))), "3");
}

#[test]
fn a_server_that_failed_after_the_grant_is_passed_on() {
    let group =
        group(&format!("{QUEUE} server 10.0.0.1 max_conns=1 down; server 10.0.0.2 max_conns=1;"));
    let held = lease(ask(&group, at(NOW)));
    let mut attempt = Attempt::default();
    let mut one = waiting(&group, &mut attempt);
    drop(held);
    group.servers()[1].set_healthy(false, NOW);
    assert!(matches!(poll(&mut one, &mut attempt, NOW), Poll::Ready(Waited::None)));
    assert_eq!(group.limit().unwrap().stats().in_progress, 0);
    assert_eq!(group.wait(&mut attempt, NOW).err(), Some(WaitRefused::NoServer));
}

#[test]
fn the_only_server_may_be_waited_for_again() {
    let group = group(&format!("{QUEUE} server 10.0.0.1 max_conns=1;"));
    let mut attempt = Attempt::default();
    // The state after a kept connection turned out to be closed.
    drop(lease(group.choose(&mut attempt, &at(NOW))));
    let held = lease(ask(&group, at(NOW)));
    let mut one = waiting(&group, &mut attempt);
    drop(held);
    assert_eq!(short(&granted(poll(&mut one, &mut attempt, NOW))), "1");
}

#[test]
fn a_server_has_the_smallest_of_its_maxima() {
    let groups = crate::testing::load_all(
        "limit_upstream_zone smallest 1m; \
         upstream smallest_a { server 10.8.0.1 max_conns=2; server 10.8.0.2; \
             limit_upstream_conn zone=smallest limit=5; } \
         upstream smallest_b { server 10.8.0.1; server 10.8.0.2; \
             limit_upstream_conn zone=smallest limit=4; }",
    )
    .unwrap();
    groups.iter().for_each(|group| group.apply_limits());
    for group in groups {
        let maxima = group.servers().into_iter().map(|server| {
            let limited = server.limited.as_ref().unwrap();
            limited.slots.max()
        });
        assert_eq!(maxima.collect::<Vec<_>>(), [2, 4]);
    }
}

#[test]
fn another_number_of_nodes_applies_at_once() {
    let groups = crate::testing::load_all(
        "limit_upstream_zone parts 1m; \
         upstream parts { server 10.6.0.1; limit_upstream_conn zone=parts limit=4/nodes; }",
    )
    .unwrap();
    let group = &groups[0];
    let nodes = group.limit().unwrap().nodes().unwrap();
    // The processes of a master count together.
    nodes.set(LiveNodes { processes: 4, masters: 2 });
    let mut held: Vec<Lease> = (0..2).map(|_| lease(ask(group, at(NOW)))).collect();
    let mut attempts = [Attempt::default(), Attempt::default()];
    let [first, second] = &mut attempts;
    let mut one = waiting(group, first);
    let mut other = waiting(group, second);
    assert!(poll(&mut one, first, NOW).is_pending());
    // One master is gone.
    nodes.set(LiveNodes { processes: 3, masters: 1 });
    held.extend([granted(poll(&mut one, first, NOW)), granted(poll(&mut other, second, NOW))]);
    assert!(matches!(ask(group, at(NOW)), ServerChoice::Busy));
    // Three have come: requests in progress go on, and none is admitted until enough have ended.
    nodes.set(LiveNodes { processes: 6, masters: 4 });
    let in_progress = || group.limit().unwrap().stats().in_progress;
    for left in [4, 3, 2, 1] {
        assert_eq!(in_progress(), left);
        assert!(matches!(ask(group, at(NOW)), ServerChoice::Busy), "{left} are in progress");
        held.pop();
    }
    assert!(matches!(ask(group, at(NOW)), ServerChoice::Server(_)));
}

#[test]
fn counts_outlive_a_configuration_and_limits_apply_on_adoption() {
    let text = |size: &str, limit: u32| {
        format!(
            "limit_upstream_zone same {size}; \
             upstream same {{ server 10.7.0.1; limit_upstream_conn zone=same limit={limit}; }} \
             upstream queued {{ server 10.7.0.1 max_conns={limit}; queue 1; }}"
        )
    };
    let (old, zones) = load_after(&Zones::default(), &text("1m", 1)).unwrap();
    let held = [lease(ask(&old[0], at(NOW))), lease(ask(&old[1], at(NOW)))];
    // The size does not matter. A queue and a zone of one name are separate.
    let (new, _) = load_after(&zones, &text("2m", 2)).unwrap();
    let in_progress = |group: &Group| group.limit().unwrap().stats().in_progress;
    assert_eq!([in_progress(&new[0]), in_progress(&new[1])], [1, 1]);
    assert!(matches!(ask(&new[0], at(NOW)), ServerChoice::Busy), "not in use yet");
    new.iter().for_each(|group| group.apply_limits());
    let _more = [lease(ask(&new[0], at(NOW))), lease(ask(&old[1], at(NOW)))];
    drop(held);
    assert_eq!([in_progress(&new[0]), in_progress(&new[1])], [1, 1]);
}

#[test]
fn the_slot_of_a_stream_goes_to_a_waiter_and_the_connection_stays() {
    let group = group(&format!("{QUEUE} server 10.0.0.1 max_conns=1;"));
    net::run(async {
        let held = lease(ask(&group, at(NOW)));
        let connection = FakeConnection::with_stream(9);
        group.pool().keep_shared(shared_key(1), connection.clone());
        let mut attempt = Attempt::default();
        let mut one = waiting(&group, &mut attempt);
        assert!(poll(&mut one, &mut attempt, NOW).is_pending());
        connection.end_stream();
        drop(held);
        let lease = granted(poll(&mut one, &mut attempt, NOW));
        assert_eq!(group.pool().take_shared(&shared_key(1)), Some(connection));
        assert!(matches!(ask(&group, at(NOW)), ServerChoice::Busy), "streams count as requests");
        drop(lease);
    })
    .unwrap();
}

#[test]
fn a_worker_that_gets_the_slot_of_a_stream_opens_a_connection() {
    let group = group(&format!("{QUEUE} server 10.0.0.1 max_conns=1;"));
    net::run(async {
        let held = lease(ask(&group, at(NOW)));
        group.pool().keep_shared(shared_key(1), FakeConnection::with_stream(9));
        let (joined, has_joined) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut attempt = Attempt::default();
                let mut one = waiting(&group, &mut attempt);
                let is_pending = poll(&mut one, &mut attempt, NOW).is_pending();
                joined.send(is_pending).unwrap();
                let lease = loop {
                    match poll(&mut one, &mut attempt, NOW) {
                        Poll::Pending => std::thread::yield_now(),
                        ready => break granted(ready),
                    }
                };
                let key = shared_key(1);
                let is_none = group.pool().take_shared::<FakeConnection>(&key).is_none();
                (short(&lease), is_none && !group.pool().has_any())
            });
            assert_eq!(has_joined.recv(), Ok(true));
            drop(held);
            assert_eq!(other.join().unwrap(), ("1".into(), true));
        });
        assert!(group.pool().has_any(), "the connection has not left its worker");
    })
    .unwrap();
}

#[test]
fn refusals() {
    let table = [
        ("queue 0;", "invalid value \"0\" in \"queue\" directive"),
        ("queue 1 timeout=x;", "invalid parameter \"timeout=x\""),
        ("limit_upstream_conn zone=z;", "\"limit_upstream_conn\" must have \"limit\" parameter"),
        ("limit_upstream_conn limit=1;", "\"limit_upstream_conn\" must have \"zone\" parameter"),
        ("limit_upstream_conn limit=0 zone=z;", "invalid limit \"limit=0\""),
        ("limit_upstream_conn limit=1 zone=z backlog=x;", "invalid backlog \"backlog=x\""),
        ("limit_upstream_conn limit=1 zone=z timeout=x;", "invalid timeout \"timeout=x\""),
        ("limit_upstream_conn limit=1 zone=z odd;", "invalid parameter \"odd\""),
        ("limit_upstream_log_level odd;", "invalid value \"odd\""),
    ];
    for (line, expected) in table {
        assert_eq!(load(&format!("server 10.0.0.1; {line}")).unwrap_err(), expected, "{line}");
    }
    let both = "server 10.0.0.1; queue 1; limit_upstream_conn limit=1 zone=z;";
    assert!(load(both).unwrap_err().contains("cannot be combined"));
}

/// Over threads: the limit is never exceeded, and all requests are served in the end.
#[test]
fn the_limit_is_exact_over_threads() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 300;
    let group = group("queue 100; server 10.0.0.1 max_conns=2; server 10.0.0.2 max_conns=1;");
    let limit = group.limit().unwrap();
    // Every thread has to wait at least once: no slot is free until all of them do.
    let held: Vec<Lease> = (0..3).map(|_| lease(ask(&group, at(NOW)))).collect();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let lease = served(&group);
                    let most = if short(&lease) == "1" { 2 } else { 1 };
                    assert!(lease.server().in_progress() <= most);
                    std::thread::yield_now();
                }
            });
        }
        while limit.stats().waiting < THREADS as u64 {
            std::thread::yield_now();
        }
        drop(held);
    });
    let stats = limit.stats();
    assert_eq!((stats.in_progress, stats.waiting, stats.rejected), (0, 0, 0));
    assert!(stats.queued >= THREADS as u64 && stats.queued == stats.granted, "{stats:?}");
}

fn served(group: &Arc<Group>) -> Lease {
    let mut attempt = Attempt::default();
    if let ServerChoice::Server(lease) = group.choose(&mut attempt, &at(NOW)) {
        return lease;
    }
    let mut waiting = group.wait(&mut attempt, NOW).unwrap_or_else(|why| panic!("{why:?}"));
    loop {
        match poll(&mut waiting, &mut attempt, NOW) {
            Poll::Ready(Waited::Server(lease)) => return lease,
            Poll::Ready(Waited::None) => panic!("no server failed"),
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

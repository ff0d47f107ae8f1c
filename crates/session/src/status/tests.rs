//! What zones count.

use metrics::Metric;
use net::tls::HandshakeFault;

use super::{SessionEnd, ZoneCounts};

#[test]
fn a_session_is_counted_by_its_status_and_time() {
    let zone = Metric::<ZoneCounts>::named(b"test\0by status and time");
    let end = |status: u16, time_ms: u64| {
        let own = zone.own();
        own.sessions().rise();
        let time_ns = time_ms * 1_000_000;
        own.end(SessionEnd { status, received: 10, sent: 100, time_ns, unix_ms: time_ms });
        own.sessions().fall();
    };
    for (status, time_ms) in [(200, 3), (200, 80), (404, 1), (299, 1), (0, 70_000)] {
        end(status, time_ms);
    }
    zone.own().sessions().rise();
    let totals = zone.totals();
    let all = totals.get();
    assert_eq!((all.sessions().total(), all.sessions().now()), (6, 1));
    assert_eq!((all.discarded().get(), all.received().get(), all.sent().get()), (1, 50, 500));
    assert_eq!(all.statuses().iter().collect::<Vec<_>>(), [(200, 2), (404, 1), (0, 1)]);
    let counts = all.time().counts();
    // Up to 1 ms, 5 ms, 100 ms, and above 60 s.
    assert_eq!((counts[3], counts[5], counts[10], counts[21]), (2, 1, 1, 1));
    assert_eq!((all.time().count(), all.time().sum_ns()), (5, 70_085_000_000));
    assert_eq!(all.last_ms().get(), 70_000);
}

#[test]
fn workers_count_apart_and_are_added_up() {
    let name = b"test\0workers";
    let count = || {
        let zone = Metric::<ZoneCounts>::named(name);
        for _ in 0..1000 {
            zone.own().sent().add(1);
        }
    };
    let zone = Metric::<ZoneCounts>::named(name);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(count);
        }
    });
    count();
    assert_eq!(zone.totals().get().sent().get(), 5000);
    // Those that have ended leave their blocks to later ones.
    std::thread::scope(|scope| {
        scope.spawn(count);
    });
    assert_eq!(zone.totals().get().sent().get(), 6000);
    assert!(zone.blocks().count() <= 5);
}

#[test]
fn counts_begin_anew_and_levels_stay() {
    let name = b"test\0begin anew";
    let zone = Metric::<ZoneCounts>::named(name);
    let count = || {
        let own = Metric::<ZoneCounts>::named(name).own();
        (0..3).for_each(|_| own.sessions().rise());
        own.sessions().fall();
        let time_ns = 1_000_000;
        own.end(SessionEnd { status: 200, received: 10, sent: 100, time_ns, unix_ms: 5 });
    };
    std::thread::scope(|scope| {
        // It goes on to count after the reset, in the same block.
        let (counted, is_counted) = std::sync::mpsc::channel();
        let (reset, is_reset) = std::sync::mpsc::channel();
        scope.spawn(move || {
            count();
            counted.send(()).unwrap();
            is_reset.recv().unwrap();
            count();
        });
        is_counted.recv().unwrap();
        zone.reset();
        let totals = zone.totals();
        let all = totals.get();
        assert_eq!((all.sessions().total(), all.sessions().now()), (2, 2), "those under way");
        assert_eq!((all.sent().get(), all.statuses().iter().count()), (0, 0));
        assert_eq!((all.time().count(), all.time().sum_ns(), all.last_ms().get()), (0, 0, 5));
        reset.send(()).unwrap();
    });
    let totals = zone.totals();
    let all = totals.get();
    assert_eq!((all.sessions().total(), all.sessions().now(), all.sent().get()), (5, 4, 100));
    assert_eq!(all.statuses().iter().collect::<Vec<_>>(), [(200, 1)]);
}

#[test]
fn handshakes_begin_anew_and_requests_stay() {
    let zone = Metric::<ZoneCounts>::named(b"the zone of handshakes");
    let count = || {
        let own = zone.own();
        own.sessions().rise();
        own.handshakes().add(3);
        own.reuses().add(2);
        own.handshake_failed(HandshakeFault::TimedOut);
        own.handshake_failed(HandshakeFault::Other);
    };
    let counted = || {
        let totals = zone.totals();
        let all = totals.get();
        let failed: u64 = all.handshakes_failed().iter().sum();
        [all.sessions().total(), all.handshakes().get(), all.reuses().get(), failed]
    };
    std::thread::scope(|scope| _ = scope.spawn(count));
    assert_eq!(counted(), [1, 3, 2, 2]);
    ZoneCounts::reset_handshakes(&zone);
    assert_eq!(counted(), [1, 0, 0, 0]);
    std::thread::scope(|scope| _ = scope.spawn(count));
    assert_eq!(counted(), [2, 3, 2, 2]);
}

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use net::Address;

use super::*;
use crate::testing::{FakeConnection, group, shared_key};

fn is_kept(meanwhile: impl FnOnce(UnixStream)) -> bool {
    let group = group("server 10.0.0.1; keepalive 2;");
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let key = PoolKey { to: group.servers()[0].address().clone(), origin: None };
    let opened_ms = clock::now_ms();
    let stream = OwnedFd::from(near).into();
    let handoff = Handoff { stream, key: key.clone(), requests: 1, opened_ms };
    meanwhile(far);
    handoff.keep(group.pool());
    group.pool().take(&key).is_some()
}

#[test]
fn an_idle_connection_is_closed_after_its_time() {
    let group = group("server 10.0.0.1; keepalive 2; keepalive_timeout 3s;");
    let key = PoolKey { to: group.servers()[0].address().clone(), origin: None };
    net::run(async {
        net::testing::stop_clock();
        for (idle_ms, is_open) in [(2900, true), (3600, false)] {
            let (near, mut far) = UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            far.set_nonblocking(true).unwrap();
            let stream = Stream::new(OwnedFd::from(near));
            group.pool().give_back(key.clone(), PooledConnection::new(stream));
            net::testing::advance(idle_ms).await;
            let read = far.read(&mut [0]);
            assert_eq!(read.is_err(), is_open, "{idle_ms}: {read:?}");
            assert_eq!(group.pool().take(&key).is_some(), is_open, "{idle_ms}");
        }
    })
    .unwrap();
}

#[test]
fn a_handed_over_connection_is_checked_before_use() {
    net::run(async {
        let mut open = Vec::new();
        assert!(is_kept(|far| open.push(far)));
        assert!(!is_kept(drop), "it was closed");
        assert!(!is_kept(|mut far| {
            far.write_all(b"x").unwrap();
            open.push(far);
        }));
    })
    .unwrap();
}

/// The key of a server's plain connections.
fn key(server: u8) -> PoolKey {
    PoolKey { to: Address::Ip(([10, 0, 0, server], 80).into()), origin: None }
}

/// A connection that has sent this many requests, and its other end.
fn connection(requests: u64) -> (PooledConnection, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let stream = Stream::new(OwnedFd::from(near));
    (PooledConnection { requests, ..PooledConnection::new(stream) }, far)
}

fn is_open(far: &mut UnixStream) -> bool {
    far.read(&mut [0]).is_err()
}

/// The connection that is taken, as the number of requests that it has sent.
fn taken(pool: &GroupPool, key: &PoolKey) -> Option<u64> {
    pool.take(key).map(|connection| connection.requests)
}

#[test]
fn the_youngest_connection_of_a_key_is_taken_first() {
    let group = group("server 10.0.0.1; keepalive 2;");
    let pool = group.pool();
    let protocol = PoolProtocol::Exclusive;
    let origin = PoolOrigin { from: None, secured: None, location: Some(1), protocol };
    let located = PoolKey { origin: Some(Arc::new(origin)), ..key(1) };
    net::run(async {
        let mut open = Vec::new();
        for (key, requests) in [(key(1), 1), (key(2), 2), (key(1), 3), (located.clone(), 4)] {
            let (connection, far) = connection(requests);
            open.push(far);
            pool.give_back(key, connection);
        }
        assert_eq!(taken(pool, &key(1)), Some(3));
        assert_eq!(taken(pool, &key(1)), Some(1));
        assert_eq!(taken(pool, &key(1)), None);
        assert_eq!(taken(pool, &located), Some(4));
        assert!(pool.has_any());
        assert_eq!(taken(pool, &key(2)), Some(2));
        assert!(!pool.has_any());
    })
    .unwrap();
}

#[test]
fn a_disturbed_connection_is_passed_over() {
    let group = group("server 10.0.0.1; keepalive 2;");
    net::run(async {
        let (quiet, _far) = connection(1);
        let (closed, far_of_closed) = connection(2);
        group.pool().give_back(key(1), quiet);
        group.pool().give_back(key(1), closed);
        drop(far_of_closed);
        assert_eq!(taken(group.pool(), &key(1)), Some(1));
        assert!(!group.pool().has_any());
    })
    .unwrap();
}

#[test]
fn of_all_servers_the_oldest_idle_connections_are_closed_first() {
    let group = group("server 10.0.0.1; server 10.0.0.2; keepalive 2;");
    net::run(async {
        net::testing::stop_clock();
        let mut far_ends = Vec::new();
        for server in [1, 2, 1, 1] {
            let (connection, far) = connection(0);
            far_ends.push(far);
            group.pool().give_back(key(server), connection);
            net::testing::advance(100).await;
        }
        let mut open = || far_ends.iter_mut().map(is_open).collect::<Vec<_>>();
        net::testing::advance(500).await;
        assert_eq!(open(), [true; 4], "young ones are not limited");
        net::testing::advance(1000).await;
        assert_eq!(open(), [false, false, true, true]);
    })
    .unwrap();
}

#[test]
fn closing_all_closes_those_of_every_key() {
    let group = group("server 10.0.0.1; keepalive 2;");
    net::run(async {
        let (one, mut far_of_one) = connection(0);
        let (other, mut far_of_other) = connection(0);
        group.pool().give_back(key(1), one);
        group.pool().give_back(key(2), other);
        assert!(is_open(&mut far_of_one) && is_open(&mut far_of_other));
        close_all();
        assert!(!is_open(&mut far_of_one) && !is_open(&mut far_of_other));
        assert!(!group.pool().has_any());
    })
    .unwrap();
}

#[test]
fn a_stream_is_opened_where_most_are_free() {
    let group = group("server 10.0.0.1; keepalive 2;");
    let pool = group.pool();
    net::run(async {
        let [full, older, younger] = [1, 3, 3].map(FakeConnection::with_stream);
        for connection in [&older, &full, &younger] {
            pool.keep_shared(shared_key(1), connection.clone());
        }
        older.open_stream();
        let taken = || pool.take_shared::<FakeConnection>(&shared_key(1));
        assert_eq!(taken().as_ref(), Some(&younger));
        younger.open_stream();
        assert_eq!(taken().as_ref(), Some(&younger), "of two alike, the younger");
        younger.open_stream();
        assert_eq!(taken().as_ref(), Some(&older));
        older.open_stream();
        assert_eq!(taken(), None, "another one is to be opened");
        full.end_stream();
        assert_eq!(taken().as_ref(), Some(&full));
        assert_eq!(pool.take_shared::<FakeConnection>(&shared_key(2)), None);
    })
    .unwrap();
}

#[test]
fn a_connection_serves_one_protocol() {
    let group = group("server 10.0.0.1; keepalive 2;");
    let pool = group.pool();
    net::run(async {
        let (one, _far) = connection(1);
        pool.give_back(key(1), one);
        pool.keep_shared(shared_key(1), FakeConnection::with_stream(2));
        assert!(pool.take(&shared_key(1)).is_none());
        assert_eq!(pool.take_shared::<FakeConnection>(&key(1)), None);
        assert_eq!(taken(pool, &key(1)), Some(1));
        assert!(pool.take_shared::<FakeConnection>(&shared_key(1)).is_some());
    })
    .unwrap();
}

#[test]
fn a_shared_connection_that_is_over_is_forgotten_when_seen() {
    let group = group("server 10.0.0.1; keepalive 2;");
    let pool = group.pool();
    net::run(async {
        net::testing::stop_clock();
        let [first, second] = [9, 2].map(FakeConnection::with_stream);
        pool.keep_shared(shared_key(1), first.clone());
        pool.keep_shared(shared_key(1), second.clone());
        first.set_over();
        assert_eq!(pool.take_shared(&shared_key(1)).as_ref(), Some(&second));
        assert_eq!([first.handles(), second.handles()], [1, 2]);
        second.set_over();
        net::testing::advance(ROUND_MS).await;
        assert_eq!(second.handles(), 1);
        assert!(!pool.has_any());
    })
    .unwrap();
}

#[test]
fn a_shared_connection_has_as_many_streams_as_keepalive_requests() {
    let group = group("server 10.0.0.1; keepalive 2; keepalive_requests 3;");
    let pool = group.pool();
    net::run(async {
        net::testing::stop_clock();
        let [taken, idle] = [9, 9].map(FakeConnection::with_stream);
        for (server, connection) in [(1, &taken), (2, &idle)] {
            pool.keep_shared(shared_key(server), connection.clone());
            for _ in 0..2 {
                let next = pool.take_shared::<FakeConnection>(&shared_key(server)).unwrap();
                next.open_stream();
            }
        }
        assert!(!taken.is_draining());
        assert_eq!(pool.take_shared::<FakeConnection>(&shared_key(1)), None);
        assert!(taken.is_draining() && !taken.is_closed());
        (0..3).for_each(|_| taken.end_stream());
        assert!(taken.is_closed());
        assert!(!idle.is_draining());
        net::testing::advance(ROUND_MS).await;
        assert!(idle.is_draining(), "although no request comes");
    })
    .unwrap();
}

#[test]
fn a_shared_connection_older_than_keepalive_time_has_no_more_streams() {
    let group = group("server 10.0.0.1; keepalive 2; keepalive_time 1100ms;");
    let pool = group.pool();
    net::run(async {
        net::testing::stop_clock();
        let one = FakeConnection::with_stream(9);
        pool.keep_shared(shared_key(1), one.clone());
        net::testing::advance(1100).await;
        assert_eq!(pool.take_shared(&shared_key(1)).as_ref(), Some(&one));
        net::testing::advance(1).await;
        assert_eq!(pool.take_shared::<FakeConnection>(&shared_key(1)), None);
        assert!(one.is_draining() && !one.is_closed());
    })
    .unwrap();
}

#[test]
fn a_shared_connection_idle_for_longer_than_keepalive_timeout_is_closed() {
    let group = group("server 10.0.0.1; keepalive 2; keepalive_timeout 3s;");
    let pool = group.pool();
    net::run(async {
        net::testing::stop_clock();
        let [busy, looked_at, idle] = [1, 9, 9].map(FakeConnection::with_stream);
        for (server, connection) in [(1, &busy), (2, &looked_at), (3, &idle)] {
            pool.keep_shared(shared_key(server), connection.clone());
        }
        net::testing::advance(100).await;
        looked_at.end_stream();
        idle.end_stream();
        net::testing::advance(2999).await;
        assert!(!looked_at.is_closed() && !idle.is_closed());
        net::testing::advance(1).await;
        assert_eq!(pool.take_shared::<FakeConnection>(&shared_key(2)), None);
        assert!(looked_at.is_closed() && !idle.is_closed(), "between two rounds");
        net::testing::advance(ROUND_MS).await;
        assert!(idle.is_closed() && !busy.is_draining());
    })
    .unwrap();
}

/// As many requests as the first connection will have streams for.
#[test]
fn requests_wait_for_a_connection_that_is_being_opened() {
    let group = group("server 10.0.0.1; keepalive 4;");
    let pool = group.pool();
    let join = || pool.join_opening(&shared_key(1));
    let ended = |wait: &mut OpeningWait| {
        std::pin::Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
    };
    net::run(async {
        assert!(join().is_none());
        let first = pool.begin_opening(&shared_key(1)).unwrap();
        assert!(pool.join_opening(&shared_key(2)).is_none());
        let mut waits: Vec<_> = std::iter::from_fn(join).take(200).collect();
        assert_eq!(waits.len(), 99);
        let second = pool.begin_opening(&shared_key(1)).unwrap();
        let mut other = join().unwrap();
        assert!(waits.iter_mut().all(|wait| ended(wait).is_pending()));
        first.succeed();
        assert!(waits.iter_mut().all(|wait| ended(wait) == Poll::Ready(true)));
        assert!(ended(&mut other).is_pending());
        drop(second);
        assert_eq!(ended(&mut other), Poll::Ready(false));
        assert!(join().is_none());
    })
    .unwrap();
}

#[test]
fn no_request_waits_for_a_connection_that_is_not_shared() {
    for lines in ["server 10.0.0.1; keepalive 0;", "server 10.0.0.1; keepalive_requests 1;"] {
        assert!(group(lines).pool().begin_opening(&shared_key(1)).is_none(), "{lines}");
    }
}

#[test]
fn without_a_pool_a_shared_connection_serves_one_request() {
    for lines in ["server 10.0.0.1; keepalive 0;", "server 10.0.0.1; keepalive_requests 1;"] {
        let group = group(lines);
        net::run(async {
            let one = FakeConnection::with_stream(9);
            group.pool().keep_shared(shared_key(1), one.clone());
            assert!(one.is_draining() && !one.is_closed(), "{lines}");
            assert_eq!(one.handles(), 1, "{lines}");
            assert_eq!(group.pool().take_shared::<FakeConnection>(&shared_key(1)), None);
        })
        .unwrap();
    }
}

#[test]
fn keepalive_bounds_idle_connections_of_both_kinds_together() {
    let group = group("server 10.0.0.1; keepalive 2;");
    let pool = group.pool();
    net::run(async {
        net::testing::stop_clock();
        let [busy, old, young] = [9, 9, 9].map(FakeConnection::with_stream);
        for shared in [&busy, &young, &old] {
            pool.keep_shared(shared_key(1), shared.clone());
        }
        let mut far_ends = Vec::new();
        for shared in [&old, &young] {
            let (exclusive, far) = connection(0);
            far_ends.push(far);
            pool.give_back(key(1), exclusive);
            net::testing::advance(100).await;
            shared.end_stream();
            net::testing::advance(100).await;
        }
        net::testing::advance(500).await;
        assert!(!old.is_closed() && is_open(&mut far_ends[0]), "young ones are not limited");
        net::testing::advance(1000).await;
        assert!(old.is_closed() && !is_open(&mut far_ends[0]));
        assert!(!young.is_closed() && is_open(&mut far_ends[1]));
        assert!(!busy.is_draining());
    })
    .unwrap();
}

#[test]
fn closing_all_lets_the_streams_of_shared_connections_end() {
    let group = group("server 10.0.0.1; keepalive 2;");
    net::run(async {
        let [busy, idle] = [9, 9].map(FakeConnection::with_stream);
        idle.end_stream();
        group.pool().keep_shared(shared_key(1), busy.clone());
        group.pool().keep_shared(shared_key(1), idle.clone());
        close_all();
        assert!(idle.is_closed() && !busy.is_closed());
        assert!(!group.pool().has_any());
        busy.end_stream();
        assert!(busy.is_closed());
    })
    .unwrap();
}

#[test]
fn shared_connections_have_a_limit() {
    let group = group("server 10.0.0.1; keepalive 2;");
    net::run(async {
        let connections: Vec<_> =
            (0..=SHARED_MAX).map(|_| FakeConnection::with_stream(9)).collect();
        for (connection, server) in connections.iter().zip([1, 2].into_iter().cycle()) {
            group.pool().keep_shared(shared_key(server), connection.clone());
        }
        let refused = connections.iter().position(FakeConnection::is_draining);
        assert_eq!(refused, Some(SHARED_MAX));
        close_all();
    })
    .unwrap();
}

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use net::Address;

use super::*;
use crate::testing::group;

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
fn what_one_who_is_waiting_is_given_is_looked_at_first() {
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

/// A connection that has sent as many requests, and its other end.
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

/// Which connection is taken, by the requests that it has sent.
fn taken(pool: &GroupPool, key: &PoolKey) -> Option<u64> {
    pool.take(key).map(|connection| connection.requests)
}

#[test]
fn the_youngest_connection_of_a_key_is_taken_first() {
    let group = group("server 10.0.0.1; keepalive 2;");
    let pool = group.pool();
    let origin = PoolOrigin { from: None, secured: None, location: Some(1) };
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

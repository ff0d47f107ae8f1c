//! How connections are shared out among the workers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use testing::{PeerConnection, Server};

#[test]
fn kept_connections_are_shared_out_evenly() {
    let server =
        Server::start("worker_processes 2;", "server { listen ADDRESS; return 200 hello; }");
    let mut connections: Vec<_> = (0..8).map(|_| PeerConnection::to(&server.address)).collect();
    connections.iter_mut().for_each(ask);
    let counts = connections_by_worker(server.worker_process(), server.address.port());
    assert_eq!(counts, [4, 4]);
}

/// How many connections to a port each worker waits for, by its epoll set.
fn connections_by_worker(process: i32, port: u16) -> Vec<usize> {
    let connections = established(process, port);
    let mut sets = BTreeSet::new();
    for entry in std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        if target.to_string_lossy() != "anon_inode:[eventpoll]" {
            continue;
        }
        let number = entry.file_name().into_string().unwrap();
        let info = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).unwrap();
        let watched = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
        let watched = watched.filter_map(|rest| rest.split_whitespace().next()?.parse().ok());
        let set: BTreeSet<i32> = watched.filter(|fd| connections.contains(fd)).collect();
        // A runtime has two descriptors of its set.
        sets.insert(set);
    }
    sets.iter().map(BTreeSet::len).filter(|count| *count > 0).collect()
}

/// The descriptors of a process that are connections accepted on a port.
fn established(process: i32, port: u16) -> Vec<i32> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let local = format!(":{port:04X}");
    let sockets: Vec<String> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|f| f.get(1).is_some_and(|a| a.ends_with(&local)) && f.get(3) == Some(&"01"))
        .map(|fields| format!("socket:[{}]", fields[9]))
        .collect();
    std::fs::read_dir(format!("/proc/{process}/fd"))
        .unwrap()
        .flatten()
        .filter(|entry| {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            sockets.iter().any(|socket| **socket == *target.to_string_lossy())
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// One request on a connection that stays open.
fn ask(connection: &mut PeerConnection) {
    connection.send("GET / HTTP/1.1\nHost: test\n\n");
    connection.until(b"hello").unwrap();
}

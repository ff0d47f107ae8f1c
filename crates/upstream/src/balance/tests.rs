use std::collections::HashMap;
use std::sync::Arc;

use conf::Subsystem;

use crate::testing::{ask, group, lease, load_of, sequence, short};
use crate::{Ask, Attempt, Group, Lease, ServerChoice, Until};

/// A time other than the one that states are initialised with.
const NOW: u64 = 1_000_000;

fn key(key: &str) -> Ask<'_> {
    Ask { key: key.as_bytes(), now_ms: NOW, ..Ask::default() }
}

fn by_key(group: &Arc<Group>, key_text: &str) -> String {
    short(&lease(ask(group, key(key_text))))
}

#[test]
fn round_robin_is_smooth() {
    let group = group("server 10.0.0.1 weight=5; server 10.0.0.2; server 10.0.0.3;");
    assert_eq!(sequence(&group, 14, NOW), "1 1 2 1 3 1 1 1 1 2 1 3 1 1");
}

#[test]
fn no_server_is_tried_twice() {
    let group = group("server 10.0.0.1; server 10.0.0.2; server 10.0.0.9 backup;");
    let mut attempt = Attempt::default();
    let mut given = Vec::new();
    while let ServerChoice::Server(lease) = group.choose(&mut attempt, &key("")) {
        given.push((short(&lease), attempt.tries_left()));
    }
    let expected = [("1", 2), ("2", 1), ("9", 0)];
    assert_eq!(given, expected.map(|(name, left)| (name.to_owned(), left)));
}

#[test]
fn least_conn_counts_by_weight_and_takes_turns_among_equals() {
    let group = group("least_conn; server 10.0.0.1 weight=2; server 10.0.0.2; server 10.0.0.3;");
    let leases: Vec<Lease> = (0..8).map(|_| lease(ask(&group, key("")))).collect();
    let names: Vec<String> = leases.iter().map(short).collect();
    assert_eq!(names.join(" "), "1 2 3 1 3 1 2 1");
    let counts: Vec<u32> = group.servers().iter().map(|server| server.in_progress()).collect();
    assert_eq!(counts, [4, 2, 2]);
    drop(leases);
    assert!(group.servers().iter().all(|server| server.in_progress() == 0));
}

#[test]
fn ip_hash_is_nginx_s() {
    let three = "server 10.0.0.1; server 10.0.0.2; server 10.0.0.3;";
    let group = group(&format!("ip_hash; {three}"));
    let by_client =
        |client: &[u8]| short(&lease(ask(&group, Ask { client, now_ms: NOW, ..Ask::default() })));
    // hash = (hash * 113 + byte) % 6271 from 89, of three bytes; then modulo the weights.
    for client in [[127, 0, 0, 1], [10, 1, 2, 3], [192, 168, 200, 7]] {
        let hash = client[..3].iter().fold(89, |hash, byte| (hash * 113 + byte) % 6271);
        assert_eq!(by_client(&client.map(|byte| byte as u8)), (hash % 3 + 1).to_string());
    }
    assert_eq!(by_client(&[10, 1, 2, 3]), by_client(&[10, 1, 2, 200]), "the last byte is nothing");
    assert_eq!(by_client(b""), by_client(&[0, 0, 0, 9]), "no address counts as zeros");
    let v6: Vec<String> = (0..64_u8)
        .map(|last| by_client(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]))
        .collect();
    assert!(["1", "2", "3"].iter().all(|name| v6.iter().any(|found| found == name)));
}

#[test]
fn ip_hash_goes_on_hashing_when_a_server_is_out() {
    let group = group("ip_hash; server 10.0.0.1 down; server 10.0.0.2; server 10.0.0.3 weight=2;");
    let client = |third: u8| [10, 1, third, 1];
    let mut seen = HashMap::new();
    for third in 0..=255 {
        let client = client(third);
        let choice = ask(&group, Ask { client: &client, now_ms: NOW, ..Ask::default() });
        *seen.entry(short(&lease(choice))).or_insert(0) += 1;
    }
    assert!(!seen.contains_key("1"), "{seen:?}");
    assert!(seen["3"] > seen["2"], "{seen:?}");
}

/// crc32 of the texts by zlib, `>> 16 & 0x7fff`: what Cache::Memcached would choose.
#[test]
fn hash_is_that_of_cache_memcached() {
    let group = group("hash $k; server 10.0.0.1; server 10.0.0.2; server 10.0.0.3 weight=2;");
    let table =
        [("a", 0xe8b7_be43_u32), ("b", 0x71be_eff9), ("c", 0x06b9_df6f), ("abc", 0x3524_41c2)];
    for (text, crc) in table {
        let expected = ["1", "2", "3", "3"][((crc >> 16 & 0x7fff) % 4) as usize];
        assert_eq!(by_key(&group, text), expected, "{text}");
    }
}

#[test]
fn hash_without_a_text_takes_turns() {
    for method in ["hash $k", "hash $k consistent"] {
        let group = group(&format!("{method}; server 10.0.0.1; server 10.0.0.2;"));
        let names: Vec<String> = (0..4).map(|_| by_key(&group, "")).collect();
        assert_eq!(names.join(" "), "1 2 1 2");
    }
}

#[test]
fn a_hash_finds_every_server_that_is_left() {
    for method in ["hash $k", "hash $k consistent", "ip_hash", "random", "random two"] {
        let servers = (1..=5).map(|n| format!("server 10.0.0.{n};")).collect::<String>();
        let group = group(&format!("{method}; {servers}"));
        let mut attempt = Attempt::default();
        let mut given = Vec::new();
        while let ServerChoice::Server(lease) = group.choose(&mut attempt, &key("text")) {
            given.push(short(&lease));
        }
        given.sort();
        assert_eq!(given.join(" "), "1 2 3 4 5", "{method}");
    }
}

/// Where Cache::Memcached::Fast puts a server's first points: crc32(HOST \0 PORT PREVIOUS).
#[test]
fn points_are_those_of_ketama() {
    let group = group("hash $k consistent; server 10.0.0.1:11211; server 10.0.0.2:11211;");
    let text = |host: &str, previous: u32| {
        let mut text = format!("{host}\0{}", "11211").into_bytes();
        text.extend(previous.to_le_bytes());
        text
    };
    // A key that is just such a text has the hash of the point itself, so it belongs to its server.
    for host in ["10.0.0.1", "10.0.0.2"] {
        let point = super::crc32::Crc32::new().update(&text(host, 0)).value();
        for key in [text(host, 0), text(host, point)] {
            let choice = ask(&group, Ask { key: &key, now_ms: NOW, ..Ask::default() });
            assert_eq!(lease(choice).name(), format!("{host}:11211").as_bytes());
        }
    }
}

#[test]
fn few_texts_move_when_a_server_goes() {
    let servers = |count: usize| (1..=count).map(|n| format!("server 10.0.0.{n};")).collect();
    let (ten, nine): (String, String) = (servers(10), servers(9));
    let ten = group(&format!("hash $k consistent; {ten}"));
    let nine = group(&format!("hash $k consistent; {nine}"));
    let mut counts = HashMap::new();
    for number in 0..2000 {
        let text = format!("/path/{number}");
        let (before, after) = (by_key(&ten, &text), by_key(&nine, &text));
        assert!(before == after || before == "10", "{text} moved from {before} to {after}");
        *counts.entry(before).or_insert(0) += 1;
    }
    assert!(counts.values().all(|count| (100..400).contains(count)), "{counts:?}");
}

#[test]
fn a_name_s_addresses_share_its_points() {
    let group = group("hash $k consistent; server 10.0.0.1; server 10.0.0.1; server 10.0.0.2;");
    let mut found = HashMap::new();
    for number in 0..200 {
        *found.entry(by_key(&group, &number.to_string())).or_insert(0) += 1;
    }
    assert!(found["1"] > 60 && found["2"] > 60, "{found:?}");
    let fails: Vec<u32> = group.servers().iter().map(|server| server.fails()).collect();
    assert_eq!(fails, [0, 0, 0]);
}

#[test]
fn chance_follows_the_weights() {
    let group = group("random; server 10.0.0.1 weight=8; server 10.0.0.2; server 10.0.0.3;");
    let mut counts = HashMap::new();
    for _ in 0..10_000 {
        *counts.entry(by_key(&group, "")).or_insert(0) += 1;
    }
    assert!((7700..8300).contains(&counts["1"]), "{counts:?}");
    assert!((800..1200).contains(&counts["2"]), "{counts:?}");
}

#[test]
fn the_better_of_two_evens_out() {
    let group = group("random two; server 10.0.0.1; server 10.0.0.2; server 10.0.0.3;");
    let leases: Vec<Lease> = (0..300).map(|_| lease(ask(&group, key("")))).collect();
    let counts: Vec<u32> = group.servers().iter().map(|server| server.in_progress()).collect();
    assert!(counts.iter().all(|count| (95..=105).contains(count)), "{counts:?}");
    drop(leases);
}

fn reply(group: &Arc<Group>, now_ms: u64, time_ms: impl Fn(&str) -> u64) -> String {
    let mut lease = lease(ask(group, Ask { now_ms, ..Ask::default() }));
    let name = short(&lease);
    lease.reached(Until::FirstByte, time_ms(&name));
    lease.last_byte(time_ms(&name) * 2);
    lease.succeeded(now_ms);
    name
}

#[test]
fn the_faster_server_is_preferred() {
    for method in ["header", "last_byte", "header inflight", "last_byte inflight"] {
        let group = group(&format!("least_time {method}; server 10.0.0.1; server 10.0.0.2;"));
        let time_ms = |name: &str| if name == "1" { 500 } else { 50 };
        let names: Vec<String> = (0..10).map(|_| reply(&group, NOW, time_ms)).collect();
        assert_eq!(names.join(" "), "1 2 2 2 2 2 2 2 2 2", "{method}");
        // Long after its last request, the slow server counts as faster than it was.
        let later = (1..200).map(|second| reply(&group, NOW + second * 1000, time_ms));
        assert!(later.filter(|name| name == "1").count() > 2, "{method}");
    }
}

#[test]
fn in_stream_the_times_until_connections_and_first_bytes_count() {
    for (method, until) in [("connect", Until::Connect), ("first_byte", Until::FirstByte)] {
        for inflight in ["", " inflight"] {
            let servers = "server 10.0.0.1:80; server 10.0.0.2:80;";
            let lines = format!("least_time {method}{inflight}; {servers}");
            let (group, _) =
                load_of(Subsystem::Stream, &lines.replace([' ', ';'], "_"), &lines).unwrap();
            let names = (0..6).map(|_| {
                let mut lease = lease(ask(&group, Ask { now_ms: NOW, ..Ask::default() }));
                let name = short(&lease);
                lease.reached(until, if name == "1" { 500 } else { 50 });
                // The server with the slower first byte ends first.
                lease.last_byte(if name == "1" { 500 } else { 5000 });
                name
            });
            let names = names.collect::<Vec<_>>().join(" ");
            assert_eq!(names, "1 2 2 2 2 2", "{method}{inflight}");
        }
    }
    let refused = load_of(Subsystem::Stream, "u", "least_time header;").unwrap_err();
    assert_eq!(refused, "invalid value \"header\"");
}

#[test]
fn times_within_a_step_are_equal() {
    let group = group("least_time header; server 10.0.0.1; server 10.0.0.2;");
    let time_ms = |name: &str| if name == "1" { 5 } else { 15 };
    let names: Vec<String> = (0..6).map(|_| reply(&group, NOW, time_ms)).collect();
    assert_eq!(names.join(" "), "1 2 1 2 1 2");
}

#[test]
fn requests_in_progress_reveal_a_slow_server() {
    let group = group("least_time header inflight; server 10.0.0.1; server 10.0.0.2;");
    let stuck = lease(ask(&group, key("")));
    assert_eq!(short(&stuck), "1");
    // One request each from here on, so that only durations make a difference.
    for tick in 1..20 {
        let now_ms = NOW + tick * 100;
        assert_eq!(reply(&group, now_ms, |_| 30), "2");
    }
    let other = lease(ask(&group, Ask { now_ms: NOW + 2000, ..Ask::default() }));
    let third = lease(ask(&group, Ask { now_ms: NOW + 2000, ..Ask::default() }));
    assert_eq!((short(&other), short(&third)), ("2".into(), "2".into()));
}

//! Several nodes and a store in simulated time: whatever happens, their tables end equal.

use std::time::Duration;

use conf::Subsystem;
use testing::FakeStore;
use wire::resp::{RespLimits, RespReader};

use super::super::change::{KeyvalOperation, KeyvalPair};
use super::super::key::KeyvalType;
use super::super::table::KeyvalTable;
use super::*;
use crate::store::StoreStatus;

const HASH: &[u8] = b"weir:keyval:z";
/// The store's time at the beginning.
const BEGIN_MS: u64 = 1_795_722_245_000;
const INTERVAL_MS: u64 = 100;

/// A machine: here, the exchange and the process that decides are one.
struct Node {
    zone: Arc<KeyvalZone>,
    exchange: TableExchange,
    /// The difference of its clock to the store's.
    behind_ms: u64,
    /// How wrong its idea of the store's time is.
    error_ms: i64,
    deciding: Option<Vec<MergedKey>>,
    status: StoreStatus,
    refused: u64,
}

struct Cluster {
    nodes: Vec<Node>,
    store: FakeStore,
    now_ms: u64,
    random: u64,
}

fn pair(key: &str, value: &str, deadline_ms: Option<u64>) -> KeyvalPair {
    KeyvalPair { key: key.as_bytes().into(), value: value.as_bytes().into(), deadline_ms }
}

impl Node {
    /// A machine that starts with a table.
    fn new(number: u64, table: KeyvalTable, now_ms: u64) -> Self {
        let kind = table.kind;
        let zone = Arc::new(KeyvalZone::new(Subsystem::Http, b"z", table));
        let mut replica = KeyvalReplica::new(net::system::random(), kind);
        replica.begin(zone.table());
        let replica = Arc::new(Mutex::new(replica));
        let behind_ms = BEGIN_MS - 1_000_000 * (number + 1);
        let error_ms = number as i64 * 7 - 10;
        let exchange = TableExchange::new(zone.clone(), replica, now_ms - behind_ms);
        let (deciding, status, refused) = (None, StoreStatus::default(), 0);
        Self { zone, exchange, behind_ms, error_ms, deciding, status, refused }
    }

    fn apply(&self, operation: KeyvalOperation, now_ms: u64) {
        self.zone.apply(&operation, now_ms - self.behind_ms).unwrap();
    }

    fn put(&self, key: &str, value: &str, now_ms: u64) {
        self.apply(KeyvalOperation::Put(vec![pair(key, value, None)]), now_ms);
    }

    fn remove(&self, key: &str, now_ms: u64) {
        self.apply(KeyvalOperation::Remove(key.as_bytes().into()), now_ms);
    }

    /// The process that decides does so now.
    fn decide(&mut self, now_ms: u64) {
        let Some(keys) = self.deciding.take() else { return };
        let bytes = KeyvalMerge { subsystem: Subsystem::Http, zone: (*b"z").into(), keys };
        let merge = KeyvalMerge::from_bytes(&bytes.to_bytes()).unwrap();
        if let Some(operation) = self.zone.table().merge(merge.keys, now_ms - self.behind_ms) {
            self.apply(operation, now_ms);
        }
        self.answer(true);
    }

    fn answer(&mut self, is_decided: bool) {
        self.deciding = None;
        exchange::lock(&self.exchange.replica).answer(is_decided);
    }

    /// `KEY=VALUE` of each entry, with `!` if it ends.
    fn shown(&self, now_ms: u64) -> String {
        let entries = self.zone.table().live_entries(now_ms - self.behind_ms);
        let mut shown: Vec<_> = entries
            .map(|entry| {
                let [key, value] = [&entry.key, &entry.value].map(|t| String::from_utf8_lossy(t));
                format!("{key}={value}{}", if entry.deadline_ms.is_some() { "!" } else { "" })
            })
            .collect();
        shown.sort();
        shown.join(" ")
    }
}

impl Cluster {
    /// Machines without entries.
    fn new(nodes: u64) -> Self {
        let table = || KeyvalTable::new(KeyvalType::String, 1 << 20);
        Self::of((0..nodes).map(|_| table()).collect(), 1)
    }

    fn of(tables: Vec<KeyvalTable>, random: u64) -> Self {
        let now_ms = BEGIN_MS;
        let nodes = (0..).zip(tables).map(|(n, table)| Node::new(n, table, now_ms)).collect();
        Self { nodes, store: FakeStore::default(), now_ms, random }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// A node's exchange. Returns how many commands it had. `is_answered`: the replies arrive.
    fn exchange(&mut self, number: usize, is_answered: bool) -> usize {
        let Self { nodes, store, now_ms, .. } = self;
        let node = &mut nodes[number];
        let own_ms = *now_ms - node.behind_ms;
        let turn = StoreTurn {
            prefix: b"weir:",
            now_ms: own_ms,
            monotonic_ms: own_ms,
            store_ms: *now_ms as i64 + node.error_ms,
            nodes: 1,
            status: &node.status,
        };
        let mut commands = RespCommands::default();
        node.exchange.take_answer(own_ms);
        node.exchange.ask(&turn, &mut commands);
        let replies = replies(&commands, store, *now_ms);
        if !is_answered {
            node.exchange.lost();
            return commands.count();
        }
        let bytes_max = 128 * commands.count() + commands.reply_bytes();
        let limits = RespLimits { text_bytes_max: 80 * 1024, items_max: 8192, bytes_max };
        let mut reader = RespReader::new(commands.count(), limits);
        reader.receive(&replies).unwrap();
        assert!(reader.is_done());
        node.exchange.take(&turn, &reader.into_replies()).unwrap();
        node.refused += exchange::lock(&node.exchange.replica).take_refused();
        if node.deciding.is_none() {
            node.deciding = node.exchange.take_merge();
        }
        commands.count()
    }

    /// All nodes exchange so often, and what they pass on is decided at once.
    fn run(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.now_ms += INTERVAL_MS;
            for number in 0..self.nodes.len() {
                self.exchange(number, true);
                self.nodes[number].decide(self.now_ms);
            }
        }
    }

    fn shown(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.shown(self.now_ms)).collect()
    }

    #[track_caller]
    fn assert_all(&self, expected: &str) {
        let shown = self.shown();
        assert!(shown.iter().all(|shown| shown == expected), "{shown:#?} are not {expected}");
    }

    /// A node starts again with the content of its file.
    fn restart(&mut self, number: usize) {
        let table = self.nodes[number].zone.table();
        self.nodes[number] = Node::new(number as u64, table, self.now_ms);
    }

    fn lose_store(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.exchange.lost());
    }

    /// The fields in the store, without the mark.
    fn stored(&self) -> usize {
        self.store.hashes.get(HASH).map_or(0, |hash| hash.len() - 1)
    }
}

/// What the store replies to a pipeline.
fn replies(commands: &RespCommands, store: &mut FakeStore, now_ms: u64) -> Vec<u8> {
    let (mut rest, mut replies) = (commands.bytes(), Vec::new());
    let line = |rest: &mut &[u8]| {
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let number = str::from_utf8(&rest[1..end]).unwrap().parse::<usize>().unwrap();
        *rest = &rest[end + 2..];
        number
    };
    while !rest.is_empty() {
        let words: Vec<&[u8]> = (0..line(&mut rest))
            .map(|_| {
                let length = line(&mut rest);
                let word = &rest[..length];
                rest = &rest[length + 2..];
                word
            })
            .collect();
        replies.extend(store.reply(&words, Duration::from_millis(now_ms)));
    }
    replies
}

#[test]
fn a_change_reaches_all_nodes_within_three_exchanges() {
    let mut cluster = Cluster::new(3);
    cluster.run(10);
    cluster.nodes[0].put("a", "1", cluster.now_ms);
    cluster.run(3);
    cluster.assert_all("a=1");
    cluster.nodes[2].put("a", "2", cluster.now_ms);
    cluster.run(3);
    cluster.assert_all("a=2");
    cluster.nodes[1].remove("a", cluster.now_ms);
    cluster.nodes[0].put("b", "\0\r\n\u{7f}", cluster.now_ms);
    cluster.run(3);
    cluster.assert_all("b=\0\r\n\u{7f}");
    cluster.nodes[1].apply(KeyvalOperation::Clear, cluster.now_ms);
    cluster.run(3);
    cluster.assert_all("");
}

#[test]
fn the_later_of_two_changes_wins_also_after_a_time_without_the_store() {
    let mut cluster = Cluster::new(2);
    cluster.run(10);
    cluster.lose_store();
    for (number, value) in [(0, "first"), (1, "second")] {
        cluster.now_ms += 60_000;
        cluster.nodes[number].put("a", value, cluster.now_ms);
        let behind_ms = cluster.nodes[number].behind_ms;
        cluster.nodes[number].exchange.look_without_store(cluster.now_ms - behind_ms);
    }
    // The one with the earlier change comes back last.
    cluster.now_ms += 60_000;
    (0..10).for_each(|_| _ = cluster.exchange(1, true));
    cluster.run(20);
    cluster.assert_all("a=second");
}

#[test]
fn an_entry_of_a_file_gives_way_and_one_that_the_store_lacks_is_added() {
    let mut cluster = Cluster::new(2);
    for (number, keys) in [(0, ["both", "removed", "own"]), (1, ["both", "removed", "other"])] {
        let value = if number == 0 { "0" } else { "1" };
        keys.iter().for_each(|key| cluster.nodes[number].put(key, value, cluster.now_ms));
        cluster.restart(number);
    }
    for number in [0, 1] {
        (0..10).for_each(|_| {
            cluster.now_ms += INTERVAL_MS;
            cluster.exchange(number, true);
            cluster.nodes[number].decide(cluster.now_ms);
        });
    }
    cluster.run(10);
    cluster.assert_all("both=0 other=1 own=0 removed=0");
    // A key that was removed while a node was away does not come back with it.
    cluster.nodes[0].remove("removed", cluster.now_ms);
    for _ in 0..5 {
        cluster.now_ms += INTERVAL_MS;
        cluster.exchange(0, true);
    }
    cluster.restart(1);
    cluster.run(20);
    cluster.assert_all("both=0 other=1 own=0");
}

#[test]
fn a_store_that_has_lost_everything_is_filled_again() {
    let mut cluster = Cluster::new(3);
    for key in 0..500 {
        cluster.nodes[key % 2].put(&format!("k{key}"), "v", cluster.now_ms);
    }
    cluster.run(30);
    cluster.nodes[0].remove("k7", cluster.now_ms);
    let away = cluster.nodes.pop().unwrap();
    cluster.run(10);
    // Without a connection that ends.
    cluster.store.clear();
    cluster.run(30);
    assert_eq!(cluster.stored(), 500);
    // Nor does the key come back from a node that was away.
    cluster.nodes.push(away);
    cluster.restart(2);
    cluster.run(30);
    let shown = cluster.shown();
    assert!(shown.iter().all(|one| *one == shown[0] && !one.contains("k7=")));
    assert_eq!(shown[0].split(' ').count(), 499);
}

#[test]
fn entries_end_at_all_nodes_and_do_not_come_back() {
    let mut cluster = Cluster::new(2);
    cluster.run(10);
    let deadline_ms = cluster.now_ms - cluster.nodes[0].behind_ms + 5000;
    let entry = pair("a", "1", Some(deadline_ms));
    cluster.nodes[0].apply(KeyvalOperation::Put(vec![entry]), cluster.now_ms);
    cluster.run(3);
    cluster.assert_all("a=1!");
    cluster.run(47);
    cluster.assert_all("");
    // A change of another key has the table forget it.
    (0..200).for_each(|_| cluster.nodes[0].put("b", "1", cluster.now_ms));
    cluster.run(10);
    cluster.store.clear();
    cluster.run(30);
    cluster.assert_all("b=1");
    assert_eq!(cluster.stored(), 1, "the end of an entry is no removal");
    // The store does not keep them for ever.
    let deadline_ms = cluster.now_ms - cluster.nodes[0].behind_ms + 5000;
    let entry = pair("c", "1", Some(deadline_ms));
    cluster.nodes[0].apply(KeyvalOperation::Put(vec![entry]), cluster.now_ms);
    cluster.run(10);
    cluster.nodes[0].remove("b", cluster.now_ms);
    cluster.run(10);
    assert_eq!(cluster.stored(), 2);
    cluster.now_ms += 2 * 24 * 60 * 60 * 1000;
    cluster.run(30);
    assert_eq!(cluster.stored(), 0);
}

#[test]
fn a_full_table_refuses_what_the_others_have() {
    let tables = [1 << 16, 4096].map(|bytes| KeyvalTable::new(KeyvalType::String, bytes));
    let mut cluster = Cluster::of(tables.into(), 1);
    cluster.run(10);
    for key in 0..40 {
        cluster.nodes[0].put(&format!("key{key}"), "v", cluster.now_ms);
    }
    cluster.run(20);
    let counts: Vec<_> = cluster.shown().iter().map(|shown| shown.split(' ').count()).collect();
    assert_eq!((counts[0], counts[1]), (40, 20));
    assert_eq!(cluster.nodes[1].refused, 20);
    // A key that it has still changes, and one that is removed makes room.
    let kept = cluster.nodes[1].shown(cluster.now_ms)[..4].to_owned();
    cluster.nodes[0].put(&kept, "w", cluster.now_ms);
    cluster.run(5);
    assert!(cluster.nodes[1].shown(cluster.now_ms).contains(&format!("{kept}=w")));
    assert_eq!(cluster.nodes[0].shown(cluster.now_ms).split(' ').count(), 41 - 1);
}

#[test]
fn records_that_are_none_are_left_out() {
    let mut cluster = Cluster::of(vec![KeyvalTable::new(KeyvalType::Ip, 1 << 16)], 1);
    let hash = cluster.store.hashes.entry(HASH.to_vec()).or_default();
    let stamp = format!("{BEGIN_MS}-0000000000c0ffee");
    let far = format!("{}-0000000000c0ffee", BEGIN_MS * 2);
    for (field, record) in [
        ("10.0.0.1", format!("{stamp} set - 0\ngood")),
        ("10.0.0.2", "garbage".to_owned()),
        ("10.0.0.3", format!("{far} set - 0\nof the future")),
        ("10.0.0.4/32", format!("{stamp} set - 0\nof another name")),
        ("localhost", format!("{stamp} set - 0\nof another type")),
        ("10.0.0.5", format!("{stamp} set - 8\n10.0.0.6value")),
        ("10.0.0.7", format!("{stamp} set - 11\n10.0.0.7/32other text")),
        ("10.0.0.8", format!("{stamp} set {} 0\nended", BEGIN_MS - 1)),
    ] {
        hash.insert(field.into(), record.into());
    }
    cluster.run(20);
    cluster.assert_all("10.0.0.1=good 10.0.0.7/32=other text");
    assert_eq!(cluster.nodes[0].exchange.invalid, 5);
}

#[test]
fn keys_of_one_network_are_one_key() {
    let table = || KeyvalTable::new(KeyvalType::Ip, 1 << 16);
    let mut cluster = Cluster::of(vec![table(), table()], 1);
    cluster.run(10);
    cluster.nodes[0].put("::ffff:10.1.2.3", "1", cluster.now_ms);
    cluster.nodes[0].put("2001:DB8::/32", "1", cluster.now_ms);
    cluster.run(3);
    cluster.nodes[1].put("10.1.2.3/32", "2", cluster.now_ms);
    cluster.run(3);
    cluster.assert_all("10.1.2.3/32=2 2001:DB8::/32=1");
    assert_eq!(cluster.stored(), 2);
}

#[test]
fn a_change_that_comes_while_another_is_decided_wins() {
    let mut cluster = Cluster::new(2);
    cluster.nodes[0].put("a", "1", cluster.now_ms);
    cluster.run(10);
    cluster.nodes[0].put("a", "2", cluster.now_ms);
    cluster.now_ms += INTERVAL_MS;
    cluster.exchange(0, true);
    (0..2).for_each(|_| _ = cluster.exchange(1, true));
    assert!(cluster.nodes[1].deciding.is_some());
    cluster.now_ms += 1;
    cluster.nodes[1].put("a", "3", cluster.now_ms);
    cluster.nodes[1].decide(cluster.now_ms);
    cluster.run(5);
    cluster.assert_all("a=3");
}

#[test]
fn a_key_that_is_removed_the_moment_it_comes_is_the_same_at_all_nodes() {
    let mut cluster = Cluster::new(2);
    cluster.run(10);
    cluster.nodes[0].put("a", "1", cluster.now_ms);
    while cluster.nodes[1].deciding.is_none() {
        cluster.now_ms += INTERVAL_MS;
        (0..2).for_each(|number| _ = cluster.exchange(number, true));
    }
    cluster.nodes[1].decide(cluster.now_ms);
    cluster.nodes[1].apply(KeyvalOperation::Clear, cluster.now_ms);
    cluster.run(5);
    cluster.assert_all("a=1");
    assert_eq!(cluster.nodes[1].refused, 0);
}

#[test]
fn an_exchange_has_limits_and_an_idle_one_is_short() {
    let mut cluster =
        Cluster::of((0..2).map(|_| KeyvalTable::new(KeyvalType::String, 1 << 24)).collect(), 1);
    cluster.run(10);
    let pairs = (0..8_000).map(|key| pair(&format!("key{key}"), "value", None)).collect();
    cluster.nodes[0].apply(KeyvalOperation::Put(pairs), cluster.now_ms);
    let (mut rounds, mut most) = (0, 0);
    while cluster.nodes[1].zone.table().live_entries(0).count() < 8_000 {
        cluster.now_ms += INTERVAL_MS;
        for number in [0, 1] {
            most = most.max(cluster.exchange(number, true));
            cluster.nodes[number].decide(cluster.now_ms);
        }
        rounds += 1;
        assert!(rounds < 60, "{rounds} exchanges");
    }
    assert!(most <= 2008, "{most} commands");
    cluster.run(100);
    assert_eq!(cluster.exchange(0, true), 4);
}

#[test]
fn more_removed_keys_than_a_node_remembers_do_not_come_back() {
    let table = || KeyvalTable::new(KeyvalType::String, 1 << 24);
    let mut cluster = Cluster::of(vec![table(), table()], 1);
    let pairs = (0..12_000).map(|key| pair(&format!("key{key}"), "value", None)).collect();
    cluster.nodes[0].apply(KeyvalOperation::Put(pairs), cluster.now_ms);
    cluster.run(50);
    assert_eq!(cluster.stored(), 12_000);
    cluster.nodes[1].apply(KeyvalOperation::Clear, cluster.now_ms);
    cluster.run(50);
    cluster.assert_all("");
    cluster.lose_store();
    cluster.run(40);
    cluster.assert_all("");
}

/// Anything in any order: changes, replies that do not arrive, a store that is gone, that has lost
/// everything, or that is what it was some time ago, nodes that start again, decisions that are
/// late or are not made.
fn act(cluster: &mut Cluster, kept: &mut FakeStore) {
    let number = cluster.random(3) as usize;
    let key = format!("k{}", cluster.random(6));
    let now_ms = cluster.now_ms;
    match cluster.random(40) {
        0..8 => {
            let value = cluster.random(1000).to_string();
            cluster.nodes[number].put(&key, &value, now_ms);
        }
        8..12 => cluster.nodes[number].remove(&key, now_ms),
        12..14 => {
            let left_ms = 100 + cluster.random(5000);
            let node = &cluster.nodes[number];
            let entry = pair(&key, "mortal", Some(now_ms - node.behind_ms + left_ms));
            node.apply(KeyvalOperation::Put(vec![entry]), now_ms);
        }
        14 => cluster.nodes[number].apply(KeyvalOperation::Clear, now_ms),
        15 => cluster.nodes[number].answer(false),
        16 => cluster.store.clear(),
        17 => cluster.restart(number),
        18 => *kept = cluster.store.clone(),
        19 => {
            cluster.store = kept.clone();
            cluster.lose_store();
        }
        20 => _ = cluster.exchange(number, false),
        21 => cluster.nodes[number].exchange.lost(),
        22..30 => cluster.nodes[number].decide(now_ms),
        _ => _ = cluster.exchange(number, true),
    }
    cluster.now_ms += cluster.random(INTERVAL_MS);
}

#[test]
fn tables_end_equal_whatever_happens() {
    for seed in 1..80 {
        let table = || KeyvalTable::new(KeyvalType::String, 1 << 20);
        let mut cluster = Cluster::of(vec![table(), table(), table()], seed * 7919);
        let mut kept = FakeStore::default();
        (0..300).for_each(|_| act(&mut cluster, &mut kept));
        // Nothing happens for as long as two comparisons take.
        cluster.run(150);
        let shown = cluster.shown();
        assert!(shown.iter().all(|one| *one == shown[0]), "seed {seed}: {shown:#?}");
        // And the store has it all: a new node gets it.
        cluster.nodes.push(Node::new(3, table(), cluster.now_ms));
        cluster.run(20);
        cluster.assert_all(&shown[0]);
    }
}

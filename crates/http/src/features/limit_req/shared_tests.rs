//! Several nodes and a store in simulated time: what they admit together stays below the bound of
//! docs/shared-limits.md.

use std::collections::HashMap;

use super::rates::{REQUEST, Rates};
use super::sums::SumPlace;
use crate::keyed::Counted;

const ZONE: u64 = 64 * 1024;
const INTERVAL_MS: u64 = 100;
/// An exchange takes so long.
const EXCHANGE_MS: u64 = 7;

/// The numbers of each key in the store: the sum, when the bucket is empty, and the part of the sum
/// in it.
type Store = HashMap<Vec<u8>, Numbers>;
type Numbers = (i64, i64, i64);

struct Node {
    rates: Rates,
    /// Its clock is ahead of the store's.
    ahead_ms: u64,
    /// When its next exchange is, by the store's clock.
    due_ms: u64,
    /// Answers on their way, and when they arrive.
    under_way: Vec<(SumPlace, Numbers)>,
    arrive_ms: u64,
    admitted: u64,
}

struct Cluster {
    nodes: Vec<Node>,
    store: Store,
    rate: u64,
    burst: u64,
    now_ms: u64,
}

impl Node {
    fn new(number: u64, now_ms: u64) -> Self {
        let ahead_ms = 1_000_000 * (number + 1);
        let mut rates = Rates::new(ZONE);
        rates.begin_sharing(now_ms + ahead_ms);
        let due_ms = now_ms + number * 37 % INTERVAL_MS;
        Self { rates, ahead_ms, due_ms, under_way: Vec::new(), arrive_ms: 0, admitted: 0 }
    }
}

impl Cluster {
    /// Nodes that admit `rate` requests per second with `burst` more.
    fn new(nodes: u64, rate: u64, burst: u64) -> Self {
        let nodes = (0..nodes).map(|number| Node::new(number, 0)).collect();
        let (rate, burst) = (rate * REQUEST, burst * REQUEST);
        Self { nodes, store: Store::new(), rate, burst, now_ms: 0 }
    }

    /// A node takes the answers of the store.
    fn answer(&mut self, node: usize) {
        let Self { nodes, rate, burst, now_ms, .. } = self;
        let excess_max = (*burst + *rate) * nodes.len() as u64;
        let node = &mut nodes[node];
        let own_ms = *now_ms + node.ahead_ms;
        for (place, (total, empty_at, counted)) in node.under_way.drain(..) {
            let full_ms = u64::try_from(empty_at.saturating_sub(*now_ms as i64)).unwrap_or(0);
            let stored = full_ms.saturating_mul(*rate) / 1000;
            node.rates.tell(place, (total, stored, counted), (*rate, excess_max), own_ms);
        }
    }

    /// A node asks the store.
    fn exchange(&mut self, node: usize) {
        let Self { nodes, store, rate, now_ms, .. } = self;
        let node = &mut nodes[node];
        let own_ms = *now_ms + node.ahead_ms;
        for sum in node.rates.take_sums(1000, *rate, (own_ms, own_ms)) {
            let (total, empty_at, counted) = store.entry(sum.key.to_vec()).or_default();
            *total = total.wrapping_add(i64::from(sum.place.admitted));
            node.under_way.push((sum.place, (*total, *empty_at, *counted)));
            if let Some(known) = sum.counted {
                *empty_at = (*now_ms + sum.empty_in_ms) as i64;
                *counted = known;
            }
        }
        node.due_ms = *now_ms + INTERVAL_MS;
        node.arrive_ms = *now_ms + EXCHANGE_MS;
    }

    /// A request at a node.
    fn ask(&mut self, node: usize, key: &[u8]) -> bool {
        let Self { nodes, rate, burst, now_ms, .. } = self;
        let node = &mut nodes[node];
        let is_admitted = node.rates.add(key, *rate, *burst, *now_ms + node.ahead_ms).is_ok();
        node.admitted += u64::from(is_admitted);
        is_admitted
    }

    fn step(&mut self) {
        self.now_ms += 1;
        for node in 0..self.nodes.len() {
            if self.nodes[node].arrive_ms == self.now_ms {
                self.answer(node);
            }
            if self.nodes[node].due_ms <= self.now_ms {
                self.exchange(node);
            }
        }
    }

    fn admitted(&self) -> u64 {
        self.nodes.iter().map(|node| node.admitted).sum()
    }

    /// The most requests that the nodes may have admitted since the beginning.
    fn bound(&self) -> u64 {
        let others = self.nodes.len() as u64 - 1;
        let (rate, burst) = (self.rate / REQUEST, self.burst / REQUEST + 1);
        burst + rate * self.now_ms / 1000 + 1 + others * (burst + late(rate))
    }
}

/// What a node admits at this rate until the others know of it: it tells them at its next exchange,
/// and they ask at theirs.
fn late(rate: u64) -> u64 {
    (rate * (2 * INTERVAL_MS + EXCHANGE_MS)).div_ceil(1000) + 1
}

/// Asks every node as often as `per_ms` says, for a while.
fn saturate(cluster: &mut Cluster, time_ms: u64, per_ms: u64) {
    for _ in 0..time_ms {
        cluster.step();
        for node in 0..cluster.nodes.len() {
            for _ in 0..per_ms {
                cluster.ask(node, b"k");
            }
        }
        let (admitted, bound) = (cluster.admitted(), cluster.bound());
        assert!(admitted <= bound, "{admitted} > {bound} after {} ms", cluster.now_ms);
    }
}

#[test]
fn nodes_under_load_admit_the_rate_together() {
    for (nodes, rate, burst) in [(2, 10, 0), (3, 10, 20), (3, 1000, 50), (10, 1000, 0)] {
        let mut cluster = Cluster::new(nodes, rate, burst);
        saturate(&mut cluster, 20_000, 2 + rate / 500);
        let (admitted, wanted) = (cluster.admitted(), rate * 20 + burst);
        assert!(admitted >= wanted * 98 / 100, "{admitted} of {wanted}, {nodes} nodes");
        // In the long run there is no overshoot at all but that of the last moments.
        assert!(
            admitted <= wanted + 1 + nodes * late(rate),
            "{admitted} of {wanted}, {nodes} nodes"
        );
    }
}

#[test]
fn a_client_that_changes_the_node_takes_its_bucket_along() {
    let mut cluster = Cluster::new(2, 10, 20);
    for _ in 0..5000 {
        cluster.step();
        cluster.ask(0, b"k");
    }
    let before = cluster.admitted();
    assert!((70..=72).contains(&before), "{before}");
    // The other node has never seen the key: it admits one burst until its exchange has ended, and
    // nothing for a long time after that.
    for _ in 0..2000 {
        cluster.step();
        cluster.ask(1, b"k");
    }
    assert!(cluster.nodes[1].admitted <= 21 + 3, "{}", cluster.nodes[1].admitted);
}

#[test]
fn a_node_that_restarts_goes_on_with_the_others_count() {
    let mut cluster = Cluster::new(3, 10, 20);
    saturate(&mut cluster, 5000, 1);
    let before = cluster.nodes[0].admitted;
    cluster.nodes[0] = Node::new(0, cluster.now_ms);
    cluster.nodes[0].admitted = before;
    // Its first burst is the overshoot of a node that has just come.
    for _ in 0..5000 {
        cluster.step();
        for node in 0..3 {
            cluster.ask(node, b"k");
        }
    }
    let admitted = cluster.admitted();
    assert!(admitted <= 20 + 100 + 2 * 23 + 24, "{admitted}");
}

#[test]
fn a_store_that_has_forgotten_everything_refuses_nobody() {
    let mut cluster = Cluster::new(3, 100, 10);
    for second in 1..=20 {
        saturate(&mut cluster, 1000, 1);
        if second % 4 == 0 {
            cluster.store.clear();
        }
    }
    assert!(cluster.admitted() >= 100 * 20 * 95 / 100, "{}", cluster.admitted());
}

#[test]
fn a_store_with_wild_numbers_refuses_nobody_for_long() {
    let mut cluster = Cluster::new(2, 100, 10);
    saturate(&mut cluster, 1000, 1);
    for wild in [
        (i64::MAX, i64::MAX, i64::MIN),
        (i64::MIN, i64::MIN, i64::MAX),
        (-1, 0, 0),
        (1 << 40, 1 << 40, 0),
    ] {
        cluster.store.insert(b"k".to_vec(), wild);
        (0..300).for_each(|_| cluster.step());
        cluster.store.clear();
        // What two nodes can admit in a second fills a bucket for two seconds and a bit.
        (0..2500).for_each(|_| cluster.step());
        assert!(cluster.ask(0, b"k") && cluster.ask(1, b"k"), "after {wild:?}");
    }
}

#[test]
fn keys_that_nobody_uses_are_not_exchanged_and_not_kept() {
    let mut rates = Rates::new(ZONE);
    rates.begin_sharing(0);
    for number in 0_u32..200 {
        rates.add(&number.to_be_bytes(), 1000, 5000, 0).unwrap();
    }
    assert_eq!(rates.take_sums(150, 1000, (1, 1)).len(), 150);
    assert_eq!(rates.take_sums(150, 1000, (1, 1)).len(), 50);
    // All are exchanged once more, so that the store knows of the bucket, and then no more.
    let told: Vec<_> = rates.take_sums(1000, 1000, (2, 100));
    assert_eq!(told.len(), 200);
    told.iter().for_each(|sum| rates.tell(sum.place, (1, 0, 0), (1000, 9000), 100));
    assert_eq!(rates.take_sums(1000, 1000, (3, 2000)).len(), 200);
    assert!(rates.take_sums(1000, 1000, (4, 2000)).is_empty());
    // A key whose bucket is not empty is asked for, but not for ever.
    for _ in 0..3 {
        rates.add(b"busy", 10, 90_000, 2000).unwrap();
    }
    assert_eq!(rates.take_sums(150, 10, (5, 2000)).len(), 1);
    assert_eq!(rates.take_sums(150, 10, (6, 3000)).len(), 1);
    assert_eq!(rates.take_sums(150, 10, (7, 12_001)).len(), 0);
}

#[test]
fn a_removed_key_leaves_its_sum_to_nobody() {
    let mut rates = Rates::new(ZONE);
    rates.begin_sharing(0);
    rates.add(b"first", 1000, 0, 0).unwrap();
    let sum = rates.take_sums(10, 1000, (1, 1)).remove(0);
    // The zone is full of other keys, and one of them has the entry.
    for number in 0_u32..2000 {
        rates.add(&number.to_be_bytes(), 1000, 0, 1).unwrap();
    }
    rates.tell(sum.place, (1_000_000, 50_000, 0), (1000, 100_000), 2);
    let keys = (0_u32..2000).map(|number| rates.add(&number.to_be_bytes(), 1000, 1000, 2));
    assert!(keys.into_iter().all(|added| added.is_ok()));
}

#[test]
fn nothing_is_counted_for_others_without_an_exchange() {
    let mut rates = Rates::new(ZONE);
    rates.add(b"k", 1000, 0, 0).unwrap();
    assert!(rates.take_sums(10, 1000, (1, 0)).is_empty());
    rates.begin_sharing(0);
    rates.add(b"k", 1000, 5000, 0).unwrap();
    rates.end_sharing();
    rates.begin_sharing(10);
    // The request of the time before is not sent any more.
    assert!(rates.take_sums(10, 1000, (1, 10)).is_empty());
    rates.add(b"k", 1000, 5000, 10).unwrap();
    // A reload goes on.
    rates.begin_sharing(20);
    let sums = rates.take_sums(10, 1000, (2, 20));
    assert_eq!(sums.iter().map(|sum| sum.place.admitted).collect::<Vec<_>>(), [1]);
    rates.add(b"k", 1000, 5000, 30).unwrap();
    // An exchange that ended long ago does not.
    rates.begin_sharing(60_000);
    assert!(rates.take_sums(10, 1000, (3, 60_000)).is_empty());
}

#[test]
fn a_flood_of_keys_leaves_nothing_behind() {
    let mut rates = Rates::new(ZONE);
    rates.begin_sharing(0);
    for turn in 1_u32..500 {
        for number in 0_u32..200 {
            rates.add(&[turn, number].map(u32::to_be_bytes).concat(), 1000, 0, 0).unwrap();
        }
        // There is always more to send than an exchange takes.
        assert_eq!(rates.take_sums(100, 1000, (turn.into(), turn.into())).len(), 100);
    }
    // 480 keys of the zone, and the list of those with something unsent.
    assert!(rates.shared_bytes() < 400_000, "{}", rates.shared_bytes());
}

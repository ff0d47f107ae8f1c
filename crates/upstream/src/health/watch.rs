//! All servers under watch, and the next checks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use net::Address;

use super::progress::{Begin, Change, CheckProgress};
use super::{HealthCheck, LOOK_MS, UNDER_WAY_MAX};
use crate::group::Group;
use crate::random::XorShift;
use crate::server::{Server, ServerStatus};

/// The checks of a process.
#[derive(Debug)]
pub struct Watch<P> {
    checks: Vec<HealthCheck<P>>,
    records: HashMap<CheckKey, CheckRecord>,
    under_way: usize,
    looked_ms: u64,
    random: XorShift,
}

/// One server under one check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CheckKey {
    group: Arc<[u8]>,
    /// The position among the group's checks.
    check: u32,
    address: Address,
}

/// A server that is to be checked now.
#[derive(Debug)]
pub struct Due<P> {
    /// The key to return the result with.
    pub key: CheckKey,
    pub server: Arc<Server>,
    pub check: HealthCheck<P>,
}

#[derive(Debug)]
struct CheckRecord {
    progress: CheckProgress,
    next: NextCheck,
    server: Arc<Server>,
    /// The position of its check in the list.
    check: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextCheck {
    AtMs(u64),
    UnderWay,
}

impl<P> Default for Watch<P> {
    fn default() -> Self {
        Self {
            checks: Vec::new(),
            records: HashMap::new(),
            under_way: 0,
            looked_ms: 0,
            random: XorShift::default(),
        }
    }
}

impl<P: Clone> Watch<P> {
    /// Continues with the checks of another configuration. The health of servers is kept, unless a
    /// check begins anew; servers that are no longer checked are healthy.
    pub fn replace(&mut self, checks: Vec<HealthCheck<P>>, now_ms: u64) {
        let before = std::mem::replace(&mut self.checks, checks);
        self.tell_groups();
        self.look(now_ms);
        for record in self.records.values_mut() {
            record.renew(&self.checks[record.check], now_ms);
        }
        self.settle_all(now_ms);
        let checked: HashSet<_> =
            self.records.keys().map(|key| (&key.group, &key.address)).collect();
        for check in &before {
            let group: Arc<[u8]> = check.group.name().into();
            for server in check.group.servers() {
                if !checked.contains(&(&group, server.address())) {
                    server.set_healthy(true, now_ms);
                }
            }
        }
    }

    /// The servers that are to be checked now, the longest overdue first.
    pub fn due(&mut self, now_ms: u64) -> Vec<Due<P>> {
        if now_ms >= self.looked_ms.saturating_add(LOOK_MS) {
            self.look(now_ms);
            self.settle_all(now_ms);
        }
        let mut due: Vec<(u64, &CheckKey)> = self
            .records
            .iter()
            .filter_map(|(key, record)| match record.next {
                NextCheck::AtMs(at_ms) if at_ms <= now_ms => Some((at_ms, key)),
                _ => None,
            })
            .collect();
        due.sort_by_key(|(at_ms, _)| *at_ms);
        due.truncate(UNDER_WAY_MAX.saturating_sub(self.under_way));
        let keys: Vec<CheckKey> = due.into_iter().map(|(_, key)| key.clone()).collect();
        self.under_way += keys.len();
        keys.into_iter().filter_map(|key| self.begin(key)).collect()
    }

    fn begin(&mut self, key: CheckKey) -> Option<Due<P>> {
        let record = self.records.get_mut(&key)?;
        record.next = NextCheck::UnderWay;
        let (server, check) = (record.server.clone(), self.checks[record.check].clone());
        Some(Due { key, server, check })
    }

    /// When to call [`due`](Self::due) again; `None`: not before something changes.
    pub fn next_ms(&self) -> Option<u64> {
        if self.checks.is_empty() {
            return None;
        }
        let look_ms = self.looked_ms.saturating_add(LOOK_MS);
        if self.under_way >= UNDER_WAY_MAX {
            return Some(look_ms);
        }
        let next = self.records.values().filter_map(|record| match record.next {
            NextCheck::AtMs(at_ms) => Some(at_ms),
            NextCheck::UnderWay => None,
        });
        Some(next.min().map_or(look_ms, |next_ms| next_ms.min(look_ms)))
    }

    /// Records a result. Returns a change, which the caller logs. The result is ignored if the
    /// server or its check has gone.
    pub fn answer(&mut self, key: &CheckKey, passed: bool, now_ms: u64) -> Option<Change> {
        self.under_way = self.under_way.saturating_sub(1);
        let record = self.records.get_mut(key)?;
        let check = &self.checks[record.check];
        let jitter_ms = by_chance(&mut self.random, check.terms.jitter_ms);
        let pause_ms = check.terms.interval_ms.saturating_add(jitter_ms);
        record.next = NextCheck::AtMs(now_ms.saturating_add(pause_ms));
        let change = record.progress.note(passed, &check.terms)?;
        self.settle(&check.group, |address| *address == key.address, now_ms);
        Some(change)
    }

    /// Whether a server is still under that check.
    pub fn has(&self, key: &CheckKey) -> bool {
        self.records.contains_key(key)
    }

    /// Reads the present servers of the groups: new ones begin, others are removed.
    fn look(&mut self, now_ms: u64) {
        self.looked_ms = now_ms;
        let mut before = std::mem::take(&mut self.records);
        let mut counts: HashMap<&[u8], u32> = HashMap::new();
        for (check, of) in self.checks.iter().enumerate() {
            let count = counts.entry(of.group.name()).or_default();
            let number = std::mem::replace(count, *count + 1);
            let group: Arc<[u8]> = of.group.name().into();
            for server in
                of.group.servers().into_iter().filter(|one| one.status() != ServerStatus::Down)
            {
                let address = server.address().clone();
                let key = CheckKey { group: group.clone(), check: number, address };
                let jitter_ms = by_chance(&mut self.random, of.terms.jitter_ms);
                let known = before.remove(&key).map(|known| (known.progress, known.next));
                let (progress, next) = known.unwrap_or_else(|| {
                    let at_ms = now_ms.saturating_add(jitter_ms);
                    (CheckProgress::new(of.terms.begin), NextCheck::AtMs(at_ms))
                });
                // Of two servers with one address, one is checked.
                self.records.entry(key).or_insert(CheckRecord { progress, next, server, check });
            }
        }
    }

    /// Sets how servers begin that names will resolve to later: as the present ones.
    fn tell_groups(&self) {
        let waits = |check: &&HealthCheck<P>| check.terms.begin != Begin::Healthy;
        let waiting: HashSet<&[u8]> =
            self.checks.iter().filter(waits).map(|check| check.group.name()).collect();
        for check in &self.checks {
            check.group.set_checks_newcomers(waiting.contains(check.group.name()));
        }
    }

    fn settle_all(&self, now_ms: u64) {
        let mut seen = HashSet::new();
        for check in &self.checks {
            if seen.insert(check.group.name()) {
                self.settle(&check.group, |_| true, now_ms);
            }
        }
    }

    /// Sets the health of a group's servers from the results of all their checks.
    fn settle(&self, group: &Group, which: impl Fn(&Address) -> bool, now_ms: u64) {
        let name: Arc<[u8]> = group.name().into();
        for server in group.servers().iter().filter(|server| which(server.address())) {
            if let Some(healthy) = self.is_healthy(&name, server.address()) {
                server.set_healthy(healthy, now_ms);
            }
        }
    }

    /// `None` if no check covers it.
    fn is_healthy(&self, group: &Arc<[u8]>, address: &Address) -> Option<bool> {
        let key = |check| CheckKey { group: group.clone(), check, address: address.clone() };
        let mut of_checks = (0..).map_while(|check| self.records.get(&key(check)));
        let first = of_checks.next()?.progress.is_healthy();
        Some(first && of_checks.all(|record| record.progress.is_healthy()))
    }
}

impl CheckRecord {
    /// Continues under a check that may have changed.
    fn renew<P>(&mut self, check: &HealthCheck<P>, now_ms: u64) {
        let begins_anew = check.terms.begin == Begin::Checking { persistent: false };
        if begins_anew {
            self.progress = CheckProgress::new(check.terms.begin);
        }
        if let NextCheck::AtMs(at_ms) = &mut self.next {
            let pause_ms = check.terms.interval_ms.saturating_add(check.terms.jitter_ms);
            let latest_ms = if begins_anew { now_ms } else { now_ms.saturating_add(pause_ms) };
            *at_ms = (*at_ms).min(latest_ms);
        }
    }
}

fn by_chance(random: &mut XorShift, most: u64) -> u64 {
    match most {
        0 => 0,
        most => random.next() % most.saturating_add(1),
    }
}

//! A worker's state for one `resolver` line: answers, and lookups in progress.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use net::clock;
use observe::Level;
use wire::dns::{DomainName, Rcode};

use super::cache::{CachedResult, Fact, LookupCache, Topic};
use super::flight::{Flight, LookupOutcome, LookupWaiter};
use super::lookup::NameLookup;
use super::servers::{ResolverSettings, ServerRotation};
use crate::random::XorShift;

/// Aliases followed from one name.
pub const ALIASES_FOLLOWED_MAX: usize = 50;
/// The most lookups at a time for one `resolver` line.
const LOOKUPS_MAX: usize = 16 * 1024;

pub(super) struct ResolverState {
    pub(super) rotation: ServerRotation,
    pub(super) random: RefCell<XorShift>,
    cache: RefCell<LookupCache>,
    flights: RefCell<HashMap<(Topic, DomainName), Rc<Flight>>>,
}

/// The end of a chain of aliases.
pub(super) struct Followed {
    pub(super) fact: Rc<Fact>,
    /// Until when the whole chain is valid.
    pub(super) valid_until_ms: u64,
    /// Whether the end of the chain was cached.
    pub(super) cached: bool,
}

impl ResolverState {
    pub(super) fn new(settings: ResolverSettings) -> Self {
        Self {
            rotation: ServerRotation::new(settings),
            random: RefCell::default(),
            cache: RefCell::default(),
            flights: RefCell::default(),
        }
    }

    /// The records of a name, or of the name that it is an alias of.
    pub(super) async fn follow(
        self: &Rc<Self>,
        topic: Topic,
        name: &DomainName,
    ) -> Result<Followed, Rcode> {
        let mut chain = Chain::new(name);
        while !chain.is_too_long() {
            let known = self.find(topic, &chain.name);
            let cached = known.is_some();
            let fact = match known {
                Some(fact) => fact,
                None => self.look_up(topic, &chain.name).await?,
            };
            if let Some(followed) = chain.step(fact, cached) {
                return Ok(followed);
            }
        }
        Err(Rcode::NXDOMAIN)
    }

    /// Like [`follow`](Self::follow), from the cache alone.
    pub(super) fn follow_known(&self, topic: Topic, name: &DomainName) -> Option<Followed> {
        let mut chain = Chain::new(name);
        while !chain.is_too_long() {
            let fact = self.find(topic, &chain.name)?;
            if let Some(followed) = chain.step(fact, true) {
                return Some(followed);
            }
        }
        None
    }

    fn find(&self, topic: Topic, name: &DomainName) -> Option<Rc<Fact>> {
        self.cache.borrow_mut().find(topic, name, clock::now_ms())
    }

    /// Joins the lookup in progress, or begins one.
    fn look_up(self: &Rc<Self>, topic: Topic, name: &DomainName) -> LookupWaiter {
        let key = (topic, name.clone());
        if let Some(flight) = self.flights.borrow().get(&key) {
            return flight.clone().wait();
        }
        let flight: Rc<Flight> = Rc::default();
        if self.flights.borrow().len() >= LOOKUPS_MAX {
            let message = format_args!("{LOOKUPS_MAX} names are being resolved, {name} is not");
            observe::log(Level::Error, message);
            flight.land(Err(Rcode::SERVFAIL));
            return flight.wait();
        }
        self.flights.borrow_mut().insert(key.clone(), flight.clone());
        let waiting = flight.clone().wait();
        let under_way = UnderWay { state: self.clone(), key, flight };
        net::spawn(async move {
            let (topic, name) = (under_way.key.0, &under_way.key.1);
            let lookup = NameLookup::new(&under_way.state.rotation, topic, name);
            if let Some(outcome) = lookup.run(&under_way.flight).await {
                under_way.land(outcome);
            }
        });
        waiting
    }

    /// The number of lookups in progress.
    #[cfg(test)]
    pub(super) fn under_way(&self) -> usize {
        self.flights.borrow().len()
    }
}

/// A chain of aliases that is being followed.
struct Chain {
    name: DomainName,
    followed: usize,
    valid_until_ms: u64,
}

impl Chain {
    fn new(name: &DomainName) -> Self {
        Self { name: name.clone(), followed: 0, valid_until_ms: u64::MAX }
    }

    fn is_too_long(&self) -> bool {
        self.followed > ALIASES_FOLLOWED_MAX
    }

    fn step(&mut self, fact: Rc<Fact>, cached: bool) -> Option<Followed> {
        let valid_until_ms = self.valid_until_ms.min(fact.valid_until_ms);
        let CachedResult::Alias(alias) = &fact.found else {
            return Some(Followed { fact, valid_until_ms, cached });
        };
        self.followed += 1;
        self.valid_until_ms = valid_until_ms;
        self.name = alias.clone();
        None
    }
}

/// A lookup in progress. Dropping it ends it for all waiters.
struct UnderWay {
    state: Rc<ResolverState>,
    key: (Topic, DomainName),
    flight: Rc<Flight>,
}

impl UnderWay {
    fn land(&self, outcome: LookupOutcome) {
        if let Ok(fact) = &outcome {
            let (topic, name) = self.key.clone();
            let now_ms = clock::now_ms();
            self.state.cache.borrow_mut().insert(topic, name, fact.clone(), now_ms);
        }
        self.flight.land(outcome);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.state.flights.borrow_mut().remove(&self.key);
        self.flight.land(Err(Rcode::SERVFAIL));
    }
}

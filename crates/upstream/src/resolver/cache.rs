//! Answers kept while they are valid and in use.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use wire::dns::{DomainName, Service};

/// An answer that was not used for this long is dropped; nginx's time.
const UNUSED_MS: u64 = 30_000;
/// Answers one worker keeps for one `resolver` line.
const ANSWERS_MAX: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    Addresses,
    /// The locations of a service.
    Services,
    /// The name of an address.
    Pointer,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum CachedResult {
    Addresses(Vec<Ipv4Addr>, Vec<Ipv6Addr>),
    Services(Vec<Service>),
    Pointer(DomainName),
    /// The name is an alias of this one.
    Alias(DomainName),
}

/// The result of a lookup, and the end of its validity.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) found: CachedResult,
    pub(super) valid_until_ms: u64,
}

#[derive(Default)]
pub(super) struct LookupCache {
    /// By topic.
    answers: [HashMap<DomainName, CachedEntry>; 3],
    next_sweep_ms: u64,
}

struct CachedEntry {
    fact: Rc<Fact>,
    used_ms: u64,
}

impl LookupCache {
    /// The answer, if it is valid.
    pub(super) fn find(
        &mut self,
        topic: Topic,
        name: &DomainName,
        now_ms: u64,
    ) -> Option<Rc<Fact>> {
        let kept = self.answers[topic as usize].get_mut(name)?;
        if now_ms >= kept.fact.valid_until_ms {
            return None;
        }
        kept.used_ms = now_ms;
        Some(kept.fact.clone())
    }

    /// Keeps an answer, if there is room.
    pub(super) fn insert(&mut self, topic: Topic, name: DomainName, fact: Rc<Fact>, now_ms: u64) {
        if now_ms >= fact.valid_until_ms {
            return;
        }
        if now_ms >= self.next_sweep_ms {
            self.next_sweep_ms = now_ms + UNUSED_MS;
            self.sweep(now_ms);
        }
        let full = self.answers.iter().map(HashMap::len).sum::<usize>() >= ANSWERS_MAX;
        let answers = &mut self.answers[topic as usize];
        if !full || answers.contains_key(&name) {
            answers.insert(name, CachedEntry { fact, used_ms: now_ms });
        }
    }

    fn sweep(&mut self, now_ms: u64) {
        for answers in &mut self.answers {
            answers.retain(|_, kept| {
                now_ms < kept.fact.valid_until_ms && now_ms <= kept.used_ms + UNUSED_MS
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DomainName {
        DomainName::from_text(text.as_bytes()).unwrap()
    }

    fn fact(valid_until_ms: u64) -> Rc<Fact> {
        Rc::new(Fact { found: CachedResult::Alias(name("x")), valid_until_ms })
    }

    fn kept(cache: &LookupCache) -> usize {
        cache.answers.iter().map(HashMap::len).sum()
    }

    #[test]
    fn an_answer_is_valid_until_it_expires() {
        let mut cache = LookupCache::default();
        cache.insert(Topic::Addresses, name("a"), fact(1000), 0);
        assert!(cache.find(Topic::Addresses, &name("a"), 999).is_some());
        assert!(cache.find(Topic::Services, &name("a"), 999).is_none());
        assert!(cache.find(Topic::Addresses, &name("a"), 1000).is_none());
        cache.insert(Topic::Addresses, name("b"), fact(1000), 1000);
        assert_eq!(kept(&cache), 1, "one without a time is not kept");
    }

    #[test]
    fn unused_answers_are_dropped() {
        let mut cache = LookupCache::default();
        for unused in ["a", "b"] {
            cache.insert(Topic::Addresses, name(unused), fact(u64::MAX), 0);
        }
        cache.find(Topic::Addresses, &name("b"), UNUSED_MS);
        cache.insert(Topic::Pointer, name("c"), fact(u64::MAX), UNUSED_MS + 1);
        assert!(cache.find(Topic::Addresses, &name("a"), 0).is_none());
        assert!(cache.find(Topic::Addresses, &name("b"), 0).is_some());
    }

    #[test]
    fn the_number_of_answers_is_bounded() {
        let mut cache = LookupCache::default();
        for index in 0..ANSWERS_MAX + 10 {
            cache.insert(Topic::Addresses, name(&format!("n{index}")), fact(u64::MAX), 0);
        }
        assert_eq!(kept(&cache), ANSWERS_MAX);
        cache.insert(Topic::Addresses, name("n0"), fact(77), 0);
        let found = cache.find(Topic::Addresses, &name("n0"), 0).unwrap();
        assert_eq!(found.valid_until_ms, 77, "a newer answer takes the place of an older one");
    }
}

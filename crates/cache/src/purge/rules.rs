//! The rules of a zone: what was purged, and when.
//!
//! Moments are nanoseconds since 1970, and each purge of a zone has a later one than those before
//! it. A reply is purged if a rule about it has its own moment or a later one. A rule replaces an
//! earlier one about the same, and one about a prefix those that it covers.
//!
//! The list is bounded. When it is full, its older half becomes one rule about everything that was
//! stored before: too much is fetched anew then, but nothing purged comes back.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::key::KeyDigest;

/// The most rules of a zone.
pub const RULES_MAX: usize = 1 << 18;
/// The most bytes that prefixes and tags have.
pub const RULE_BYTES_MAX: usize = 32 << 20;

/// The replies that a purge is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PurgeRule {
    /// All variants of the key with this digest.
    Key(KeyDigest),
    /// All keys that begin so; empty: everything.
    Prefix(Box<[u8]>),
    /// All replies with this tag.
    Tag(Box<[u8]>),
}

impl PurgeRule {
    /// The rule about everything.
    pub fn all() -> Self {
        Self::Prefix(Box::default())
    }

    /// The rule about a key, or about those that begin so if it ends in `*`.
    pub fn of_key(text: &[u8]) -> Self {
        match text.strip_suffix(b"*") {
            Some(prefix) => Self::Prefix(prefix.into()),
            None => Self::Key(KeyDigest::of(text)),
        }
    }

    /// The digest of the key that it is about, if that is one.
    pub fn key(&self) -> Option<&KeyDigest> {
        match self {
            Self::Key(digest) => Some(digest),
            Self::Prefix(_) | Self::Tag(_) => None,
        }
    }
}

/// The rules of a zone, with the moment of each.
#[derive(Debug, Default)]
pub struct PurgeRules {
    /// Everything up to this moment is purged.
    all_ns: u64,
    keys: HashMap<KeyDigest, u64>,
    prefixes: BTreeMap<Box<[u8]>, u64>,
    tags: HashMap<Box<[u8]>, u64>,
    /// The bytes of prefixes and tags.
    bytes: usize,
    /// The newest moment of a rule about a tag.
    newest_tag_ns: u64,
    /// How often the list was full.
    broadened: u64,
}

impl PurgeRules {
    /// Adds a rule. Returns whether it says more than those that are there.
    pub fn add(&mut self, rule: PurgeRule, at_ns: u64) -> bool {
        if self.moment_of(&rule) >= at_ns {
            return false;
        }
        match rule {
            PurgeRule::Key(digest) => _ = self.keys.insert(digest, at_ns),
            PurgeRule::Prefix(prefix) if prefix.is_empty() => {
                self.all_ns = at_ns;
                self.drop_until(at_ns);
            }
            PurgeRule::Prefix(prefix) => self.add_prefix(prefix, at_ns),
            PurgeRule::Tag(tag) => {
                self.newest_tag_ns = self.newest_tag_ns.max(at_ns);
                let length = tag.len();
                if self.tags.insert(tag, at_ns).is_none() {
                    self.bytes += length;
                }
            }
        }
        if self.len() > RULES_MAX || self.bytes > RULE_BYTES_MAX {
            self.broaden();
        }
        true
    }

    /// The moment of a rule, or of the one about everything.
    fn moment_of(&self, rule: &PurgeRule) -> u64 {
        let own_ns = match rule {
            PurgeRule::Key(digest) => self.keys.get(digest),
            PurgeRule::Prefix(prefix) => self.prefixes.get(prefix),
            PurgeRule::Tag(tag) => self.tags.get(tag),
        };
        own_ns.copied().unwrap_or(0).max(self.all_ns)
    }

    fn add_prefix(&mut self, prefix: Box<[u8]>, at_ns: u64) {
        let covered: Vec<_> = self
            .prefixes
            .range::<[u8], _>((Bound::Included(&*prefix), Bound::Unbounded))
            .take_while(|(own, _)| own.starts_with(&prefix))
            .filter(|(_, own_ns)| **own_ns <= at_ns)
            .map(|(own, _)| own.clone())
            .collect();
        for own in covered {
            self.bytes -= own.len();
            self.prefixes.remove(&own);
        }
        self.bytes += prefix.len();
        self.prefixes.insert(prefix, at_ns);
    }

    /// Replaces the older half by one rule about everything.
    fn broaden(&mut self) {
        self.broadened += 1;
        let mut moments: Vec<u64> = self.moments().collect();
        let middle = moments.len() / 2;
        let (_, median_ns, _) = moments.select_nth_unstable(middle);
        self.all_ns = self.all_ns.max(*median_ns);
        self.drop_until(self.all_ns);
        if self.bytes > RULE_BYTES_MAX {
            // The newer half has nearly all of the bytes.
            self.all_ns = self.newest_ns();
            self.drop_until(self.all_ns);
        }
    }

    /// Drops rules up to a moment, but for the one about everything.
    fn drop_until(&mut self, at_ns: u64) {
        self.keys.retain(|_, own_ns| *own_ns > at_ns);
        self.prefixes.retain(|_, own_ns| *own_ns > at_ns);
        self.tags.retain(|_, own_ns| *own_ns > at_ns);
        self.bytes = self.prefixes.keys().chain(self.tags.keys()).map(|text| text.len()).sum();
    }

    /// Drops all rules up to a moment: nothing that they are about is left.
    pub fn forget_until(&mut self, at_ns: u64) {
        self.drop_until(at_ns);
        if self.all_ns <= at_ns {
            self.all_ns = 0;
        }
    }

    /// The moment of the newest rule about a reply; 0: there is none. `tags`: those of the reply.
    pub fn newest_about<'t>(
        &self,
        key: &[u8],
        digest: &KeyDigest,
        tags: impl Iterator<Item = &'t [u8]>,
    ) -> u64 {
        let by_key = self.keys.get(digest).copied().unwrap_or(0).max(self.newest_prefix(key));
        if self.tags.is_empty() {
            return by_key.max(self.all_ns);
        }
        let by_tag = tags.filter_map(|tag| self.tags.get(tag).copied()).max();
        by_key.max(by_tag.unwrap_or(0)).max(self.all_ns)
    }

    /// The moment of the newest rule about a prefix of a key.
    fn newest_prefix(&self, key: &[u8]) -> u64 {
        let (mut newest_ns, mut within) = (0, key);
        loop {
            let before = (Bound::Unbounded, Bound::Included(within));
            let Some((prefix, at_ns)) = self.prefixes.range::<[u8], _>(before).next_back() else {
                return newest_ns;
            };
            let common = prefix.iter().zip(within).take_while(|(one, other)| one == other).count();
            let mut shorter = common;
            if common == prefix.len() {
                newest_ns = newest_ns.max(*at_ns);
                shorter = common.saturating_sub(1);
            }
            // A shorter prefix of the key is a prefix of what both have in common.
            within = &within[..shorter];
            if shorter == 0 {
                return newest_ns;
            }
        }
    }

    /// Whether a rule about a tag has this moment or a later one.
    pub fn has_tags_since(&self, at_ns: u64) -> bool {
        !self.tags.is_empty() && self.newest_tag_ns >= at_ns
    }

    /// How often the list was full.
    pub fn broadened(&self) -> u64 {
        self.broadened
    }

    pub fn len(&self) -> usize {
        self.keys.len() + self.prefixes.len() + self.tags.len() + usize::from(self.all_ns > 0)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The moment of the newest rule; 0: there is none.
    pub fn newest_ns(&self) -> u64 {
        self.moments().max().unwrap_or(0)
    }

    /// The moment of the oldest rule after another; 0: there is none.
    pub fn oldest_after(&self, at_ns: u64) -> u64 {
        self.moments().filter(|own_ns| *own_ns > at_ns).min().unwrap_or(0)
    }

    fn moments(&self) -> impl Iterator<Item = u64> {
        let keys = self.keys.values().chain(self.prefixes.values()).chain(self.tags.values());
        keys.copied().chain((self.all_ns > 0).then_some(self.all_ns))
    }

    /// All rules with their moments.
    pub fn each(&self, mut take: impl FnMut(&PurgeRule, u64)) {
        if self.all_ns > 0 {
            take(&PurgeRule::all(), self.all_ns);
        }
        self.keys.iter().for_each(|(key, at_ns)| take(&PurgeRule::Key(*key), *at_ns));
        for (prefix, at_ns) in &self.prefixes {
            take(&PurgeRule::Prefix(prefix.clone()), *at_ns);
        }
        self.tags.iter().for_each(|(tag, at_ns)| take(&PurgeRule::Tag(tag.clone()), *at_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(list: &[(&str, u64)]) -> PurgeRules {
        let mut rules = PurgeRules::default();
        for (text, at_ns) in list {
            let rule = match text.strip_prefix('#') {
                Some(tag) => PurgeRule::Tag(tag.as_bytes().into()),
                None => PurgeRule::of_key(text.as_bytes()),
            };
            assert!(rules.add(rule, *at_ns));
        }
        rules
    }

    fn about(rules: &PurgeRules, key: &str, tags: &[&str]) -> u64 {
        let tags = tags.iter().map(|tag| tag.as_bytes());
        rules.newest_about(key.as_bytes(), &KeyDigest::of(key.as_bytes()), tags)
    }

    #[test]
    fn the_newest_rule_about_a_reply_is_found() {
        let rules = rules(&[("k/a", 1), ("k/*", 2), ("k/a/b*", 9), ("k/ab*", 3), ("#t", 4)]);
        assert_eq!(about(&rules, "k/a", &[]), 2);
        assert_eq!(about(&rules, "k/a", &["x", "t"]), 4);
        assert_eq!(about(&rules, "k/a/bc", &["t"]), 9);
        assert_eq!(about(&rules, "k/abz", &[]), 3);
        assert_eq!(about(&rules, "k", &["x"]), 0);
        assert_eq!(about(&rules, "z", &[]), 0);
        assert_eq!(about(&rules, "", &[]), 0);
    }

    /// Every prefix of every key, found by the ordered list and by comparing all.
    #[test]
    fn prefixes_are_found_as_by_comparing_them_all() {
        let mut number = 7_u32;
        let mut next = |below: u32| {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (number >> 16) % below
        };
        let mut text =
            |length| -> Vec<u8> { (0..next(length)).map(|_| b"ab"[next(2) as usize]).collect() };
        for _ in 0..300 {
            let mut rules = PurgeRules::default();
            let list: Vec<_> = (1..20).map(|at_ns| (text(7), at_ns)).collect();
            for (prefix, at_ns) in &list {
                rules.add(PurgeRule::Prefix(prefix[..].into()), *at_ns);
            }
            let key = text(9);
            let matching = list.iter().filter(|(prefix, _)| key.starts_with(prefix));
            let expected = matching.map(|(_, at_ns)| *at_ns).max().unwrap_or(0);
            let found = rules.newest_about(&key, &KeyDigest::of(&key), std::iter::empty());
            assert_eq!(found, expected, "{list:?} {key:?}");
        }
    }

    #[test]
    fn a_wider_rule_replaces_those_before() {
        assert_eq!(rules(&[("k/a*", 1), ("k/b*", 2), ("k/*", 3), ("k/c*", 4)]).len(), 2);
        let all = rules(&[("k/a*", 1), ("k", 2), ("#t", 3), ("*", 4), ("#u", 5)]);
        assert_eq!((all.len(), all.bytes), (2, 1));
        assert_eq!((about(&all, "z", &[]), about(&all, "z", &["u"])), (4, 5));
    }

    #[test]
    fn a_rule_that_says_no_more_changes_nothing() {
        let mut rules = rules(&[("*", 3), ("k", 5), ("l*", 5), ("#t", 5)]);
        for (text, at_ns) in [("k", 5), ("l*", 4), ("m", 3)] {
            assert!(!rules.add(PurgeRule::of_key(text.as_bytes()), at_ns), "{text}");
        }
        assert!(!rules.add(PurgeRule::Tag((*b"t").into()), 5));
        assert_eq!((rules.len(), rules.bytes), (4, 2));
    }

    #[test]
    fn rules_are_forgotten_up_to_a_moment() {
        let mut rules = rules(&[("*", 1), ("k", 2), ("l*", 3), ("#t", 4)]);
        rules.forget_until(2);
        assert_eq!((rules.len(), rules.bytes, about(&rules, "k", &[])), (2, 2, 0));
        assert_eq!((rules.oldest_after(0), rules.oldest_after(3), rules.newest_ns()), (3, 4, 4));
        rules.forget_until(4);
        assert!(rules.is_empty());
    }

    #[test]
    fn a_full_list_purges_too_much_rather_than_too_little() {
        let mut rules = PurgeRules::default();
        let key = |number: u64| KeyDigest::of(&number.to_le_bytes());
        let full = RULES_MAX as u64 + 1;
        (1..=full).for_each(|number| _ = rules.add(PurgeRule::Key(key(number)), number));
        assert_eq!(rules.broadened(), 1);
        assert!(rules.len() <= RULES_MAX / 2 + 2);
        for number in [1, full / 2, full] {
            let found = rules.newest_about(b"", &key(number), std::iter::empty());
            assert!(found >= number, "{number}: {found}");
        }
        let other = rules.newest_about(b"", &key(0), std::iter::empty());
        assert!((full / 2 - 1..=full / 2 + 1).contains(&other));
        let long = PurgeRule::Tag(vec![0; RULE_BYTES_MAX + 1].into());
        rules.add(long, full + 1);
        assert_eq!((rules.len(), rules.bytes, rules.newest_ns()), (1, 0, full + 1));
    }
}

//! Choosing the location for a path: exact names, the longest prefix, then regular expressions.

use std::collections::HashSet;

use conf::{Error, Span};

use super::matcher::Matcher;
use super::{LocationId, Site};
use crate::exchange::Exchange;
use crate::regex::{MatchError, Pattern};

/// The locations directly inside a server or another location.
#[derive(Default)]
pub struct Locations {
    /// Sorted by name.
    exact: Vec<(Box<[u8]>, LocationId)>,
    /// Sorted by name.
    prefixes: Vec<Prefix>,
    patterns: Vec<(Pattern, LocationId)>,
    /// Names without the slash they end with, sorted: who asks for one is sent to the name.
    slashless: Vec<(Box<[u8]>, LocationId)>,
    named: Vec<(Box<[u8]>, LocationId)>,
}

struct Prefix {
    name: Box<[u8]>,
    id: LocationId,
    /// `^~`: regular expressions are not asked.
    final_prefix: bool,
    /// The longest of the others that this one begins with.
    shorter: Option<usize>,
}

impl Locations {
    /// Sorts the locations of one level; each comes with the place that says it. `adds_slash`:
    /// which of them are meant by their name without its slash, too.
    pub(crate) fn build(
        list: Vec<(Matcher, LocationId, Span)>,
        adds_slash: impl Fn(LocationId) -> bool,
    ) -> Result<Self, Error> {
        refuse_duplicates(&list)?;
        let mut locations = Self::default();
        for (matcher, id, _) in list {
            match matcher {
                Matcher::Exact(name) => locations.exact.push((name, id)),
                Matcher::Prefix(name, final_prefix) => {
                    locations.prefixes.push(Prefix { name, id, final_prefix, shorter: None });
                }
                Matcher::Pattern(pattern) => locations.patterns.push((pattern, id)),
                Matcher::Named(name) => locations.named.push((name, id)),
            }
        }
        locations.exact.sort_by(|a, b| a.0.cmp(&b.0));
        locations.prefixes.sort_by(|a, b| a.name.cmp(&b.name));
        locations.link();
        locations.slashless = locations.find_slashless(adds_slash);
        Ok(locations)
    }

    /// A location that has the name without its slash answers for it.
    fn find_slashless(
        &self,
        adds_slash: impl Fn(LocationId) -> bool,
    ) -> Vec<(Box<[u8]>, LocationId)> {
        let exact = self.exact.iter().map(|(name, id)| (name, *id));
        let prefixes = self.prefixes.iter().map(|prefix| (&prefix.name, prefix.id));
        let mut found = Vec::new();
        for (name, id) in exact.chain(prefixes).filter(|(_, id)| adds_slash(*id)) {
            let Some(slashless) = name.strip_suffix(b"/") else { continue };
            let is_taken = self.exact(slashless).is_some()
                || self.prefixes.iter().any(|prefix| *prefix.name == *slashless);
            if !is_taken && !slashless.is_empty() {
                found.push((slashless.into(), id));
            }
        }
        // Where both are there, it is the exact location that decides.
        found.sort_by(|a: &(Box<[u8]>, _), b| a.0.cmp(&b.0));
        found.dedup_by(|later, first| later.0 == first.0);
        found
    }

    fn slashless(&self, uri: &[u8]) -> Option<LocationId> {
        let at = self.slashless.binary_search_by(|(name, _)| (**name).cmp(uri)).ok()?;
        Some(self.slashless[at].1)
    }

    /// In order of names, what a name begins with comes before it: a stack finds the longest.
    fn link(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        for at in 0..self.prefixes.len() {
            while let Some(&last) = open.last() {
                if self.prefixes[at].name.starts_with(&self.prefixes[last].name) {
                    break;
                }
                open.pop();
            }
            self.prefixes[at].shorter = open.last().copied();
            open.push(at);
        }
    }

    /// The location `@name`.
    pub fn named(&self, name: &[u8]) -> Option<LocationId> {
        self.named.iter().find(|(own, _)| &**own == name).map(|(_, id)| *id)
    }

    /// Whether no path leads to any of them.
    fn is_empty(&self) -> bool {
        self.prefixes.is_empty() && self.exact.is_empty() && self.patterns.is_empty()
    }

    fn exact(&self, uri: &[u8]) -> Option<LocationId> {
        let at = self.exact.binary_search_by(|(name, _)| (**name).cmp(uri)).ok()?;
        Some(self.exact[at].1)
    }

    fn longest_prefix(&self, uri: &[u8]) -> Option<&Prefix> {
        let after = self.prefixes.partition_point(|prefix| *prefix.name <= *uri);
        let mut at = after.checked_sub(1);
        while let Some(index) = at {
            let prefix = &self.prefixes[index];
            if uri.starts_with(&prefix.name) {
                return Some(prefix);
            }
            at = prefix.shorter;
        }
        None
    }
}

/// nginx looks for duplicates in the order of names, and names the place of the later one.
fn refuse_duplicates(list: &[(Matcher, LocationId, Span)]) -> Result<(), Error> {
    let mut seen = HashSet::new();
    let is_static = |matcher: &Matcher| matches!(matcher, Matcher::Exact(_) | Matcher::Prefix(..));
    let statics = list.iter().filter(|(matcher, ..)| is_static(matcher));
    let duplicates = statics.filter(|(matcher, ..)| {
        !seen.insert((matcher.name(), matches!(matcher, Matcher::Exact(_))))
    });
    match duplicates.min_by_key(|(matcher, ..)| matcher.name()) {
        None => Ok(()),
        Some((matcher, _, at)) => {
            let name = String::from_utf8_lossy(matcher.name());
            Err(Error::at(*at, format!("duplicate location \"{name}\"")))
        }
    }
}

/// What was found.
#[derive(Clone, Copy)]
enum BestMatch {
    /// Nothing here.
    Nothing,
    /// The longest prefix so far; regular expressions may overrule it.
    Prefix(LocationId),
    /// This one and no other.
    Settled(LocationId),
    /// The client is to ask for the name of this one.
    Slashless(LocationId),
}

/// The location of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) location: LocationId,
    /// Whether the client is sent to the location's name: it has left out the slash.
    pub(crate) adds_slash: bool,
}

/// The location for the exchange's path in its server.
pub(crate) fn choose(site: &Site, x: &mut Exchange) -> Result<Chosen, MatchError> {
    let server = site.server(x.server);
    let uri = std::mem::take(&mut x.request.uri);
    let found = among(site, &server.locations, &uri, x);
    x.request.uri = uri;
    let (location, adds_slash) = match found? {
        BestMatch::Nothing => (server.outer, false),
        BestMatch::Prefix(id) | BestMatch::Settled(id) => (id, false),
        BestMatch::Slashless(id) => (id, true),
    };
    Ok(Chosen { location, adds_slash })
}

/// Prefixes first, the nested ones of the longest before the regular expressions of this level.
fn among(
    site: &Site,
    level: &Locations,
    uri: &[u8],
    x: &mut Exchange,
) -> Result<BestMatch, MatchError> {
    if level.is_empty() {
        return Ok(BestMatch::Nothing);
    }
    if let Some(id) = level.exact(uri) {
        return Ok(BestMatch::Settled(id));
    }
    if let Some(id) = level.slashless(uri) {
        return Ok(BestMatch::Slashless(id));
    }
    let mut found = BestMatch::Nothing;
    if let Some(prefix) = level.longest_prefix(uri) {
        found = match among(site, &site.location(prefix.id).inner, uri, x)? {
            BestMatch::Nothing => BestMatch::Prefix(prefix.id),
            deeper => deeper,
        };
        // `^~` is about the regular expressions of its own level; outer ones are still asked.
        if prefix.final_prefix || matches!(found, BestMatch::Settled(_) | BestMatch::Slashless(_)) {
            return Ok(found);
        }
    }
    for (pattern, id) in &level.patterns {
        if pattern.matches(uri, x)? {
            return Ok(match among(site, &site.location(*id).inner, uri, x)? {
                BestMatch::Prefix(inner) | BestMatch::Settled(inner) => BestMatch::Settled(inner),
                slashless @ BestMatch::Slashless(_) => slashless,
                BestMatch::Nothing => BestMatch::Settled(*id),
            });
        }
    }
    Ok(found)
}

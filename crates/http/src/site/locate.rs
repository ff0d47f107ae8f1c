//! Chooses the location for a path: exact names, the longest prefix, then regular expressions.

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
    /// Names of locations without their final slash, sorted. A request for one is redirected to the
    /// name.
    slashless: Vec<(Box<[u8]>, LocationId)>,
    named: Vec<(Box<[u8]>, LocationId)>,
}

struct Prefix {
    name: Box<[u8]>,
    id: LocationId,
    /// `^~`: regular expressions are not tried.
    final_prefix: bool,
    /// The longest other prefix that is a prefix of this one.
    shorter: Option<usize>,
}

impl Locations {
    /// Sorts the locations of one level; each comes with its position in the configuration.
    /// `adds_slash` tells which of them are also found by their name without its final slash.
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

    /// The names without their final slash, unless another location has that name.
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
        // An exact location comes before a prefix with the same name.
        found.sort_by(|a: &(Box<[u8]>, _), b| a.0.cmp(&b.0));
        found.dedup_by(|later, first| later.0 == first.0);
        found
    }

    fn slashless(&self, uri: &[u8]) -> Option<LocationId> {
        let at = self.slashless.binary_search_by(|(name, _)| (**name).cmp(uri)).ok()?;
        Some(self.slashless[at].1)
    }

    /// Sets `shorter`. In the order of names, a prefix of a name comes before it, so that a stack
    /// has the longest on top.
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

    /// Whether there are only named locations, or none.
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

/// Like nginx, looks for duplicates in the order of names, and reports the position of the later
/// one.
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

#[derive(Clone, Copy)]
enum BestMatch {
    Nothing,
    /// The longest prefix; regular expressions may take precedence.
    Prefix(LocationId),
    Final(LocationId),
    /// The final result: redirect to the name of this location, with its slash.
    Slashless(LocationId),
}

/// The location chosen for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) location: LocationId,
    /// Whether to redirect to the location's name, because the path lacks its final slash.
    pub(crate) adds_slash: bool,
}

/// Chooses the location for the exchange's path in its server.
pub(crate) fn choose(site: &Site, x: &mut Exchange) -> Result<Chosen, MatchError> {
    let server = site.server(x.server);
    let uri = std::mem::take(&mut x.request.uri);
    let found = find_in_level(site, &server.locations, &uri, x);
    x.request.uri = uri;
    let (location, adds_slash) = match found? {
        BestMatch::Nothing => (server.outer, false),
        BestMatch::Prefix(id) | BestMatch::Final(id) => (id, false),
        BestMatch::Slashless(id) => (id, true),
    };
    Ok(Chosen { location, adds_slash })
}

/// Chooses among the locations of a level: prefixes first, with those nested in the longest one
/// before the regular expressions of this level.
fn find_in_level(
    site: &Site,
    level: &Locations,
    uri: &[u8],
    x: &mut Exchange,
) -> Result<BestMatch, MatchError> {
    if level.is_empty() {
        return Ok(BestMatch::Nothing);
    }
    if let Some(id) = level.exact(uri) {
        return Ok(BestMatch::Final(id));
    }
    if let Some(id) = level.slashless(uri) {
        return Ok(BestMatch::Slashless(id));
    }
    let mut found = BestMatch::Nothing;
    if let Some(prefix) = level.longest_prefix(uri) {
        found = match find_in_level(site, &site.location(prefix.id).inner, uri, x)? {
            BestMatch::Nothing => BestMatch::Prefix(prefix.id),
            deeper => deeper,
        };
        // `^~` prevents the regular expressions of its own level; those of outer levels are tried.
        if prefix.final_prefix || matches!(found, BestMatch::Final(_) | BestMatch::Slashless(_)) {
            return Ok(found);
        }
    }
    for (pattern, id) in &level.patterns {
        if pattern.matches(uri, x)? {
            return Ok(match find_in_level(site, &site.location(*id).inner, uri, x)? {
                BestMatch::Prefix(inner) | BestMatch::Final(inner) => BestMatch::Final(inner),
                slashless @ BestMatch::Slashless(_) => slashless,
                BestMatch::Nothing => BestMatch::Final(*id),
            });
        }
    }
    Ok(found)
}

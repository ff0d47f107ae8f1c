//! Values of `*_cache_purge` and `*_cache_purge_tags`.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use conf::{Directive, Load, Predicates, Result, Template, Value, Word};
use session::access::{AccessRules, RuleVerdict};
use zones::Zones;

use super::path::{CacheStore, DeclaredCaches};
use crate::exchange::Exchange;
use crate::site::{BlockContext, LocationBuilder};

/// `*_cache_purge`
#[derive(Clone)]
pub enum CachePurge {
    Off,
    /// As in NGINX Plus: a request purges its key if one of these strings is true.
    When(Predicates),
    /// Requests of a method purge their key, or everything.
    Method(PurgeMethod),
    /// All requests of the location purge a key of a zone.
    Separate(Arc<SeparatePurge>),
}

#[derive(Clone)]
pub struct PurgeMethod {
    pub(super) method: Box<[u8]>,
    pub(super) is_about_all: bool,
    /// Who may; `None`: everybody who may use the location.
    pub(super) from: Option<AccessRules>,
    pub(super) line: Directive,
}

/// What the requests of a location purge in a zone.
pub struct SeparatePurge {
    pub(super) zone: Box<[u8]>,
    /// The key, or the tags.
    pub(super) what: Template,
    pub(super) line: Directive,
}

/// `*_cache_purge_tags`
#[derive(Clone)]
pub struct TagPurge(pub(super) Arc<SeparatePurge>);

impl Value for CachePurge {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let first = Template::compile(from.arg(0), from, load)?;
        let second = from.args.get(1).map(|word| &*word.text);
        match (first.as_fixed(), second) {
            (Some(b"off"), None) => Ok(Self::Off),
            (Some(_), None | Some(b"from" | b"purge_all")) => {
                PurgeMethod::parse(from).map(Self::Method)
            }
            (Some(_), Some(_)) if from.args.len() == 2 => {
                SeparatePurge::parse(from, load).map(Arc::new).map(Self::Separate)
            }
            _ => Predicates::parse(from, load).map(Self::When),
        }
    }
}

impl PurgeMethod {
    fn parse(line: &Directive) -> Result<Self> {
        let method = match &*line.arg(0).text {
            b"on" => b"PURGE",
            method => method,
        };
        let mut purge =
            Self { method: method.into(), is_about_all: false, from: None, line: line.clone() };
        let mut rest = &line.args[1..];
        if let [word, after @ ..] = rest
            && *word.text == *b"purge_all"
        {
            (purge.is_about_all, rest) = (true, after);
        }
        match rest {
            [] => {}
            [word, addresses @ ..] if *word.text == *b"from" && !addresses.is_empty() => {
                purge.from = Some(allowed(addresses, line)?);
            }
            [word, ..] => {
                let error = line.error_at(word, format!("invalid parameter \"{word}\""));
                return Err(error.help("expected: [purge_all] [from ADDRESS ...]"));
            }
        }
        Ok(purge)
    }

    /// Whether a client may purge.
    pub(super) fn allows(&self, x: &Exchange) -> bool {
        let ip = x.client.peer.map(|peer| peer.ip());
        let verdict = |rules: &AccessRules| rules.verdict(ip) == Some(RuleVerdict::Allow);
        self.from.as_ref().is_none_or(verdict)
    }
}

/// The rules that allow these addresses.
fn allowed(addresses: &[Word], line: &Directive) -> Result<AccessRules> {
    let mut rules = AccessRules::default();
    for word in addresses {
        let invalid = || line.error_at(word, format!("invalid parameter \"{word}\""));
        rules.allow(&word.text).ok_or_else(invalid)?;
    }
    Ok(rules)
}

impl SeparatePurge {
    fn parse(line: &Directive, load: &mut Load<'_>) -> Result<Self> {
        if matches!(
            load.registry.of::<BlockContext>(),
            BlockContext::Outside | BlockContext::Server
        ) {
            let what = format!("\"{}\" with a zone is not allowed here", line.name);
            return Err(line.error(what).help("it belongs in a location of its own"));
        }
        let zone = &line.arg(0).text;
        Zones::of(load).mention::<CacheStore>(zone, None, line)?;
        let what = Template::compile(line.arg(1), line, load)?;
        Ok(Self { zone: zone.clone(), what, line: line.clone() })
    }

    /// Whether a location has the line itself: it does not go on to those inside.
    pub(super) fn is_of(&self, place: &LocationBuilder<'_, '_>) -> bool {
        place.lines.contains(&self.line.name.text)
    }

    /// The zone, which requests of the location purge from now on.
    pub(super) fn open(&self, place: &mut LocationBuilder<'_, '_>) -> Result<Arc<CacheStore>> {
        let declared = &place.load.own.of::<DeclaredCaches>().0;
        let Some(store) = declared.get(&self.zone).cloned() else {
            let (name, zone) = (&self.line.name, String::from_utf8_lossy(&self.zone));
            return Err(self.line.error(format!("\"{name}\" zone \"{zone}\" is unknown")));
        };
        store.is_purgeable.store(true, Ordering::Relaxed);
        let name = self.line.name.to_string();
        let family = name.split_inclusive('_').next().unwrap_or_default();
        let pass = format!("{family}pass");
        if place.lines.iter().any(|line| **line == *pass.as_bytes()) {
            let what = format!("\"{name}\" with a zone is incompatible with \"{pass}\"");
            return Err(self.line.error(what));
        }
        place.needs_access_rules(self.line.clone());
        Ok(store)
    }
}

impl Value for TagPurge {
    const SYNTAX: &'static str = "ZONE TAGS";
    const ARGS: RangeInclusive<usize> = 2..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        SeparatePurge::parse(from, load).map(Arc::new).map(Self)
    }
}

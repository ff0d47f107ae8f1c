//! Zones: named state that outlives the configuration it is named in.
//!
//! A reload finds a zone that it names again, unchanged, if name, kind and size are the same. A
//! zone that it does not name is freed with the last configuration that did. The kind is the type
//! of the state ([`ZoneState`]): this crate does not know the purpose of any zone. A state does its
//! own locking.
//!
//! A process has all its workers as threads, so an `Arc` is enough for them. A second process
//! serves beside it for a while when a reload has to start one, and in an upgrade; each kind
//! declares how its state is treated then ([`TwoProcesses`]), and docs/reload.md has a row for it.
//! A kind that is rebuilt from files, or handed over as text, adds its rule to that enum together
//! with the code that does it. Deliberately absent: shared memory itself, which belongs to the
//! kinds that use it.
//!
//! The invariant: a configuration that fails leaves the zones of the one before as they were.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Span, Subsystem};

/// State that a zone can have.
pub trait ZoneState: Any + Send + Sync {
    /// The directives that use the state.
    const DIRECTIVES: &'static [&'static str];
    /// How the state is treated while two processes serve.
    const TWO_PROCESSES: TwoProcesses;
}

/// How state is treated while a second process serves beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TwoProcesses {
    /// Each process has its own; the new one begins without any.
    Private,
    /// Each process has its own; the new one reads the same files.
    Reread,
    /// Both have the same: they share memory, or the master tells both of every change.
    Shared,
}

/// A kind of state, for documents and checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZoneRule {
    /// The directives that use the state.
    pub directives: &'static [&'static str],
    /// How the state is treated while two processes serve.
    pub two_processes: TwoProcesses,
}

/// The zones of one configuration.
#[derive(Clone, Default)]
pub struct Zones {
    /// nginx's shared memory zones, which have one space of names for all kinds.
    named: BTreeMap<Box<[u8]>, NamedZone>,
    /// The first directive that names each zone, and its position.
    lines: HashMap<Box<[u8]>, (Box<str>, Span)>,
    kept: HashMap<Key, KeptState>,
    /// The kinds of which there is at least one zone.
    rules: BTreeSet<ZoneRule>,
    /// The state of the previous configuration, while this one is read.
    before: Option<Box<Zones>>,
    /// The subsystem whose lines are read: no state is shared between subsystems.
    subsystem: Subsystem,
}

type Key = (ZoneKind, Box<[u8]>);
/// The subsystem, and the type of the state.
type ZoneKind = (Subsystem, TypeId);
type KeptState = Arc<dyn Any + Send + Sync>;

/// The declaration of a zone.
#[derive(Clone, Copy, PartialEq, Eq)]
struct NamedZone {
    kind: ZoneKind,
    /// 0 until a line declares the size.
    size: u64,
}

impl Zones {
    /// The zones of a configuration that takes over from another.
    pub fn after(before: &Zones) -> Self {
        let Self { named, kept, .. } = before.clone();
        let before = Some(Box::new(Self { named, kept, ..Self::default() }));
        Self { before, ..Self::default() }
    }

    /// The zones of the configuration that is being read, for the subsystem whose lines are read.
    pub fn of<'l>(load: &'l mut Load<'_>) -> &'l mut Self {
        let subsystem = load.subsystem;
        let zones: &mut Self = load.registry.of();
        zones.subsystem = subsystem;
        zones
    }

    /// The kinds of which the configuration has a zone.
    pub fn rules(&self) -> impl Iterator<Item = ZoneRule> {
        self.rules.iter().copied()
    }

    /// Records that a line names a shared memory zone; a line that only uses the zone has no
    /// `size`. All lines must name it for the same type of state.
    pub fn mention<T: ZoneState>(
        &mut self,
        name: &[u8],
        size: Option<u64>,
        from: &Directive,
    ) -> Result<()> {
        let kind = self.kind::<T>();
        self.note_rule::<T>();
        let said = size.unwrap_or(0);
        let (directive, at) = self
            .lines
            .entry(name.into())
            .or_insert_with(|| (from.name.to_string().into(), from.words()));
        let zone = self.named.entry(name.into()).or_insert(NamedZone { kind, size: said });
        let shown = String::from_utf8_lossy(name);
        if zone.kind != kind {
            let message = "is already declared for a different use";
            let error = from.error(format!("the shared memory zone \"{shown}\" {message}"));
            return Err(error.elsewhere(format!("it is named by \"{directive}\""), *at));
        }
        if zone.size == 0 {
            zone.size = said;
        }
        if said != 0 && said != zone.size {
            let message = "conflicts with already declared size";
            let NamedZone { size, .. } = zone;
            let error = from.error(format!(
                "the size {said} of shared memory zone \"{shown}\" {message} {size}"
            ));
            return Err(error.elsewhere(format!("it is named by \"{directive}\""), *at));
        }
        Ok(())
    }

    /// The state of a zone that was mentioned. `open` is given the state that the previous
    /// configuration has under the name, if the size is the same.
    pub fn open<T: ZoneState>(
        &mut self,
        name: &[u8],
        open: impl FnOnce(Option<Arc<T>>) -> Result<Arc<T>>,
    ) -> Result<Arc<T>> {
        let now = self.named.get(name);
        let before = self.before.as_ref().and_then(|before| before.named.get(name));
        let same = now.is_some() && now == before;
        let old = if same { self.before::<T>(name) } else { None };
        let state = open(old)?;
        self.kept.insert((self.kind::<T>(), name.into()), state.clone());
        Ok(state)
    }

    /// State whose size no line declares, by type and name. Each kind has its own names. `make` is
    /// given the state of the previous configuration.
    pub fn keep<T: ZoneState>(
        &mut self,
        name: &[u8],
        make: impl FnOnce(Option<Arc<T>>) -> Arc<T>,
    ) -> Arc<T> {
        self.note_rule::<T>();
        let state = make(self.before::<T>(name));
        self.kept.insert((self.kind::<T>(), name.into()), state.clone());
        state
    }

    /// All state of that type, by subsystem and name.
    pub fn all<T: ZoneState>(&self) -> Vec<Arc<T>> {
        let is_of_kind = |(((_, kind), _), _): &(&Key, &KeptState)| *kind == TypeId::of::<T>();
        let mut found: Vec<_> = self.kept.iter().filter(is_of_kind).collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        found.into_iter().filter_map(|(_, state)| state.clone().downcast().ok()).collect()
    }

    fn before<T: ZoneState>(&self, name: &[u8]) -> Option<Arc<T>> {
        let kept = &self.before.as_ref()?.kept;
        kept.get(&(self.kind::<T>(), name.into()))?.clone().downcast().ok()
    }

    fn note_rule<T: ZoneState>(&mut self) {
        self.rules.insert(ZoneRule { directives: T::DIRECTIVES, two_processes: T::TWO_PROCESSES });
    }

    fn kind<T: ZoneState>(&self) -> ZoneKind {
        (self.subsystem, TypeId::of::<T>())
    }

    /// Rejects zones that are used but declared nowhere. Called after the whole configuration was
    /// read.
    pub fn check(&self) -> Result<()> {
        match self.named.iter().find(|(_, zone)| zone.size == 0) {
            None => Ok(()),
            Some((name, _)) => {
                let shown = String::from_utf8_lossy(name);
                let error = Error::bare(format!("zero size shared memory zone \"{shown}\""));
                let declared = self.named.iter().filter(|(_, zone)| zone.size > 0);
                let declared = declared.filter_map(|(name, _)| std::str::from_utf8(name).ok());
                let error =
                    error.help("it is not declared with a size anywhere").meant(name, declared);
                Err(Error { mark: self.lines.get(name).map(|(_, at)| *at), ..error })
            }
        }
    }

    /// Releases the state of the previous configuration: this one is complete.
    pub fn settle(&mut self) {
        self.before = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct Counts(AtomicU32);
    struct Other;

    impl ZoneState for Counts {
        const DIRECTIVES: &'static [&'static str] = &["counts"];
        const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
    }

    impl ZoneState for Other {
        const DIRECTIVES: &'static [&'static str] = &["other"];
        const TWO_PROCESSES: TwoProcesses = TwoProcesses::Shared;
    }

    fn line() -> Directive {
        Directive::sample("zone", "a")
    }

    fn counts(zones: &mut Zones, size: u64) -> Arc<Counts> {
        zones.mention::<Counts>(b"a", Some(size), &line()).unwrap();
        let open = |old: Option<_>| Ok(old.unwrap_or_else(|| Arc::new(Counts(0.into()))));
        zones.open(b"a", open).unwrap()
    }

    #[test]
    fn state_outlives_configurations_that_name_it_alike() {
        let mut first = Zones::default();
        counts(&mut first, 1).0.store(7, Ordering::Relaxed);
        first.settle();
        let mut second = Zones::after(&first);
        assert_eq!(counts(&mut second, 1).0.load(Ordering::Relaxed), 7);
        let mut larger = Zones::after(&first);
        assert_eq!(counts(&mut larger, 2).0.load(Ordering::Relaxed), 0);
        // The failed configuration has changed nothing.
        assert_eq!(counts(&mut Zones::after(&first), 1).0.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn state_that_no_configuration_names_is_freed() {
        let mut first = Zones::default();
        let state = Arc::downgrade(&counts(&mut first, 1));
        first.settle();
        let mut second = Zones::after(&first);
        drop(first);
        assert!(state.upgrade().is_some());
        second.settle();
        assert!(state.upgrade().is_none());
    }

    #[test]
    fn a_kind_has_names_of_its_own_where_nginx_has_no_zone() {
        let mut first = Zones::default();
        counts(&mut first, 1);
        let own = first.keep(b"a", |old| old.unwrap_or_else(|| Arc::new(Other)));
        let mut second = Zones::after(&first);
        assert!(Arc::ptr_eq(&second.keep(b"a", |old| old.unwrap()), &own));
    }

    #[test]
    fn all_state_of_a_kind_is_found_in_order() {
        let mut zones = Zones { subsystem: Subsystem::Stream, ..Zones::default() };
        let stream = zones.keep(b"a", |_| Arc::new(Other));
        zones.subsystem = Subsystem::Http;
        let [b, a] = [b"b", b"a"].map(|name| zones.keep(name, |_| Arc::new(Other)));
        zones.keep(b"c", |_| Arc::new(Counts(1.into())));
        let found = zones.all::<Other>();
        assert_eq!(found.len(), 3);
        assert!(found.iter().zip([a, b, stream]).all(|(found, kept)| Arc::ptr_eq(found, &kept)));
    }

    #[test]
    fn kinds_of_mentioned_and_kept_zones_are_listed_once() {
        let mut zones = Zones::default();
        counts(&mut zones, 1);
        zones.keep(b"a", |_| Arc::new(Other));
        zones.keep(b"b", |_| Arc::new(Other));
        let rules: Vec<_> =
            zones.rules().map(|rule| (rule.directives[0], rule.two_processes)).collect();
        assert_eq!(rules, [("counts", TwoProcesses::Private), ("other", TwoProcesses::Shared)]);
    }

    #[test]
    fn errors_have_nginx_s_words() {
        let mut zones = Zones::default();
        zones.mention::<Counts>(b"a", None, &line()).unwrap();
        assert_eq!(zones.check().unwrap_err().message, "zero size shared memory zone \"a\"");
        zones.mention::<Counts>(b"a", Some(8), &line()).unwrap();
        zones.mention::<Counts>(b"a", None, &line()).unwrap();
        assert!(zones.check().is_ok());
        let refused = zones.mention::<Counts>(b"a", Some(9), &line()).unwrap_err().message;
        let size = "the size 9 of shared memory zone \"a\" conflicts with already declared size 8";
        assert_eq!(refused, size);
        let refused = zones.mention::<Other>(b"a", None, &line()).unwrap_err().message;
        let other = "the shared memory zone \"a\" is already declared for a different use";
        assert_eq!(refused, other);
        zones.subsystem = Subsystem::Stream;
        let refused = zones.mention::<Counts>(b"a", None, &line()).unwrap_err().message;
        assert_eq!(refused, other);
    }

    #[test]
    fn subsystems_share_no_state() {
        let mut zones = Zones::default();
        let new = |old: Option<Arc<Other>>| old.unwrap_or_else(|| Arc::new(Other));
        zones.subsystem = Subsystem::Http;
        let http = zones.keep(b"a", new);
        let mut next = Zones::after(&zones);
        next.subsystem = Subsystem::Stream;
        assert!(!Arc::ptr_eq(&next.keep(b"a", new), &http));
        next.subsystem = Subsystem::Http;
        assert!(Arc::ptr_eq(&next.keep(b"a", new), &http));
    }
}

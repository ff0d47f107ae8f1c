//! `limit_upstream_zone`, `limit_upstream_conn`, `limit_upstream_log_level` as
//! nginx-limit-upstream has them, and nginx Plus's `queue`.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Subsystem, Value, Word, units};
use observe::Level;
use zones::{TwoProcesses, ZoneState, Zones};

use crate::limit::{Backlog, SLOTS_MAX, WaitQueue};
use crate::memory::StateMemory;
use crate::nodes::NodeLimit;
use crate::pool::Handoff;
use crate::waiting::{GroupLimit, LimitRule, LimitZone};

/// The least size of a zone: eight pages.
const SIZE_MIN: u64 = 8 * 4096;
/// The default of `backlog=`.
const BACKLOG: u32 = 1000;
/// The default of `timeout=` of `queue`.
const QUEUE_TIMEOUT_MS: u64 = 60_000;

/// The zones that `limit_upstream_zone` has declared.
#[derive(Default)]
struct DeclaredZones(HashMap<Box<[u8]>, Option<Arc<LimitZone>>>);

/// The queue of a group without a zone: zones have names of their own.
struct UnnamedQueue(Arc<WaitQueue<Handoff>>);

/// `limit_upstream_zone NAME SIZE`. The size is checked and has no effect: the counts take no more
/// memory than the servers themselves.
pub(super) fn declare_zone(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let (name, size) = (from.arg(0), from.arg(1));
    let bytes = units::size(&size.text).ok_or_else(|| {
        from.error_at(size, format!("invalid size of limit_upstream_zone \"{size}\""))
    })?;
    if bytes < SIZE_MIN {
        return Err(from.error_at(name, format!("limit_upstream_zone \"{name}\" is too small")));
    }
    Zones::of(load).mention::<WaitQueue<Handoff>>(&name.text, Some(bytes), from)?;
    match load.registry.of::<DeclaredZones>().0.insert(name.text.clone(), None) {
        None => Ok(()),
        Some(_) => Err(from.error_at(name, format!("limit_upstream_zone \"{name}\" is duplicate"))),
    }
}

/// `limit_upstream_conn`
#[derive(Clone, Debug)]
pub struct LimitConn {
    zone: Box<[u8]>,
    limit: NodeLimit,
    backlog: u32,
    timeout_ms: Option<u64>,
}

impl Value for LimitConn {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (mut zone, mut limit, mut backlog, mut timeout_ms) = (None, None, BACKLOG, None);
        for word in &from.args {
            let (name, value) = split(&word.text);
            let invalid = |what| from.error_at(word, format!("invalid {what} \"{word}\""));
            match name {
                b"zone=" => zone = Some(Box::from(value)),
                b"limit=" => {
                    let number = |text: &_| number(text).ok_or_else(|| invalid("limit"));
                    limit = Some(NodeLimit::read(value, number, word, from, load)?);
                }
                b"backlog=" => backlog = number(value).ok_or_else(|| invalid("backlog"))?,
                b"nodelay" => backlog = 0,
                b"timeout=" => {
                    let time = units::milliseconds(value).ok_or_else(|| invalid("timeout"))?;
                    timeout_ms = Some(time);
                }
                b"instant_hook" => once(word, from, load),
                _ => return Err(invalid("parameter")),
            }
        }
        let missing =
            |what| from.error(format!("\"{}\" must have \"{what}\" parameter", from.name));
        let limit = limit.ok_or_else(|| missing("limit"))?;
        let zone: Box<[u8]> = zone.ok_or_else(|| missing("zone"))?;
        Zones::of(load).mention::<WaitQueue<Handoff>>(&zone, None, from)?;
        Ok(Self { zone, limit, backlog, timeout_ms })
    }
}

/// Whether the notice about `instant_hook` has been given.
#[derive(Default)]
struct Noticed(bool);

fn once(word: &Word, from: &Directive, load: &mut Load<'_>) {
    if !std::mem::replace(&mut load.registry.of::<Noticed>().0, true) {
        let message = "\"instant_hook\" has no effect, because the limit always applies first";
        load.warnings.push(from.error_at(word, message).level(conf::ErrorLevel::Notice));
    }
}

/// `queue N [timeout=T]`
#[derive(Clone, Copy, Debug)]
pub struct QueueLine {
    length: u32,
    timeout_ms: u64,
}

impl Value for QueueLine {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let invalid = |word: &Word| from.error_at(word, format!("invalid parameter \"{word}\""));
        let word = from.arg(0);
        let length = number(&word.text).ok_or_else(|| {
            from.error_at(word, format!("invalid value \"{word}\" in \"queue\" directive"))
        })?;
        let Some(word) = from.args.get(1) else {
            return Ok(Self { length, timeout_ms: QUEUE_TIMEOUT_MS });
        };
        let time = word.text.strip_prefix(b"timeout=").and_then(units::milliseconds);
        Ok(Self { length, timeout_ms: time.ok_or_else(|| invalid(word))? })
    }
}

conf::words! {
    /// `limit_upstream_log_level`
    pub enum LimitLogLevel {
        /// As errors.
        Error = "error",
        /// As warnings.
        Warn = "warn",
        /// As notices.
        Notice = "notice",
        /// As information.
        Info = "info",
    }
}

impl LimitLogLevel {
    fn level(self) -> Level {
        match self {
            Self::Error => Level::Error,
            Self::Warn => Level::Warn,
            Self::Notice => Level::Notice,
            Self::Info => Level::Info,
        }
    }
}

/// The lines of a group that limit its requests.
pub(super) struct LimitLines<'a> {
    pub conn: Option<&'a LimitConn>,
    pub queue: Option<QueueLine>,
    pub level: LimitLogLevel,
}

impl LimitLines<'_> {
    /// The limit of a group. Without a queue it holds for the servers that have `max_conns`, now or
    /// after a change.
    pub(super) fn limit(
        &self,
        group: u64,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<GroupLimit> {
        let level = self.level.level();
        let name = from.arg(0);
        Ok(match (self.conn, self.queue) {
            (None, None) => GroupLimit {
                zone: own(&name.text, load),
                group,
                rule: LimitRule::NoQueue,
                backlog: Backlog::OfQueue(0),
                timeout_ms: None,
                level,
            },
            (Some(_), Some(_)) => {
                let message =
                    "\"queue\" and \"limit_upstream_conn\" cannot be combined in upstream";
                return Err(from.error(format!("{message} \"{name}\"")));
            }
            (Some(conn), None) => GroupLimit {
                zone: shared(&conn.zone, load),
                group,
                rule: LimitRule::Zone { limit: conn.limit.clone() },
                backlog: Backlog::OfServer(conn.backlog),
                timeout_ms: conn.timeout_ms,
                level,
            },
            (None, Some(queue)) => GroupLimit {
                zone: own(&name.text, load),
                group,
                rule: LimitRule::Group,
                backlog: Backlog::OfQueue(queue.length),
                timeout_ms: Some(queue.timeout_ms),
                level,
            },
        })
    }
}

impl ZoneState for WaitQueue<Handoff> {
    const DIRECTIVES: &'static [&'static str] = &["limit_upstream_zone"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Shared;
}

impl ZoneState for UnnamedQueue {
    const DIRECTIVES: &'static [&'static str] = &["max_conns", "queue"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Shared;
}

/// The zone of that name. The counts are kept even if the size changes.
fn shared(name: &[u8], load: &mut Load<'_>) -> Arc<LimitZone> {
    if let Some(Some(zone)) = load.registry.of::<DeclaredZones>().0.get(name) {
        return zone.clone();
    }
    let new = || StateMemory::process().queue(&[b"zone ", name].concat());
    let queue = Zones::of(load).keep::<WaitQueue<Handoff>>(name, |old| old.unwrap_or_else(new));
    let zone = LimitZone::new(queue);
    load.registry.of::<DeclaredZones>().0.insert(name.into(), Some(zone.clone()));
    zone
}

/// The zone of a group that shares with none.
fn own(group: &[u8], load: &mut Load<'_>) -> Arc<LimitZone> {
    let kind: &[u8] = match load.subsystem {
        Subsystem::Stream => b"stream upstream ",
        Subsystem::Main | Subsystem::Http => b"upstream ",
    };
    let new = || Arc::new(UnnamedQueue(StateMemory::process().queue(&[kind, group].concat())));
    let own = Zones::of(load).keep(group, |old| old.unwrap_or_else(new));
    LimitZone::new(own.0.clone())
}

/// A number of requests: at least one.
fn number(text: &[u8]) -> Option<u32> {
    let number = units::number(text).filter(|number| *number > 0)?;
    Some(u32::try_from(number).unwrap_or(SLOTS_MAX).min(SLOTS_MAX))
}

fn split(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|&byte| byte == b'=') {
        Some(at) => text.split_at(at + 1),
        None => (text, b""),
    }
}

//! `limit_conn`: limits the number of simultaneous sessions with the same key.
//!
//! The count is exact over all workers. A session is counted until it ends: dropping its
//! [`CountedKeys`] in any way ends the count.

mod counts;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value, units};
use observe::Level;
use upstream::NodeLimit;

use crate::Session;
use crate::keyed::{KeyedZone, LogLevel};
use counts::{CountExceeded, CountedKeys, Counts};

type CountZone = KeyedZone<Counts, ()>;

/// nginx counts in 16 bits.
const COUNT_MAX: u64 = 65535;

/// The longest key that is counted, in bytes.
const KEY_MAX: usize = 255;

/// The `limit_conn` lines: each has the name of a zone and a limit.
#[derive(Clone)]
pub struct ConnLimits(Vec<(Box<[u8]>, NodeLimit)>);

/// Reads `limit_conn_zone`.
pub fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    CountZone::declare(from, load, (), |_, _, _| Ok(false)).map(drop)
}

impl Value for ConnLimits {
    const ARGS: RangeInclusive<usize> = 2..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut limits = Self(Vec::new());
        limits.repeat(from, load)?;
        Ok(limits)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let (name, most) = (from.arg(0), from.arg(1));
        CountZone::mention(&name.text, from, load)?;
        if self.0.iter().any(|(known, _)| *known == name.text) {
            return Err(from.refuse("is duplicate"));
        }
        let refuse = |message: String| Err(from.error_at(most, message));
        let number = |text: &_| match units::number(text) {
            None | Some(0) => refuse(format!("invalid number of connections \"{most}\"")),
            Some(number) if number > COUNT_MAX => {
                refuse("connection limit must be less 65536".into())
            }
            Some(number) => Ok(number as u32),
        };
        let limit = NodeLimit::read(&most.text, number, most, from, load)?;
        self.0.push((name.text.clone(), limit));
        Ok(())
    }
}

/// The state of limits in a session.
#[derive(Default)]
pub struct ConnLimited {
    /// The value of `$limit_conn_status`; `None` if the session was not counted.
    pub said: Option<&'static str>,
    held: Vec<CountedKeys>,
}

impl ConnLimited {
    /// Resets the state and ends the counts.
    pub fn clear(&mut self) {
        self.said = None;
        self.held.clear();
    }

    /// Takes over the counts of another session.
    pub fn take_over(&mut self, other: &mut Self) {
        self.said = other.said;
        self.held.append(&mut other.held);
    }
}

/// A session that can be limited.
pub trait ConnLimit: Session {
    /// The session's state of limits.
    fn limited(&mut self) -> &mut ConnLimited;
}

/// Limits that apply together.
pub struct ConnLimiter {
    limits: Box<[(Arc<CountZone>, NodeLimit)]>,
    level: Level,
    dry_run: bool,
}

impl ConnLimiter {
    /// Finds the zones, once all lines have been read.
    pub fn new(limits: &ConnLimits, level: LogLevel, dry_run: bool, load: &mut Load<'_>) -> Self {
        let limits =
            limits.0.iter().map(|(name, limit)| (CountZone::find(name, load), limit.clone()));
        Self { limits: limits.collect(), level: level.level(), dry_run }
    }

    /// Counts the session in every zone. False if the session must be rejected; it is then counted
    /// in no zone. Later calls for the same session return true.
    pub fn admit<X: ConnLimit>(&self, x: &mut X) -> bool {
        if x.limited().said.is_some() {
            return true;
        }
        for (zone, limit) in &self.limits {
            let Some(key) = zone.key(x, KEY_MAX) else { continue };
            x.limited().said = Some("PASSED");
            let held = CountedKeys::take(&zone.state, &key, limit.of_process());
            x.give_scratch(key);
            match held {
                Ok(held) => x.limited().held.push(held),
                Err(refused) => return self.refuse(x, refused, zone),
            }
            // One that refuses later ends the count here, too, but did not reject it here.
            if let Some(counters) = zone.counters() {
                counters.passed().add(1);
            }
        }
        true
    }

    /// Logs the refusal and ends the session's counts. Returns true in a dry run, in which the
    /// session goes on.
    fn refuse<X: ConnLimit>(&self, x: &mut X, refused: CountExceeded, zone: &CountZone) -> bool {
        let name = observe::Text(&zone.name);
        match refused {
            CountExceeded::Limit => {
                let dry_run = if self.dry_run { ", dry run," } else { "" };
                x.log(self.level, format_args!("limiting connections{dry_run} by zone \"{name}\""));
            }
            CountExceeded::Room => {
                let place = format_args!("in limit_conn_zone \"{name}\"");
                x.log(Level::Crit, format_args!("ngx_slab_alloc() failed: no memory {place}"));
            }
        }
        if let Some(counters) = zone.counters() {
            match refused {
                CountExceeded::Limit => counters.rejected_or(self.dry_run).add(1),
                CountExceeded::Room => counters.exhausted().add(1),
            }
        }
        let said = if self.dry_run { "REJECTED_DRY_RUN" } else { "REJECTED" };
        let limited = x.limited();
        limited.held.clear();
        limited.said = Some(said);
        self.dry_run
    }
}

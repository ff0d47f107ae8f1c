//! `limit_conn`: how many requests with the same key may be under way at a time.
//!
//! The count is exact over all workers. A request is counted from here to its end: what it holds
//! is the exchange's, and goes with it however it ends.

mod counts;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Bounded, Directive, Load, Result, Value, units};
use observe::Level;

use crate::exchange::{Exchange, Flow, State};
use crate::keyed::{KeyedZone, LogLevel};
use crate::site::Place;
use crate::variables::BuiltIn;
use counts::{Counts, Held, Refused};

conf::directives! {
    declare {
        /// Defines a zone that counts requests in progress by a key. Requests with an empty key are
        /// not counted.
        ///
        /// Syntax: STRING zone=NAME:SIZE
        ///
        /// ```nginx
        /// limit_conn_zone $binary_remote_addr zone=clients:10m;
        ///
        /// server {
        ///     limit_conn clients 20;
        /// }
        /// ```
        limit_conn_zone(2..=2) in MAIN => declare;
    }

    in MAIN | SERVER | LOCATION;

    /// The largest number of requests in progress with the same key.
    ///
    /// Syntax: ZONE NUMBER
    ///
    /// ```nginx
    /// limit_conn_zone $binary_remote_addr zone=clients:10m;
    ///
    /// server {
    ///     location /download/ {
    ///         limit_conn clients 2;
    ///     }
    /// }
    /// ```
    limit_conn: Option<Limits>,
    /// The level at which rejected requests are logged.
    limit_conn_log_level: LogLevel = "error",
    /// The status of rejected requests.
    ///
    /// ```nginx
    /// limit_conn_status 429;
    /// ```
    limit_conn_status: Bounded<400, 599> = "503",
    /// Whether requests are counted and logged, but not rejected.
    limit_conn_dry_run: bool = "off",
}

type Zone = KeyedZone<Counts, ()>;

/// nginx counts in 16 bits.
const COUNT_MAX: u64 = 65535;

/// The longest key that is counted.
const KEY_MAX: usize = 255;

/// `limit_conn` lines: names of zones, and how many.
#[derive(Clone)]
pub struct Limits(Vec<(Box<[u8]>, u32)>);

impl Value for Limits {
    const ARGS: RangeInclusive<usize> = 2..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut limits = Self(Vec::new());
        limits.repeat(from, load)?;
        Ok(limits)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let (name, most) = (from.arg(0), from.arg(1));
        Zone::mention(&name.text, from, load)?;
        if self.0.iter().any(|(known, _)| *known == name.text) {
            return Err(from.refuse("is duplicate"));
        }
        let refuse = |message: String| from.error_at(most, message);
        match units::number(&most.text) {
            None | Some(0) => Err(refuse(format!("invalid number of connections \"{most}\""))),
            Some(number) if number > COUNT_MAX => {
                Err(refuse("connection limit must be less 65536".into()))
            }
            Some(number) => {
                self.0.push((name.text.clone(), number as u32));
                Ok(())
            }
        }
    }
}

fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    Zone::declare(from, load, (), |_, _| Ok(false))
}

/// What limits have to do with an exchange.
#[derive(Default)]
pub(crate) struct Limited {
    said: Option<&'static str>,
    held: Vec<Held>,
}

impl State for Limited {
    fn clear(&mut self) {
        self.said = None;
        self.held.clear();
    }

    /// A subrequest is not counted where its main request has been, and the other way round.
    fn begin_subrequest(&mut self, parent: &Self) {
        self.said = parent.said;
    }

    /// What a subrequest is counted for is its main request's from its end on.
    fn end_subrequest(&mut self, subrequest: &mut Self) {
        self.said = subrequest.said;
        self.held.append(&mut subrequest.held);
    }
}

/// `$limit_conn_status`
pub(crate) const VARIABLES: &[BuiltIn] = &[BuiltIn::fresh("limit_conn_status", |x, out| {
    let said = x.states.find::<Limited>().and_then(|limited| limited.said);
    out.extend_from_slice(said.unwrap_or_default().as_bytes());
    said.is_some()
})];

/// The limits of a location.
struct Limiter {
    limits: Box<[(Arc<Zone>, u32)]>,
    level: Level,
    status: u16,
    dry_run: bool,
}

/// Counts before access is checked.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    let Some(Limits(limits)) = &conf.limit_conn else { return Ok(()) };
    let limits = limits.iter().map(|(name, most)| (Zone::find(name, place.load), *most));
    let limiter = Limiter {
        limits: limits.collect(),
        level: conf.limit_conn_log_level.level(),
        status: conf.limit_conn_status.0 as u16,
        dry_run: conf.limit_conn_dry_run,
    };
    place.preaccess(move |x| limiter.admit(x));
    Ok(())
}

impl Limiter {
    /// Counts the exchange in every zone, or in none. It is asked about once.
    fn admit(&self, x: &mut Exchange) -> Flow {
        if x.states.of::<Limited>().said.is_some() {
            return Flow::Next;
        }
        for (zone, most) in &self.limits {
            let Some(key) = zone.key(x, KEY_MAX) else { continue };
            x.states.of::<Limited>().said = Some("PASSED");
            let held = Held::take(&zone.state, &key, *most);
            x.give_scratch(key);
            match held {
                Ok(held) => x.states.of::<Limited>().held.push(held),
                Err(refused) => return self.refuse(x, refused, zone),
            }
        }
        Flow::Next
    }

    fn refuse(&self, x: &mut Exchange, refused: Refused, zone: &Zone) -> Flow {
        let name = observe::Text(&zone.name);
        match refused {
            Refused::Limit => {
                let dry_run = if self.dry_run { ", dry run," } else { "" };
                x.log(self.level, format_args!("limiting connections{dry_run} by zone \"{name}\""));
            }
            Refused::Room => {
                let place = format_args!("in limit_conn_zone \"{name}\"");
                x.log(Level::Crit, format_args!("ngx_slab_alloc() failed: no memory {place}"));
            }
        }
        x.states.of::<Limited>().held.clear();
        if self.dry_run {
            x.states.of::<Limited>().said = Some("REJECTED_DRY_RUN");
            return Flow::Next;
        }
        x.states.of::<Limited>().said = Some("REJECTED");
        Flow::Status(self.status)
    }
}

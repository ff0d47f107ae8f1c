//! `limit_req`: limits the rate of requests with the same key.
//!
//! Requests above the rate are delayed; those that would be delayed for too long are refused.
//! [`rates`] computes, [`limiter`] applies the results; the directives are here.

mod limiter;
mod rates;
mod shared;
#[cfg(test)]
mod shared_tests;
mod sums;
mod terms;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Bounded, Directive, Load, Result, Value, Word, units};
use session::store::{StoreAddress, StoreBook};

use crate::keyed::{LogLevel, missing_zone};
use crate::site::LocationBuilder;
use crate::variables::{BuiltIn, VariableTable};
use limiter::{RateLimit, RateLimited, RateLimiter};
use rates::REQUEST;
use shared::SharedZone;
use terms::{RateTerms, RateZone};

conf::directives! {
    declare {
        /// Defines a zone that counts requests by a key, and sets the rate at which requests with
        /// the same key are processed, per second or per minute. Requests with an empty key are not
        /// counted.
        ///
        /// With `sync=`, the limit holds over all machines that use the same store (Valkey or
        /// Redis). See docs/shared-limits.md.
        ///
        /// Syntax: STRING zone=NAME:SIZE rate=NUMBERr/s|NUMBERr/m [sync=ADDRESS]
        /// Differs: nginx has no `sync` here; NGINX Plus has another one.
        ///
        /// ```nginx
        /// limit_req_zone $binary_remote_addr zone=perip:10m rate=10r/s;
        ///
        /// server {
        ///     location /login {
        ///         limit_req zone=perip burst=20 nodelay;
        ///         limit_req_status 429;
        ///     }
        /// }
        /// ```
        limit_req_zone(3..=4) in MAIN => declare;
    }

    in MAIN | SERVER | LOCATION;

    /// Limits the rate of requests by a zone. Up to `burst=` requests above the rate are delayed.
    /// With `nodelay` they are processed at once, with `delay=NUMBER` only the first ones are. All
    /// others are rejected.
    ///
    /// Syntax: zone=NAME [burst=NUMBER] [nodelay | delay=NUMBER]
    ///
    /// ```nginx
    /// limit_req_zone $binary_remote_addr zone=perip:10m rate=10r/s;
    ///
    /// server {
    ///     limit_req zone=perip burst=20 delay=10;
    /// }
    /// ```
    limit_req: Option<LimitReqLines>,
    /// The level at which rejected requests are logged. Delayed ones are logged one level below.
    ///
    /// ```nginx
    /// limit_req_log_level warn;
    /// ```
    limit_req_log_level: LogLevel = "error",
    /// The status of rejected requests.
    ///
    /// ```nginx
    /// limit_req_status 429;
    /// ```
    limit_req_status: Bounded<400, 599> = "503",
    /// Whether requests are counted and logged, but neither delayed nor rejected.
    ///
    /// ```nginx
    /// limit_req_dry_run on;
    /// ```
    limit_req_dry_run: bool = "off",
}

#[derive(Clone, Default)]
pub struct LimitReqLines(Vec<LimitReqLine>);

#[derive(Clone)]
struct LimitReqLine {
    zone: Box<[u8]>,
    /// The requests that may exceed the rate, and those of them that are not delayed, in
    /// thousandths.
    burst: u64,
    delay: u64,
}

impl Value for LimitReqLines {
    const ARGS: RangeInclusive<usize> = 1..=3;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut limits = Self::default();
        limits.repeat(from, load)?;
        Ok(limits)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let line = LimitReqLine::parse(from, load)?;
        if self.0.iter().any(|known| known.zone == line.zone) {
            return Err(from.refuse("is duplicate"));
        }
        self.0.push(line);
        Ok(())
    }
}

impl LimitReqLine {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (mut zone, mut burst, mut delay) = (None, 0, 0);
        for word in &from.args {
            let text = &*word.text;
            if let Some(name) = text.strip_prefix(b"zone=") {
                RateZone::mention(name, from, load)?;
                zone = Some(name);
            } else if let Some(number) = text.strip_prefix(b"burst=") {
                burst = requests(number, "burst value", word, from)?;
            } else if let Some(number) = text.strip_prefix(b"delay=") {
                delay = requests(number, "delay value", word, from)?;
            } else if text == b"nodelay" {
                delay = u64::MAX;
            } else {
                let error = from.error_at(word, format!("invalid parameter \"{word}\""));
                return Err(error.meant(text, ["nodelay", "burst=", "delay=", "zone="]));
            }
        }
        let zone = zone.ok_or_else(|| missing_zone(from))?.into();
        Ok(Self { zone, burst, delay })
    }
}

/// A number of requests, in thousandths.
fn requests(number: &[u8], what: &str, word: &Word, from: &Directive) -> Result<u64> {
    match units::number(number) {
        None | Some(0) => Err(from.error_at(word, format!("invalid {what} \"{word}\""))),
        Some(number) => Ok(number.saturating_mul(REQUEST)),
    }
}

/// The default rate of a zone: one request per second.
const RATE: u64 = REQUEST;

fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let zone = RateZone::declare(from, load, RateTerms::new(RATE), |own, word, load| {
        if let Some(text) = word.text.strip_prefix(b"sync=") {
            own.store = Some(StoreAddress::read(text, word, from, load)?);
            return Ok(true);
        }
        let Some(text) = word.text.strip_prefix(b"rate=") else { return Ok(false) };
        let (number, seconds) = match text {
            [number @ .., b'r', b'/', b's'] => (number, 1),
            [number @ .., b'r', b'/', b'm'] => (number, 60),
            number => (number, 1),
        };
        own.rate = requests(number, "rate", word, from)? / seconds;
        Ok(true)
    })?;
    if let Some(store) = &zone.parameters.store {
        StoreBook::join(store, Arc::new(SharedZone(zone.clone())), load);
    }
    Ok(())
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_limit_req_module",
    &[BuiltIn::fresh(
        "limit_req_status",
        "What `limit_req` did: `PASSED`, `DELAYED`, `REJECTED`, `DELAYED_DRY_RUN` or \
         `REJECTED_DRY_RUN`.",
        |x, out| {
            let status = x.states.find::<RateLimited>().and_then(|limited| limited.status);
            out.extend_from_slice(status.unwrap_or_default().as_bytes());
            status.is_some()
        },
    )],
);

/// Adds the limits, which are checked before access.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let Some(LimitReqLines(lines)) = &conf.limit_req else { return Ok(()) };
    let limit = |line: &LimitReqLine| {
        let LimitReqLine { zone, burst, delay } = line;
        let zone = RateZone::find(zone, location.load);
        zone.parameters.note_burst(*burst);
        RateLimit { zone, burst: *burst, delay: *delay }
    };
    let limiter = RateLimiter {
        limits: lines.iter().map(limit).collect(),
        level: conf.limit_req_log_level.level(),
        delay_level: conf.limit_req_log_level.of_delays(),
        status: conf.limit_req_status.0 as u16,
        dry_run: conf.limit_req_dry_run,
    };
    location.preaccess(move |x| limiter.admit(x));
    Ok(())
}

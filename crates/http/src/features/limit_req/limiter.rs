//! The limits of a location at work: all are asked, and only when all agree the request counts in
//! any. It then waits for as long as the one that takes longest says.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use net::{LentFuture, clock};
use observe::Level;

use super::rates::{REQUEST, RateExceeded, Rates};
use crate::exchange::{Exchange, FeatureState, Flow};
use crate::keyed::KeyedZone;
use crate::lru::LruEntry;

/// The longest key that is counted.
const KEY_MAX: usize = 65535;

/// A zone with its rate: thousandths of requests in a second.
pub(super) type RateZone = KeyedZone<Rates, u64>;

/// The limits of a location.
pub(super) struct RateLimiter {
    pub(super) limits: Box<[RateLimit]>,
    pub(super) level: Level,
    pub(super) delay_level: Level,
    pub(super) status: u16,
    pub(super) dry_run: bool,
}

/// One of them.
pub(super) struct RateLimit {
    pub(super) zone: Arc<RateZone>,
    pub(super) burst: u64,
    pub(super) delay: u64,
}

/// What limits have to do with an exchange.
#[derive(Default)]
pub(super) struct RateLimited {
    pub(super) said: Option<&'static str>,
    /// Empty but while all limits are being asked: which of them have agreed.
    reserved: Vec<(usize, LruEntry)>,
}

impl FeatureState for RateLimited {
    fn clear(&mut self) {
        self.said = None;
    }

    /// A subrequest is not counted where its main request has been, and the other way round.
    fn begin_subrequest(&mut self, parent: &Self) {
        self.said = parent.said;
    }

    fn end_subrequest(&mut self, subrequest: &mut Self) {
        self.said = subrequest.said;
    }
}

/// What asking all limits came to.
enum Asked {
    /// There is no key to count by.
    NoKey,
    /// All agree; the last of them has counted already, and has so much excess.
    Agreed(Option<u64>),
    /// That one does not.
    Refused(usize, RateExceeded),
}

/// A wait that a limit asks for.
#[derive(Clone, Copy, Default)]
struct Delay {
    ms: u64,
    at: usize,
    excess: u64,
}

/// Requests in thousandths, as nginx writes them.
struct Requests(u64);

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / REQUEST, self.0 % REQUEST)
    }
}

impl RateLimiter {
    /// Lets the exchange through, at once or later, or refuses it. It is asked about once.
    pub(super) fn admit(&self, x: &mut Exchange) -> Flow {
        if x.states.of::<RateLimited>().said.is_some() {
            return Flow::Next;
        }
        let now_ms = clock::now_ms();
        match self.ask(x, now_ms) {
            Asked::NoKey => Flow::Next,
            Asked::Refused(at, refused) => self.refuse(x, at, refused),
            Asked::Agreed(counted) => {
                let delay = self.settle(x, counted, now_ms);
                self.wait(x, delay)
            }
        }
    }

    fn ask(&self, x: &mut Exchange, now_ms: u64) -> Asked {
        let mut asked = Asked::NoKey;
        for (at, limit) in self.limits.iter().enumerate() {
            let (zone, burst) = (&*limit.zone, limit.burst);
            let Some(key) = zone.key(x, KEY_MAX) else { continue };
            let mut rates = zone.state.lock();
            let answer = if at + 1 == self.limits.len() {
                rates.add(&key, zone.parameters, burst, now_ms).map(Some)
            } else {
                rates.reserve(&key, zone.parameters, burst, now_ms).map(|entry| {
                    x.states.of::<RateLimited>().reserved.push((at, entry));
                    None
                })
            };
            drop(rates);
            x.give_scratch(key);
            match answer {
                Ok(counted) => asked = Asked::Agreed(counted),
                Err(refused) => return Asked::Refused(at, refused),
            }
        }
        asked
    }

    /// Counts in the limits that have only agreed so far; the longest delay that any asks for.
    fn settle(&self, x: &mut Exchange, counted: Option<u64>, now_ms: u64) -> Delay {
        let last = self.limits.len() - 1;
        let mut longest = counted.map_or_else(Delay::default, |excess| self.delay(last, excess));
        for (at, entry) in x.states.of::<RateLimited>().reserved.drain(..).rev() {
            let zone = &self.limits[at].zone;
            let excess = zone.state.lock().settle(entry, zone.parameters, now_ms);
            let delay = self.delay(at, excess);
            if delay.ms > longest.ms {
                longest = delay;
            }
        }
        longest
    }

    fn delay(&self, at: usize, excess: u64) -> Delay {
        let limit = &self.limits[at];
        let late = excess.saturating_sub(limit.delay);
        Delay { ms: late.saturating_mul(1000) / limit.zone.parameters, at, excess }
    }

    fn wait(&self, x: &mut Exchange, delay: Delay) -> Flow {
        if delay.ms == 0 {
            x.states.of::<RateLimited>().said = Some("PASSED");
            return Flow::Next;
        }
        let (dry_run, excess) = (self.dry_run(), Requests(delay.excess));
        let zone = observe::Text(&self.limits[delay.at].zone.name);
        let message =
            format_args!("delaying request{dry_run}, excess: {excess}, by zone \"{zone}\"");
        x.log(self.delay_level, message);
        if self.dry_run {
            x.states.of::<RateLimited>().said = Some("DELAYED_DRY_RUN");
            return Flow::Next;
        }
        x.states.of::<RateLimited>().said = Some("DELAYED");
        let delay = Duration::from_millis(delay.ms);
        Flow::wait(move |_| {
            LentFuture::new(async move {
                net::sleep(delay).await;
                Flow::Next
            })
        })
    }

    fn refuse(&self, x: &mut Exchange, at: usize, refused: RateExceeded) -> Flow {
        let zone = observe::Text(&self.limits[at].zone.name);
        match refused {
            RateExceeded::Excess(excess) => {
                let (dry_run, excess) = (self.dry_run(), Requests(excess));
                let message =
                    format_args!("limiting requests{dry_run}, excess: {excess} by zone \"{zone}\"");
                x.log(self.level, message);
            }
            RateExceeded::Room => {
                let place = format_args!("in limit_req zone \"{zone}\"");
                observe::log(Level::Alert, format_args!("could not allocate node {place}"));
            }
        }
        for (at, entry) in x.states.of::<RateLimited>().reserved.drain(..) {
            self.limits[at].zone.state.lock().release(entry);
        }
        if self.dry_run {
            x.states.of::<RateLimited>().said = Some("REJECTED_DRY_RUN");
            return Flow::Next;
        }
        x.states.of::<RateLimited>().said = Some("REJECTED");
        Flow::Status(self.status)
    }

    fn dry_run(&self) -> &'static str {
        if self.dry_run { ", dry run" } else { "" }
    }
}

//! Applies the limits of a location. A request counts only if all limits admit it; it then waits
//! for the longest of their delays.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use net::{LentFuture, clock};
use observe::Level;

use super::rates::{REQUEST, RateExceeded};
use super::terms::RateZone;
use crate::exchange::{Exchange, FeatureState, Flow, TimedPhase};
use crate::lru::LruEntry;

/// The longest key that is counted.
const KEY_MAX: usize = 65535;

/// The limits of a location.
pub(super) struct RateLimiter {
    pub(super) limits: Box<[RateLimit]>,
    pub(super) level: Level,
    pub(super) delay_level: Level,
    pub(super) status: u16,
    pub(super) dry_run: bool,
}

pub(super) struct RateLimit {
    pub(super) zone: Arc<RateZone>,
    pub(super) burst: u64,
    pub(super) delay: u64,
}

/// The result of an exchange's limits.
#[derive(Default)]
pub(super) struct RateLimited {
    pub(super) status: Option<&'static str>,
    /// The reservations in limits that have admitted the request, while the others are checked.
    reserved: Vec<(usize, LruEntry)>,
}

impl FeatureState for RateLimited {
    fn clear(&mut self) {
        self.status = None;
    }

    /// A subrequest is not counted if its main request was, and the other way round.
    fn begin_subrequest(&mut self, parent: &Self) {
        self.status = parent.status;
    }

    fn end_subrequest(&mut self, subrequest: &mut Self) {
        self.status = subrequest.status;
    }
}

/// The result of checking all limits.
enum LimitCheck {
    /// No limit has a key for the request.
    NoKey,
    /// All limits admit the request. The last one has counted it, and has this excess.
    Admitted(Option<u64>),
    /// The limit with this number refuses it.
    Refused(usize, RateExceeded),
}

/// The delay of a request by a limit.
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
    /// Admits the exchange, delays it or refuses it. Each exchange is checked once.
    pub(super) fn admit(&self, x: &mut Exchange) -> Flow {
        if x.states.of::<RateLimited>().status.is_some() {
            return Flow::Next;
        }
        let now_ms = clock::now_ms();
        match self.check(x, now_ms) {
            LimitCheck::NoKey => Flow::Next,
            LimitCheck::Refused(at, refused) => self.refuse(x, at, refused),
            LimitCheck::Admitted(counted) => {
                let delay = self.commit(x, counted, now_ms);
                self.count_delay(delay);
                self.wait(x, delay)
            }
        }
    }

    fn check(&self, x: &mut Exchange, now_ms: u64) -> LimitCheck {
        let mut checked = LimitCheck::NoKey;
        for (at, limit) in self.limits.iter().enumerate() {
            let zone = &*limit.zone;
            let Some(key) = zone.key(x, KEY_MAX) else { continue };
            let (rate, burst) =
                (zone.parameters.rate_now(), zone.parameters.burst_now(limit.burst));
            let mut rates = zone.state.lock();
            let answer = if at + 1 == self.limits.len() {
                rates.add(&key, rate, burst, now_ms).map(Some)
            } else {
                rates.reserve(&key, rate, burst, now_ms).map(|entry| {
                    x.states.of::<RateLimited>().reserved.push((at, entry));
                    None
                })
            };
            drop(rates);
            x.give_scratch(key);
            match answer {
                Ok(counted) => checked = LimitCheck::Admitted(counted),
                Err(refused) => return LimitCheck::Refused(at, refused),
            }
        }
        checked
    }

    /// Counts the request in the limits that have only reserved it. Returns the longest delay.
    fn commit(&self, x: &mut Exchange, counted: Option<u64>, now_ms: u64) -> Delay {
        let last = self.limits.len() - 1;
        if counted.is_some() {
            self.count_admitted(last);
        }
        let mut longest = counted.map_or_else(Delay::default, |excess| self.delay(last, excess));
        for (at, entry) in x.states.of::<RateLimited>().reserved.drain(..).rev() {
            self.count_admitted(at);
            let zone = &self.limits[at].zone;
            let excess = zone.state.lock().commit(entry, zone.parameters.rate_now(), now_ms);
            let delay = self.delay(at, excess);
            if delay.ms > longest.ms {
                longest = delay;
            }
        }
        longest
    }

    fn count_admitted(&self, at: usize) {
        if let Some(counters) = self.limits[at].zone.counters() {
            counters.passed().add(1);
        }
    }

    /// A request that is delayed counts as such, besides, where its longest delay is.
    fn count_delay(&self, delay: Delay) {
        if delay.ms > 0
            && let Some(counters) = self.limits[delay.at].zone.counters()
        {
            counters.delayed_or(self.dry_run).add(1);
        }
    }

    fn delay(&self, at: usize, excess: u64) -> Delay {
        let limit = &self.limits[at];
        let late = excess.saturating_sub(limit.delay);
        Delay { ms: late.saturating_mul(1000) / limit.zone.parameters.rate_now(), at, excess }
    }

    fn wait(&self, x: &mut Exchange, delay: Delay) -> Flow {
        if delay.ms == 0 {
            x.states.of::<RateLimited>().status = Some("PASSED");
            return Flow::Next;
        }
        let (dry_run, excess) = (self.dry_run(), Requests(delay.excess));
        let zone = observe::Text(&self.limits[delay.at].zone.name);
        let message =
            format_args!("delaying request{dry_run}, excess: {excess}, by zone \"{zone}\"");
        x.log(self.delay_level, message);
        if self.dry_run {
            x.states.of::<RateLimited>().status = Some("DELAYED_DRY_RUN");
            return Flow::Next;
        }
        x.states.of::<RateLimited>().status = Some("DELAYED");
        let delay = Duration::from_millis(delay.ms);
        Flow::wait(move |x| {
            x.waits_for(TimedPhase::LimitReq);
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
                let zone = format_args!("in limit_req zone \"{zone}\"");
                observe::log(Level::Alert, format_args!("could not allocate node {zone}"));
            }
        }
        if let Some(counters) = self.limits[at].zone.counters() {
            match refused {
                RateExceeded::Excess(_) => counters.rejected_or(self.dry_run).add(1),
                RateExceeded::Room => counters.exhausted().add(1),
            }
        }
        for (at, entry) in x.states.of::<RateLimited>().reserved.drain(..) {
            self.limits[at].zone.state.lock().release(entry);
        }
        if self.dry_run {
            x.states.of::<RateLimited>().status = Some("REJECTED_DRY_RUN");
            return Flow::Next;
        }
        x.states.of::<RateLimited>().status = Some("REJECTED");
        Flow::Status(self.status)
    }

    fn dry_run(&self) -> &'static str {
        if self.dry_run { ", dry run" } else { "" }
    }
}

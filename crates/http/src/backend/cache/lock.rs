//! Waiting for the request that fetches a key, and how long that makes sense.
//!
//! ```text
//! the fill has ended ------> look again: an answer, or the next to fetch
//!   |-- often, for nothing -> the backend is asked
//!   |-- it has failed ------> no server was reached, or the third in a row: that is the answer
//! lock_timeout ------------> the backend is asked
//! ```
//!
//! A server in trouble is thus asked by one request at a time, and not by all who wait. The first
//! failures are not shared if a server was sent the request: a single request may be to blame.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use cache::progress::FillProgress;
use cache::{FillEnd, FillFailure, FillFailures};
use net::{Timer, clock};
use observe::Level;

use super::attempt::{CacheAttempt, now_s};
use super::state::{CacheState, CacheStatus};
use super::{LocationCache, ReplyRules};
use crate::exchange::{Exchange, Flow, TimedPhase};

/// The failure in a row that is shared with all who wait.
const FAILURES_MAX: u32 = 3;
/// The fills that may end without a result before a request waits no longer.
const FRUITLESS_MAX: u32 = 3;

/// How long a request goes on waiting for others.
pub(super) struct LockPatience {
    deadline_ms: u64,
    /// Those of the fills that it has waited for.
    failures: Option<Arc<FillFailures>>,
    /// The fills that have ended without one.
    fruitless: u32,
    /// Whether it follows a reply that is being fetched.
    follows: bool,
}

/// What follows after a wait.
pub(super) enum LockOutcome {
    LookAgain,
    /// That is the answer to the request as well.
    Failed(FillFailure),
    /// The reply can be followed.
    Begun(Arc<FillProgress>),
}

/// Why a wait is over.
enum LockEvent {
    Late,
    End(FillEnd),
    Begun(Arc<FillProgress>),
}

impl LockPatience {
    /// That of a request which begins now.
    pub(super) fn new(cache: &LocationCache) -> Self {
        let deadline_ms = clock::now_ms().saturating_add(cache.conf.cache_lock_timeout.0);
        Self {
            deadline_ms,
            failures: None,
            fruitless: 0,
            follows: cache.conf.cache_read_while_writing,
        }
    }

    /// Whether `lock_timeout` is over.
    pub(super) fn is_late(&self) -> bool {
        clock::now_ms() >= self.deadline_ms
    }

    /// Whether another wait makes sense.
    pub(super) fn may_wait(&self) -> bool {
        !self.is_late() && self.fruitless < FRUITLESS_MAX
    }

    /// Waits until the key is no longer fetched, or has been for too long, or there is something to
    /// follow.
    pub(super) async fn wait(&mut self, x: &mut Exchange, attempt: &CacheAttempt) -> LockOutcome {
        x.waits_for(TimedPhase::Queue);
        match self.end_of_fill(attempt).await {
            LockEvent::Late => x.log(Level::Info, format_args!("cache lock timeout")),
            LockEvent::End(FillEnd::TooOld) => {}
            LockEvent::End(FillEnd::Ended) => self.fruitless += 1,
            LockEvent::End(FillEnd::Failed(failure, count)) => {
                if !failure.was_sent || count >= FAILURES_MAX {
                    return LockOutcome::Failed(failure);
                }
            }
            LockEvent::Begun(progress) => {
                self.follows = false;
                return LockOutcome::Begun(progress);
            }
        }
        LockOutcome::LookAgain
    }

    async fn end_of_fill(&mut self, attempt: &CacheAttempt) -> LockEvent {
        let (mut waiter, timer) = (attempt.store.zone.wait(&attempt.digest), Timer::new());
        let mut timed_ms = 0;
        let end = poll_fn(|cx| {
            loop {
                let (now_ms, mut until_ms) = (clock::now_ms(), self.deadline_ms);
                if now_ms >= self.deadline_ms {
                    return Poll::Ready(LockEvent::Late);
                }
                if let Poll::Ready(end) = waiter.poll(cx, now_ms, &mut until_ms) {
                    return Poll::Ready(LockEvent::End(end));
                }
                if let Some(progress) = waiter.progress().filter(|_| self.follows) {
                    return Poll::Ready(LockEvent::Begun(progress.clone()));
                }
                let until_ms = until_ms.min(self.deadline_ms);
                if timed_ms != until_ms {
                    timer.set(until_ms - now_ms);
                    timed_ms = until_ms;
                }
                if timer.poll(cx).is_pending() {
                    return Poll::Pending;
                }
                timed_ms = 0;
            }
        })
        .await;
        self.failures = waiter.failures();
        end
    }
}

impl CacheAttempt {
    /// Takes the right to fetch, if nobody has it or has had it for too long.
    pub(super) fn begin_fill(&mut self, age_ms: u64, patience: &LockPatience) {
        let (zone, failures) = (&self.store.zone, patience.failures.clone());
        self.fill = zone.begin_fill(&self.digest, clock::now_ms(), age_ms, failures);
    }

    /// Whether the last reply to the request could not be stored, although there is an expired one.
    pub(super) fn is_uncacheable(&self) -> bool {
        self.store.zone.is_uncacheable(&self.digest, now_s())
    }

    /// Answers as the request that was waited for: with the expired reply if that is allowed after
    /// its failure, else with its status.
    pub(super) fn share_failure(
        &mut self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        failure: &FillFailure,
    ) -> Flow {
        let FillFailure { status, reasons, is_error, .. } = *failure;
        if self.stale.is_some() {
            CacheState::set(x, CacheStatus::Expired);
        }
        let stale = self.stale_after(x, rules, reasons, is_error);
        stale.unwrap_or_else(|| {
            let what = format_args!("fetching the response failed for another request ({status})");
            x.log(Level::Info, what);
            Flow::Status(status)
        })
    }
}

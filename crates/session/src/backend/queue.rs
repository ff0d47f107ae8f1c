//! Waits for a server while all usable ones have reached their limits.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use net::{Timer, clock};
use observe::Level;
use upstream::{
    Attempt, Group, GroupCounters, GroupLimit, Lease, WaitRefused, Waited, WaitingRequest,
};

use super::Backed;

/// The time that a request may wait, however often it joins the queue.
pub(super) struct QueueTime<'a> {
    limit: &'a GroupLimit,
    begun_ms: u64,
    timeout_ms: u64,
}

/// The result of waiting.
pub(super) enum Queued {
    /// This server.
    Server(Lease),
    /// The servers that it waited for cannot be used any more: choose again.
    Again,
    /// No server; with the status of the reply.
    Refused(u16),
    /// No server has a queue.
    NoServer,
    /// The client has left.
    Left,
}

/// A request that is counted among those in the queue, until it is dropped.
struct InQueue(Option<(GroupCounters<'static>, u64)>);

impl InQueue {
    fn begin(group: &Group) -> Self {
        Self(metrics::are_wanted().then(|| {
            let counters = group.counters().own();
            counters.queued().rise();
            (counters, clock::turn_ns())
        }))
    }

    fn end(self, queued: &Queued) {
        if let (Some((counters, _)), Queued::Refused(_)) = (self.0, queued) {
            counters.timed_out().add(1);
        }
    }
}

impl Drop for InQueue {
    fn drop(&mut self) {
        if let Some((counters, begun_ns)) = self.0 {
            counters.queued().fall();
            counters.queue().record(clock::turn_ns().saturating_sub(begun_ns));
        }
    }
}

/// Why a wait ends.
enum QueueWaitEnd {
    Waited(Waited),
    TimedOut,
    Left,
}

impl<'a> QueueTime<'a> {
    /// Starts the time.
    pub(super) fn new(limit: &'a GroupLimit, read_timeout_ms: u64) -> Self {
        let timeout_ms = limit.timeout_ms().unwrap_or(read_timeout_ms);
        Self { limit, begun_ms: clock::now_ms(), timeout_ms }
    }

    /// The time since the start.
    pub(super) fn waited_ms(&self) -> u64 {
        clock::now_ms() - self.begun_ms
    }

    /// Waits for a server of a busy group.
    pub(super) async fn wait<X: Backed>(
        &self,
        x: &mut X,
        group: &Arc<Group>,
        attempt: &mut Attempt,
        left: &mut impl FnMut(&mut X, &mut Context<'_>) -> Poll<()>,
    ) -> Queued {
        let level = self.limit.level();
        let waiting = match group.wait(attempt, clock::now_ms()) {
            Ok(waiting) => waiting,
            Err(WaitRefused::NoServer) => return Queued::NoServer,
            Err(WaitRefused::Changed) => return Queued::Again,
            Err(WaitRefused::Full) => {
                if metrics::are_wanted() {
                    group.counters().own().overflows().add(1);
                }
                x.log(
                    level,
                    format_args!("limit upstream: request is rejected, the queue is full"),
                );
                return Queued::Refused(502);
            }
        };
        let before = std::mem::replace(x.action(), "waiting for upstream");
        let place = waiting.position();
        if place > 0 {
            x.log(level, format_args!("limit upstream: request is queued at position {place}"));
        }
        let counted = InQueue::begin(group);
        let queued = self.served(x, waiting, attempt, left).await;
        counted.end(&queued);
        let waited_ms = self.waited_ms();
        match &queued {
            Queued::Server(_) if place > 0 => {
                x.log(
                    level,
                    format_args!("limit upstream: request is resumed after {waited_ms} ms"),
                );
            }
            Queued::Refused(_) => {
                x.log(
                    level,
                    format_args!("limit upstream: request timed out after {waited_ms} ms"),
                );
            }
            Queued::Left => {
                x.log(Level::Info, format_args!("client prematurely closed connection"));
            }
            _ => {}
        }
        *x.action() = before;
        queued
    }

    async fn served<X: Backed>(
        &self,
        x: &mut X,
        mut waiting: WaitingRequest,
        attempt: &mut Attempt,
        left: &mut impl FnMut(&mut X, &mut Context<'_>) -> Poll<()>,
    ) -> Queued {
        let timer = Timer::new();
        timer.set(self.timeout_ms.saturating_sub(self.waited_ms()));
        let waited = poll_fn(|cx| {
            if let Poll::Ready(waited) = waiting.poll(cx, attempt, clock::now_ms()) {
                return Poll::Ready(QueueWaitEnd::Waited(waited));
            }
            if left(x, cx).is_ready() {
                return Poll::Ready(QueueWaitEnd::Left);
            }
            timer.poll(cx).map(|()| QueueWaitEnd::TimedOut)
        });
        match waited.await {
            QueueWaitEnd::Waited(Waited::Server(lease)) => Queued::Server(lease),
            QueueWaitEnd::Waited(Waited::None) => Queued::Again,
            QueueWaitEnd::Left => Queued::Left,
            QueueWaitEnd::TimedOut => match waiting.give_up(attempt, clock::now_ms()) {
                Some(lease) => Queued::Server(lease),
                None => Queued::Refused(self.limit.timeout_status()),
            },
        }
    }
}

//! What happens to a connection after a reply. The rest of the request's body is discarded first. A
//! connection whose client may still be sending is read for a while before it is closed, so that
//! the client receives the reply and not a reset.

use std::future::poll_fn;
use std::task::{Context, Poll};

use net::clock;

use super::connection::{After, Connection};
use super::idle::Idle;
use super::link::{Link, WaitsFor};
use super::request_stream::RequestStream;
use crate::drive;
use crate::exchange::{CloseReason, Exchange, RequestTiming, TimedPhase};
use crate::site::policy::{Close, Keepalive, Lingering};

/// How discarding the rest of a body ended.
enum DiscardedBody {
    Ended,
    Broken,
    TimedOut,
}

/// How long a connection is still read, according to `lingering_time` and `lingering_timeout`.
struct LingerDeadline {
    rules: Lingering,
    until_ms: u64,
}

impl Connection {
    /// Called once the reply is sent.
    pub(super) async fn keep_or_close(&self, x: &mut Exchange, request: &RequestStream) -> After {
        let generation = x.generation.clone();
        let here = &generation.location(x.location).core;
        let (keepalive, lingering) = (here.keepalive, here.lingering);
        let (was_announced, is_ended) = {
            let body = request.body();
            if body.abandoned || (body.claimed && !body.is_ended()) {
                x.close_after(CloseReason::RequestBody);
            }
            (body.abandoned || body.claimed, body.is_ended())
        };
        if !was_announced && !is_ended {
            x.begin_timing();
            x.waits_for(TimedPhase::Body);
            match self.discard_rest(x, request, lingering).await {
                DiscardedBody::Ended => {}
                DiscardedBody::Broken => return After::Close,
                DiscardedBody::TimedOut => return drive::timed_out(x).into(),
            }
        }
        match x.close_reason() {
            None if self.may_keep(&keepalive) => return After::Keep(Idle::kept(&keepalive)),
            None => {}
            Some(reason) => x.debug(format_args!("http connection is closed: {reason}")),
        }
        let linger = match lingering.close {
            Close::Off => false,
            Close::On => was_announced || x.request.pipelined || self.link.may_have_more(),
            Close::Always => true,
        };
        if linger {
            return After::Linger(lingering);
        }
        self.link.stream.borrow_mut().close_session();
        After::Close
    }

    fn may_keep(&self, rules: &Keepalive) -> bool {
        rules.min_timeout_ms > 0 || (rules.timeout_ms > 0 && self.context.keeps(&self.client))
    }

    async fn discard_rest(
        &self,
        x: &Exchange,
        request: &RequestStream,
        rules: Lingering,
    ) -> DiscardedBody {
        let deadline = LingerDeadline::new(rules);
        let discard = |cx: &mut Context<'_>| match request.poll_discard(cx) {
            Poll::Ready(Ok(true)) => Poll::Ready(DiscardedBody::Ended),
            Poll::Ready(_) => Poll::Ready(DiscardedBody::Broken),
            Poll::Pending => deadline.poll_over(cx, &self.link).map(|()| DiscardedBody::TimedOut),
        };
        poll_fn(|cx| RequestTiming::around(&x.timing, || discard(cx))).await
    }

    /// Closes this side and reads what the client still sends, until another connection needs the
    /// place.
    pub(super) async fn linger(&self, rules: Lingering) {
        let deadline = LingerDeadline::new(rules);
        let mut is_shut = false;
        poll_fn(|cx| {
            if !is_shut {
                match self.link.stream.borrow_mut().poll_shutdown(cx) {
                    Poll::Ready(Ok(())) => is_shut = true,
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => return deadline.poll_over(cx, &self.link),
                }
            }
            match self.link.poll_discard_all(cx) {
                Poll::Pending if !self.context.wants_back() => deadline.poll_over(cx, &self.link),
                _ => Poll::Ready(()),
            }
        })
        .await;
    }

    /// Makes the close of the connection a reset.
    pub(super) fn reset(&self) {
        // If the kernel refuses, the connection is closed normally.
        let _ = self.link.stream.borrow().reset_on_close();
    }
}

impl LingerDeadline {
    fn new(rules: Lingering) -> Self {
        Self { rules, until_ms: clock::now_ms().saturating_add(rules.time_ms) }
    }

    fn poll_over(&self, cx: &mut Context<'_>, link: &Link) -> Poll<()> {
        match self.until_ms.saturating_sub(clock::now_ms()) {
            0 => Poll::Ready(()),
            left_ms => link.poll_deadline(cx, WaitsFor::Rest, left_ms.min(self.rules.timeout_ms)),
        }
    }
}

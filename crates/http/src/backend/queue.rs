//! Waiting for a server: every one that may be used has as many requests as it may have.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use ::upstream::{Attempt, Group, Lease, Limit, Waited, Waiting};
use net::{Timer, clock};

use crate::exchange::Exchange;

/// What waiting came to.
pub(super) enum Queued {
    /// This server, after so many milliseconds.
    Server(Lease, u64),
    /// All servers that it waited for have gone: choose again.
    Again,
    /// Nobody waits here, or too many do.
    Full,
    /// It has waited too long, and this is the status for it.
    TimedOut(u16),
}

/// Waits for a server of a busy group.
pub(super) async fn queue(
    x: &mut Exchange,
    group: &Arc<Group>,
    attempt: &mut Attempt,
    read_timeout_ms: u64,
) -> Queued {
    let Some(limit) = group.limit() else { return Queued::Full };
    let Some(waiting) = group.wait(attempt, clock::now_ms()) else {
        x.log(limit.level(), format_args!("limit upstream: request is dropped"));
        return Queued::Full;
    };
    if waiting.place() > 0 {
        x.log(limit.level(), format_args!("limit upstream: request is blocked"));
    }
    let timeout_ms = limit.timeout_ms().unwrap_or(read_timeout_ms);
    let queued = wait(waiting, attempt, timeout_ms, limit).await;
    match &queued {
        Queued::Server(_, waited_ms) if *waited_ms > 0 => {
            x.log(limit.level(), format_args!("limit upstream: request is resumed"));
        }
        Queued::TimedOut(_) => {
            x.log(limit.level(), format_args!("limit upstream: request is timeout"));
        }
        _ => {}
    }
    queued
}

async fn wait(
    mut waiting: Waiting,
    attempt: &mut Attempt,
    timeout_ms: u64,
    limit: &Limit,
) -> Queued {
    let timer = Timer::new();
    timer.set(timeout_ms);
    let waited = poll_fn(|cx| {
        if let Poll::Ready(waited) = waiting.poll(cx, attempt, clock::now_ms()) {
            return Poll::Ready(Some(waited));
        }
        timer.poll(cx).map(|()| None)
    });
    match waited.await {
        Some(Waited::Server(lease, waited_ms)) => Queued::Server(lease, waited_ms),
        Some(Waited::None) => Queued::Again,
        None => match waiting.give_up(attempt, clock::now_ms()) {
            Some((lease, waited_ms)) => Queued::Server(lease, waited_ms),
            None => Queued::TimedOut(limit.timeout_status()),
        },
    }
}

//! What follows a reply, whether the client got it or is gone: `post_action`.

use super::{CutReply, dropped};
use crate::exchange::{Exchange, RequestTiming, TimedPhase};
use crate::subrequest::post_action;

/// nginx's status that closes the connection without a reply, and without `post_action`.
const CLOSED: u16 = 444;

/// Whether a location asks for it.
pub(super) fn is_due(x: &Exchange) -> bool {
    post_action::is_due(x)
}

/// Does it; `sent` is how the reply ended.
pub(super) async fn run(x: &mut Exchange, sent: Result<(), CutReply>) -> Result<(), CutReply> {
    if sent.is_err() && x.reply.status == CLOSED {
        return sent;
    }
    x.begin_timing();
    let timing = x.timing.clone();
    let action = x.in_phase(TimedPhase::PostAction, async |x| post_action::run(x).await);
    match RequestTiming::along(timing, action).await {
        Ok(()) => sent,
        Err(status) => Err(dropped(x, status)),
    }
}

//! What is still to be done when the client has its reply, or is gone: `post_action`, and waiting
//! for subrequests that run beside the exchange.

use super::{CutReply, dropped};
use crate::exchange::Exchange;
use crate::subrequest::post_action;

/// Closed without a word, and without what would follow a reply.
const CLOSED: u16 = 444;

/// Whether there is anything of it.
pub(super) fn is_due(x: &Exchange) -> bool {
    x.has_background() || post_action::is_due(x)
}

/// Does it; `sent` is how the reply ended.
pub(super) async fn run(x: &mut Exchange, mut sent: Result<(), CutReply>) -> Result<(), CutReply> {
    if (sent.is_ok() || x.reply.status != CLOSED)
        && let Err(status) = post_action::run(x).await
    {
        sent = Err(dropped(x, status));
    }
    if sent.is_err() {
        x.stop_background();
    } else if !x.background_ended().await {
        sent = Err(CutReply::Close);
    }
    sent
}

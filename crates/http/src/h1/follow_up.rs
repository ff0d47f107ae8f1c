//! What is still to be done when the client has its reply, or is gone: `post_action`, and waiting
//! for subrequests that run beside the exchange. The connection's next request comes after all of
//! it.

use super::{After, Connection};
use crate::exchange::Exchange;
use crate::subrequest::post_action;

/// Closed without a word, and without what would follow a reply.
const CLOSED: u16 = 444;

impl Connection {
    /// Whether there is anything of it.
    pub(super) fn is_followed_up(x: &Exchange) -> bool {
        x.has_background() || post_action::is_due(x)
    }

    /// Does it; `ended` is how the reply did.
    pub(super) async fn follow_up(
        &self,
        x: &mut Exchange,
        mut ended: Result<(), After>,
    ) -> Result<(), After> {
        if (ended.is_ok() || x.reply.status != CLOSED)
            && let Err(status) = post_action::run(x).await
        {
            ended = Err(self.dropped(x, status));
        }
        if ended.is_err() {
            x.stop_background();
        } else if !x.background_ended().await {
            ended = Err(After::Close);
        }
        ended
    }
}

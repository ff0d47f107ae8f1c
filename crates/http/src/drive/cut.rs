//! Replies that end early.

use observe::Level;

use crate::exchange::Exchange;

/// How the connection or stream of an incomplete reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutReply {
    Close,
    /// By a reset, as `reset_timedout_connection` demands.
    Reset,
}

/// Ends an exchange without a reply.
pub(crate) fn dropped(x: &mut Exchange, status: u16) -> CutReply {
    if x.reply.status == 0 || x.reply.bytes_sent == 0 {
        x.reply.status = status;
    }
    match status {
        408 | 444 => timed_out(x),
        _ => CutReply::Close,
    }
}

/// The client took too long.
pub(crate) fn timed_out(x: &Exchange) -> CutReply {
    if x.location().core.output.reset_timedout_connection {
        CutReply::Reset
    } else {
        CutReply::Close
    }
}

/// The client is gone.
pub(super) fn gone(x: &mut Exchange) -> CutReply {
    if x.backends.abandon() {
        if x.reply.head_sent {
            x.action = "reading upstream";
        }
        let what = "epoll_wait() reported that client prematurely closed connection";
        x.log(Level::Info, format_args!("{what}, so upstream connection is closed too"));
    } else {
        x.log(Level::Info, format_args!("client prematurely closed connection"));
    }
    if x.reply.bytes_sent == 0 {
        x.reply.status = 499;
    }
    CutReply::Close
}

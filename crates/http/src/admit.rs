//! What a location asks of a request before any of its handlers sees it.

use observe::Level;

use crate::exchange::{CloseReason, Exchange, Flow};

/// What a location asks of a request before its handlers see it.
pub(crate) fn admit(x: &mut Exchange) -> Flow {
    let here = &x.location().core;
    if here.internal && !x.internal {
        return Flow::Status(404);
    }
    if x.keeps_connection() && !here.keepalive.admits(&x.client, &x.request) {
        x.close_after(CloseReason::Limit);
    }
    admit_body(x)
}

/// Refuses a body whose announced length is too large for the location.
pub(crate) fn admit_body(x: &mut Exchange) -> Flow {
    let size_max = x.location().core.client_body.size_max;
    match x.request.body.length() {
        Some(length) if size_max != 0 && length > size_max && !x.request.body.is_discarded() => {
            let message = format_args!("client intended to send too large body: {length} bytes");
            x.log(Level::Error, message);
            x.reply.without_continue = true;
            // Wherever `error_page` leads, it is not looked at again.
            let _ = x.discard_body();
            Flow::Status(413)
        }
        _ => Flow::Next,
    }
}

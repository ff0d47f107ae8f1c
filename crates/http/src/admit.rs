//! Checks of a location that precede its handlers.

use observe::Level;

use crate::exchange::{CloseReason, Exchange, Flow};

/// Closes the connection after this request if the limits of the location demand it.
pub(crate) fn limit_keepalive(x: &mut Exchange) {
    let keepalive = &x.location().core.keepalive;
    if x.keeps_connection() && !keepalive.admits(&x.client, &x.request) {
        x.close_after(CloseReason::Limit);
    }
}

/// Refuses a body whose announced length is too large for the location.
pub(crate) fn admit_body(x: &mut Exchange) -> Flow {
    let size_max = x.location().core.client_body.size_max;
    match x.request.body.length() {
        Some(length) if size_max != 0 && length > size_max && !x.request.body.is_discarded() => {
            let message = format_args!("client intended to send too large body: {length} bytes");
            x.log(Level::Error, message);
            x.reply.without_continue = true;
            // Discarded, so that the location of `error_page` does not check the length again.
            let _ = x.discard_body();
            Flow::Status(413)
        }
        _ => Flow::Next,
    }
}

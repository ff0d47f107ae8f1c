//! Requests that are refused for how their connection is secured.

use observe::Level;

use crate::exchange::Exchange;

/// nginx's status of a request that is not encrypted where it should be.
const TO_HTTPS: u16 = 497;

/// The status that a request is refused with, if it is.
pub(super) fn refusal(x: &Exchange) -> Option<u16> {
    if x.client.is_plain_by_mistake.get() {
        x.log(Level::Info, format_args!("client sent plain HTTP request to HTTPS port"));
        return Some(TO_HTTPS);
    }
    None
}

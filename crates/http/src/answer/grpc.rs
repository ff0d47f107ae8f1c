//! Replies to calls of gRPC instead of built-in pages: the status of the call, in a reply without a
//! body.

use wire::Known;
use wire::grpc::status_of_http;

use crate::exchange::{Bytes, Exchange};

/// The beginning of the content types of calls.
const CONTENT_TYPE: &[u8] = b"application/grpc";

/// Whether the exchange is a call whose errors have gRPC's form in its location.
pub(super) fn answers(x: &Exchange, status: u16) -> bool {
    status >= 400 && x.location().core.error_pages.of_grpc && is_call(x)
}

/// `application/grpc`, or that with a suffix or parameters. gRPC-Web is another protocol, whose
/// status is in the body.
fn is_call(x: &Exchange) -> bool {
    let value = x.request.field(Known::ContentType).unwrap_or_default();
    match value.split_at_checked(CONTENT_TYPE.len()) {
        Some((start, rest)) => {
            start.eq_ignore_ascii_case(CONTENT_TYPE)
                && matches!(rest.first(), None | Some(b'+' | b';'))
        }
        None => false,
    }
}

/// Replies with the status of the call. As in a reply of a server that has nothing else to say, it
/// stands in the head.
pub(super) fn write(x: &mut Exchange, status: u16) {
    x.error_status = 200;
    x.reply.status = 200;
    x.reply.set_content_type(CONTENT_TYPE);
    x.reply.set_bytes(Bytes::Owned(Vec::new()));
    let reason = wire::status_text(status).and_then(|text| text.split_once(' '));
    let reason = reason.map_or("", |(_, reason)| reason);
    let number = status_of_http(status);
    x.reply.fields.append(b"grpc-status", number.to_string().as_bytes());
    x.reply.fields.append(b"grpc-message", format!("HTTP {status} {reason}").trim().as_bytes());
}

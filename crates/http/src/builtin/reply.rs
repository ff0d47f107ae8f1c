//! Variables of the reply: `$status`, `$bytes_sent`, `$sent_http_...`.
//!
//! Fields that [`Reply`](crate::exchange::Reply) stores separately have rows of their own.

use observe::Level;

use super::fields::join;
use crate::decimal;
use crate::exchange::{Exchange, Fields};
use crate::variables::{BuiltIn, Getter, maybe, number, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("status", "The status of the reply.", |x, out| {
        decimal::write_three(x.status().into(), out);
        true
    }),
    BuiltIn::cached(
        "bytes_sent",
        "The number of bytes that were sent to the client, the head included.",
        |x, out| number(out, x.reply.bytes_sent),
    ),
    BuiltIn::cached(
        "body_bytes_sent",
        "The number of bytes that were sent to the client, without the head.",
        |x, out| number(out, x.reply.body_bytes_sent()),
    ),
    BuiltIn::cached(
        "request_completion",
        "`OK` once the reply was sent completely, otherwise empty.",
        |x, out| some(out, if x.reply.complete { b"OK" } else { b"" }),
    ),
    BuiltIn::cached(
        "sent_http_content_type",
        "The field `Content-Type` of the reply.",
        |x, out| {
            let reply = &x.reply;
            if !reply.content_type.is_empty() {
                reply.write_media_type(out);
            }
            !reply.content_type.is_empty()
        },
    ),
    BuiltIn::cached(
        "sent_http_content_length",
        "The field `Content-Length` of the reply.",
        |x, out| x.reply.content_length.is_some_and(|length| number(out, length)),
    ),
    BuiltIn::cached(
        "sent_http_last_modified",
        "The field `Last-Modified` of the reply.",
        |x, out| {
            // nginx clears the time when it sends the head, but passes a backend's field on.
            let forgets = x.reply.head_sent && !matches!(x.reply.status, 200 | 206 | 304);
            let start = out.len();
            let is_named = named(&x.reply.fields, b"last_modified", out);
            if forgets && (x.reply.status == 204 || wire::date::parse(&out[start..]).is_some()) {
                out.truncate(start);
                return false;
            }
            let time = x.reply.last_modified.filter(|_| !forgets && !is_named);
            is_named || time.is_some_and(|time| some(out, &wire::date::http(time)))
        },
    ),
    BuiltIn::cached("sent_http_location", "The field `Location` of the reply.", |x, out| {
        let location = &x.reply.location;
        maybe(out, Some(&location[..]).filter(|location| !location.is_empty()))
            || named(&x.reply.fields, b"location", out)
    }),
    BuiltIn::cached(
        "sent_http_connection",
        "The field `Connection` of the reply: `keep-alive`, `close` or `upgrade`.",
        |x, out| {
            some(
                out,
                match (x.reply.status, x.keeps_connection()) {
                    (101, _) => b"upgrade",
                    (_, true) => b"keep-alive",
                    (_, false) => b"close",
                },
            )
        },
    ),
    BuiltIn::cached("sent_http_keep_alive", "The field `Keep-Alive` of the reply.", |x, out| {
        let seconds = x.location().core.keepalive.header_s;
        x.keeps_connection() && seconds > 0 && some(out, b"timeout=") && number(out, seconds)
    }),
    BuiltIn::cached(
        "sent_http_transfer_encoding",
        "`chunked` where the reply is sent in chunks, otherwise empty.",
        |x, out| x.reply.chunked && some(out, b"chunked"),
    ),
    BuiltIn::fresh(
        "limit_rate",
        "The rate at which the reply is sent, in bytes per second; 0 is no limit.",
        |x, out| number(out, x.reply.limit_rate.unwrap_or(0)),
    )
    .set_by(set_limit_rate),
    BuiltIn::prefix("sent_http_", "A field of the reply: `$sent_http_etag` is `ETag`.", sent_http)
        .cached_each(),
    BuiltIn::prefix(
        "sent_trailer_",
        "A trailer field of the reply, which comes after the body.",
        sent_trailer,
    )
    .cached_each(),
];

fn set_limit_rate(x: &mut Exchange, value: &[u8]) {
    match conf::units::size(value) {
        Some(rate) => x.reply.limit_rate = Some(rate),
        None => {
            x.log(Level::Error, format_args!("invalid $limit_rate \"{}\"", observe::Text(value)))
        }
    }
}

fn sent_http(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| named(&x.reply.fields, &name, out))
}

fn sent_trailer(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| named(&x.reply.trailers, &name, out))
}

fn named(fields: &Fields, name: &[u8], out: &mut Vec<u8>) -> bool {
    let named = fields.iter().filter(|(own, _)| super::fields::is_named(own, name));
    join(named.map(|(_, value)| value), b", ", out)
}

//! What is known of the servers that were asked: `$upstream_addr`, `$upstream_http_...`.
//!
//! Where several were asked, each has its part, in order.

use wire::http1::response::ReplyName;

use super::tally::Try;
use crate::decimal;
use crate::exchange::Exchange;
use crate::variables::fields::{cookie_in, is_named, join};
use crate::variables::{BuiltIn, Getter};

pub(crate) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("upstream_addr", |x, out| {
        each(x, out, |asked, out| out.extend_from_slice(asked.server.text()))
    }),
    BuiltIn::fresh("upstream_status", |x, out| {
        each(x, out, |asked, out| match asked.status.get() {
            0 => out.push(b'-'),
            status => decimal::write(status.into(), out),
        })
    }),
    BuiltIn::fresh("upstream_connect_time", |x, out| time(x, out, |asked| asked.connect_ms.get())),
    BuiltIn::fresh("upstream_header_time", |x, out| time(x, out, |asked| asked.header_ms.get())),
    BuiltIn::fresh("upstream_response_time", |x, out| {
        time(x, out, |asked| asked.response_ms.get())
    }),
    BuiltIn::fresh("upstream_queue_time", |x, out| time(x, out, |asked| asked.queue_ms.get())),
    BuiltIn::fresh("upstream_response_length", |x, out| {
        count(x, out, |asked| asked.response_length.get())
    }),
    BuiltIn::fresh("upstream_bytes_received", |x, out| {
        count(x, out, |asked| asked.bytes_received.get())
    }),
    BuiltIn::fresh("upstream_bytes_sent", |x, out| count(x, out, |asked| asked.bytes_sent.get())),
    BuiltIn::prefix("upstream_http_", http),
    BuiltIn::prefix("upstream_trailer_", trailer),
    BuiltIn::prefix("upstream_cookie_", cookie),
];

fn each(x: &Exchange, out: &mut Vec<u8>, write: impl FnMut(&Try, &mut Vec<u8>)) -> bool {
    x.backends.each(out, write)
}

fn time(x: &Exchange, out: &mut Vec<u8>, of: impl Fn(&Try) -> Option<u64>) -> bool {
    each(x, out, |asked, out| match of(asked) {
        Some(time_ms) => decimal::write_seconds(time_ms, out),
        None => out.push(b'-'),
    })
}

fn count(x: &Exchange, out: &mut Vec<u8>, of: impl Fn(&Try) -> u64) -> bool {
    each(x, out, |asked, out| decimal::write(of(asked), out))
}

fn http(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| {
        let (head, text) = (&x.backends.head, &x.backends.head_text);
        let named = head.fields.iter().filter(|field| is_named(field.name.of(text), &name));
        join(named.map(|field| field.value.of(text)), b", ", out)
    })
}

fn trailer(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| {
        let trailers = x.backends.trailers.borrow();
        let named = trailers.iter().filter(|(own, _)| is_named(own, &name));
        join(named.map(|(_, value)| value), b", ", out)
    })
}

fn cookie(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| {
        let (head, text) = (&x.backends.head, &x.backends.head_text);
        let set = head.fields.iter().filter(|field| field.id == ReplyName::SetCookie);
        // What follows the first semicolon is no cookie.
        let pairs = set.filter_map(|field| field.value.of(text).split(|byte| *byte == b';').next());
        let found = pairs.filter_map(|pair| cookie_in(pair, &name)).next();
        out.extend_from_slice(found.unwrap_or_default());
        found.is_some()
    })
}

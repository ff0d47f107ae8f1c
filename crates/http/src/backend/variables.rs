//! `$upstream_...`: what came of asking servers.
//!
//! Each has a value for every server asked: those asked one after another for one resource are
//! divided by commas, and by colons those asked for another after an internal redirect.

use ::upstream::limit::LimitStats;
use wire::reply::ReplyName;

use crate::builtin::fields::{is_named, join};
use crate::decimal;
use crate::exchange::Exchange;
use crate::exchange::UpstreamAttempt;
use crate::variables::{BuiltIn, Getter};

pub(crate) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("upstream_addr", |x, out| {
        x.backends.each(out, |asked, out| out.extend_from_slice(asked.server.text()))
    }),
    BuiltIn::fresh("upstream_status", |x, out| {
        x.backends.each(out, |asked, out| match asked.status.get() {
            0 => out.push(b'-'),
            status => decimal::write(status.into(), out),
        })
    }),
    BuiltIn::fresh("upstream_queue_time", |x, out| times(x, out, |asked| asked.queue_ms.get())),
    BuiltIn::fresh("upstream_connect_time", |x, out| times(x, out, |asked| asked.connect_ms.get())),
    BuiltIn::fresh("upstream_header_time", |x, out| times(x, out, |asked| asked.header_ms.get())),
    BuiltIn::fresh("upstream_response_time", |x, out| {
        times(x, out, |asked| asked.response_ms.get())
    }),
    BuiltIn::fresh("upstream_response_length", |x, out| {
        x.backends.each(out, |asked, out| decimal::write(asked.response_length.get(), out))
    }),
    BuiltIn::fresh("upstream_bytes_received", |x, out| {
        x.backends.each(out, |asked, out| decimal::write(asked.bytes_received.get(), out))
    }),
    BuiltIn::fresh("upstream_bytes_sent", |x, out| {
        x.backends.each(out, |asked, out| decimal::write(asked.bytes_sent.get(), out))
    }),
    BuiltIn::fresh("limit_upstream_in_progress", |x, out| {
        limit(x, out, |stats, out| decimal::write(stats.in_progress, out))
    }),
    BuiltIn::fresh("limit_upstream_waiting", |x, out| {
        limit(x, out, |stats, out| decimal::write(stats.waiting, out))
    }),
    BuiltIn::fresh("limit_upstream_queued", |x, out| {
        limit(x, out, |stats, out| decimal::write(stats.queued, out))
    }),
    BuiltIn::fresh("limit_upstream_rejected", |x, out| {
        limit(x, out, |stats, out| decimal::write(stats.rejected, out))
    }),
    BuiltIn::fresh("limit_upstream_timed_out", |x, out| {
        limit(x, out, |stats, out| decimal::write(stats.timed_out, out))
    }),
    BuiltIn::fresh("limit_upstream_waited", |x, out| {
        limit(x, out, |stats, out| decimal::write_seconds(stats.waited_ms, out))
    }),
    BuiltIn::prefix("upstream_http_", http),
    BuiltIn::prefix("upstream_trailer_", trailer),
    BuiltIn::prefix("upstream_cookie_", cookie),
];

/// Seconds with three decimals; what did not come about is a hyphen.
fn times(x: &mut Exchange, out: &mut Vec<u8>, time: fn(&UpstreamAttempt) -> Option<u64>) -> bool {
    x.backends.each(out, |asked, out| match time(asked) {
        Some(ms) => {
            decimal::write(ms / 1000, out);
            out.push(b'.');
            decimal::write_three(ms % 1000, out);
        }
        None => out.push(b'-'),
    })
}

/// Of the limit that holds for the group.
fn limit(x: &Exchange, out: &mut Vec<u8>, write: fn(LimitStats, &mut Vec<u8>)) -> bool {
    let limit = x.backends.limited.as_ref().and_then(|group| group.limit());
    if let Some(limit) = limit {
        write(limit.stats(), out);
    }
    limit.is_some()
}

fn http(name: Box<[u8]>) -> Getter {
    Box::new(move |x, out| {
        let text = &x.backends.head_text;
        let fields = x.backends.head.fields.iter();
        let named = fields.filter(|field| is_named(field.name.of(text), &name));
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
        let text = &x.backends.head_text;
        let cookies =
            x.backends.head.fields.iter().filter(|field| field.id == ReplyName::SetCookie);
        let found =
            cookies.map(|field| field.value.of(text)).find_map(|line| value_in(line, &name));
        out.extend_from_slice(found.unwrap_or_default());
        found.is_some()
    })
}

/// The value of the cookie that a line sets, if it has that name.
fn value_in<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    let rest = start.eq_ignore_ascii_case(name).then_some(skip_spaces(rest))?;
    let value = skip_spaces(rest.strip_prefix(b"=")?);
    value.split(|&byte| byte == b';').next()
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|&&byte| byte == b' ').count();
    &text[spaces..]
}

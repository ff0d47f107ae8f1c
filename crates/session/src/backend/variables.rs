//! `$upstream_...` and `$limit_upstream_...`: the results of trying servers.
//!
//! Each has a value for every server tried: separated by commas, and by colons after an internal
//! redirect to another resource.

use std::marker::PhantomData;

use upstream::limit::LimitStats;

use super::{Backed, UpstreamAttempt};
use crate::decimal;
use crate::variables::BuiltIn;

/// Their table, for sessions of type `X`.
pub struct BackendVariables<X>(PhantomData<X>);

impl<X: Backed> BackendVariables<X> {
    /// The variables.
    pub const TABLE: &'static [BuiltIn<X>] = &[
        BuiltIn::fresh(
            "upstream_addr",
            "The addresses of the servers that were tried, with commas between them; after an \
             internal redirect to another group, a colon.",
            |x, out| write_each(x, out, |tried, out| out.extend_from_slice(tried.name())),
        ),
        BuiltIn::fresh(
            "upstream_queue_time",
            "The time that each attempt waited for a free server, in seconds with milliseconds.",
            |x, out| write_times(x, out, |tried| tried.queue_ms.get()),
        )
        .not_in_nginx(),
        BuiltIn::fresh(
            "upstream_connect_time",
            "The time that each connection to a server took, TLS included, in seconds with \
             milliseconds.",
            |x, out| write_times(x, out, |tried| tried.connect_ms.get()),
        ),
        BuiltIn::fresh(
            "upstream_bytes_received",
            "The number of bytes that each server sent.",
            |x, out| {
                write_each(x, out, |tried, out| decimal::write(tried.bytes_received.get(), out))
            },
        ),
        BuiltIn::fresh(
            "upstream_bytes_sent",
            "The number of bytes that were sent to each server.",
            |x, out| write_each(x, out, |tried, out| decimal::write(tried.bytes_sent.get(), out)),
        ),
        BuiltIn::fresh(
            "limit_upstream_in_progress",
            "The number of requests in progress at the group's servers, where it has a limit \
             (docs/limit.md).",
            |x, out| limit(x, out, |stats, out| decimal::write(stats.in_progress, out)),
        )
        .not_in_nginx(),
        BuiltIn::fresh(
            "limit_upstream_waiting",
            "The number of requests in the group's queue now (docs/limit.md).",
            |x, out| limit(x, out, |stats, out| decimal::write(stats.waiting, out)),
        )
        .not_in_nginx(),
        BuiltIn::fresh(
            "limit_upstream_queued",
            "The number of requests that had to wait in the group's queue so far (docs/limit.md).",
            |x, out| limit(x, out, |stats, out| decimal::write(stats.queued, out)),
        )
        .not_in_nginx(),
        BuiltIn::fresh(
            "limit_upstream_rejected",
            "The number of requests that were rejected so far because the group's queue was full \
             (docs/limit.md).",
            |x, out| limit(x, out, |stats, out| decimal::write(stats.rejected, out)),
        )
        .not_in_nginx(),
        BuiltIn::fresh(
            "limit_upstream_timed_out",
            "The number of requests whose time in the group's queue ran out so far \
             (docs/limit.md).",
            |x, out| limit(x, out, |stats, out| decimal::write(stats.timed_out, out)),
        )
        .not_in_nginx(),
        BuiltIn::fresh(
            "limit_upstream_waited",
            "The time that requests have waited in the group's queue so far, all together, in \
             seconds (docs/limit.md).",
            |x, out| limit(x, out, |stats, out| decimal::write_seconds(stats.waited_ms, out)),
        )
        .not_in_nginx(),
    ];
}

/// A value for every server tried; false if there is none.
pub fn write_each<X: Backed>(
    x: &X,
    out: &mut Vec<u8>,
    write: impl Fn(&UpstreamAttempt, &mut Vec<u8>),
) -> bool {
    x.attempts().each(out, write)
}

/// Seconds with three decimals for every server tried; a hyphen where there is no time.
pub fn write_times<X: Backed>(
    x: &X,
    out: &mut Vec<u8>,
    time: fn(&UpstreamAttempt) -> Option<u64>,
) -> bool {
    x.attempts().each(out, |tried, out| match time(tried) {
        Some(ms) => decimal::write_seconds(ms, out),
        None => out.push(b'-'),
    })
}

/// Of the limit that holds for the group.
fn limit<X: Backed>(x: &X, out: &mut Vec<u8>, write: fn(LimitStats, &mut Vec<u8>)) -> bool {
    let limit = x.limited().and_then(|group| group.limit());
    if let Some(limit) = limit {
        write(limit.stats(), out);
    }
    limit.is_some()
}

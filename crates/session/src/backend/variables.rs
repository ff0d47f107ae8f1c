//! `$upstream_...` and `$limit_upstream_...`: what came of trying servers.
//!
//! Each has a value for every server tried: those tried one after another are divided by commas,
//! and by colons those asked for another resource after an internal redirect.

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
        BuiltIn::fresh("upstream_addr", |x, out| {
            write_each(x, out, |tried, out| out.extend_from_slice(tried.server.text()))
        }),
        BuiltIn::fresh("upstream_queue_time", |x, out| {
            write_times(x, out, |tried| tried.queue_ms.get())
        }),
        BuiltIn::fresh("upstream_connect_time", |x, out| {
            write_times(x, out, |tried| tried.connect_ms.get())
        }),
        BuiltIn::fresh("upstream_bytes_received", |x, out| {
            write_each(x, out, |tried, out| decimal::write(tried.bytes_received.get(), out))
        }),
        BuiltIn::fresh("upstream_bytes_sent", |x, out| {
            write_each(x, out, |tried, out| decimal::write(tried.bytes_sent.get(), out))
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

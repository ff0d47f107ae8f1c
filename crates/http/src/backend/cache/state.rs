//! What an exchange has to do with a cache, for variables and the request to the backend.

use std::sync::Arc;

pub(crate) use ::session::status::CacheOutcome as CacheStatus;
use wire::date;

use super::path::CacheStore;
use crate::decimal;
use crate::exchange::{Exchange, FeatureState};
use crate::variables::{BuiltIn, VariableTable};

#[derive(Default)]
pub(crate) struct CacheState {
    pub(super) status: Option<CacheStatus>,
    /// The age of the reply from the cache.
    pub(super) age_s: Option<i64>,
    /// What is added to replies; `None`: nothing.
    pub(super) added: Option<AddedFields>,
    /// `Last-Modified` and `ETag` of the expired reply that is to be revalidated.
    pub(super) last_modified: Option<i64>,
    pub(super) etag: Vec<u8>,
    /// The cache that counts the exchange at its end, because a backend was asked.
    counted_in: Option<Arc<CacheStore>>,
}

/// What is known of the reply.
#[derive(Clone)]
pub(super) struct AddedFields {
    /// That of `Cache-Status`.
    pub(super) name: Option<Arc<[u8]>>,
    /// Whether the rules are those of RFC 9111.
    pub(super) is_standard: bool,
    pub(super) forwarded: Option<ForwardReason>,
    /// The status with which the backend has replied.
    pub(super) status: Option<u16>,
    /// The last second in which a reply that is being stored is fresh.
    pub(super) stored_until_s: Option<i64>,
}

/// Why the backend is asked, in the words of RFC 9211, section 2.2.
#[derive(Clone, Copy, Debug)]
pub(super) enum ForwardReason {
    Bypass,
    Method,
    UriMiss,
    VaryMiss,
    Stale,
    Request,
}

impl FeatureState for CacheState {
    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl CacheState {
    /// Sets what the cache did. What a backend was asked about is known only until it has answered.
    pub(super) fn set(x: &mut Exchange, status: CacheStatus) {
        let state = x.states.of::<Self>();
        state.status = Some(status);
        state.last_modified = None;
        state.etag.clear();
    }
}

/// The status as the variable has it.
fn name(status: CacheStatus) -> &'static [u8] {
    match status {
        CacheStatus::Miss => b"MISS",
        CacheStatus::Bypass => b"BYPASS",
        CacheStatus::Expired => b"EXPIRED",
        CacheStatus::Stale => b"STALE",
        CacheStatus::Updating => b"UPDATING",
        CacheStatus::Revalidated => b"REVALIDATED",
        CacheStatus::Hit => b"HIT",
    }
}

/// What the cache has done for an exchange so far.
pub(super) fn status(x: &Exchange) -> Option<CacheStatus> {
    x.states.find::<CacheState>().and_then(|state| state.status)
}

/// A backend is asked: the exchange is counted at its end.
pub(super) fn count_at_end(x: &mut Exchange, store: &Arc<CacheStore>) {
    if metrics::are_wanted() {
        x.states.of::<CacheState>().counted_in = Some(store.clone());
    }
}

/// Counts an exchange that has ended, if its reply was a backend's.
pub(super) fn count_end(x: &mut Exchange) {
    if !metrics::are_wanted() || x.states.find::<CacheState>().is_none() {
        return;
    }
    let state = x.states.of::<CacheState>();
    let (store, status) = (state.counted_in.take(), state.status);
    if let (Some(store), Some(status)) = (store, status)
        && status.is_fetched()
    {
        store.counts.own().answered(status, x.backends.bytes_received());
    }
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_upstream_module",
    &[
        BuiltIn::fresh(
            "upstream_cache_status",
            "What the cache did: `MISS`, `BYPASS`, `EXPIRED`, `STALE`, `UPDATING`, `REVALIDATED` \
             or `HIT`.",
            |x, out| {
                let status = status(x);
                out.extend_from_slice(status.map_or(b"", name));
                status.is_some()
            },
        ),
        BuiltIn::fresh(
            "upstream_cache_age",
            "The age of the reply that was taken from the cache, in seconds: since it was stored \
             or last found valid; with `proxy_cache_rules rfc9111`, since a server has made it.",
            |x, out| {
                let age_s = x.states.find::<CacheState>().and_then(|state| state.age_s);
                if let Some(age_s) = age_s {
                    decimal::write(age_s.unsigned_abs(), out);
                }
                age_s.is_some()
            },
        ),
        BuiltIn::fresh(
            "upstream_cache_last_modified",
            "`Last-Modified` of the expired reply that a backend is asked about \
             (`proxy_cache_revalidate`).",
            |x, out| {
                let time = x.states.find::<CacheState>().and_then(|state| state.last_modified);
                out.extend_from_slice(time.map(date::http).as_ref().map_or(b"", |time| &time[..]));
                time.is_some()
            },
        ),
        BuiltIn::fresh(
            "upstream_cache_etag",
            "`ETag` of the expired reply that a backend is asked about \
             (`proxy_cache_revalidate`).",
            |x, out| {
                let etag = x.states.find::<CacheState>().map_or(&b""[..], |state| &state.etag);
                out.extend_from_slice(etag);
                !etag.is_empty()
            },
        ),
    ],
);

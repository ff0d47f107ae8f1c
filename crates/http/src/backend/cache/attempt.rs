//! A request to a backend whose reply may be stored, or answered by an expired one.
//!
//! It holds the right to fetch its key, if it has it; its drop, however the request ends, gives the
//! right back.

use std::sync::Arc;

use cache::rules::request::RequestControl;
use cache::{CacheKey, Fill, FillFailure, Freshness, KeyDigest, PurgeSubject, vary};
use net::clock;
use observe::Level;

use super::super::values::NextUpstream;
use super::cached::{self, CachedReply};
use super::path::CacheStore;
use super::state::CacheStatus;
use super::{Family, LocationCache, ReplyRules, reply_fields};
use crate::exchange::{Exchange, Flow};

/// A request whose reply may be stored.
pub(crate) struct CacheAttempt {
    pub(super) cache: Arc<LocationCache>,
    pub(super) store: Arc<CacheStore>,
    pub(super) key: CacheKey,
    /// The name of the file that was looked for: the key's, or that of a variant.
    pub(super) digest: KeyDigest,
    pub(super) fill: Option<Fill>,
    /// The expired reply.
    pub(super) stale: Option<Box<CachedReply>>,
    /// Whether the reply may be stored, as far as is known.
    pub(super) is_cacheable: bool,
    /// Whether the reply is not stored although it may be, because others fetch it as well.
    pub(super) is_unstored: bool,
    /// What the fields of the reply say.
    pub(super) freshness: Freshness,
    /// When the backend was asked.
    pub(super) asked_s: i64,
    /// What the request says about stored replies.
    pub(super) wanted: RequestControl,
    /// Whether the request removes what is stored for its URI.
    pub(super) is_unsafe: bool,
    /// Whether fields of the reply were dropped, so that its head is written anew.
    pub(super) has_dropped_fields: bool,
    /// The newest purge when the request began.
    pub(super) begun_ns: u64,
}

/// How long a reply that could not be stored is remembered as such.
const UNCACHEABLE_S: i64 = 5;

/// Seconds since 1970.
pub(super) fn now_s() -> i64 {
    (clock::unix_ms() / 1000) as i64
}

impl CacheAttempt {
    /// Whether the request asks for the whole reply, without the client's conditions and ranges.
    pub(crate) fn is_cacheable(&self) -> bool {
        self.is_cacheable
    }

    /// Whether the request is sent as GET although the client's method is HEAD.
    pub(crate) fn converts_head(&self) -> bool {
        self.cache.terms.converts_head
    }

    /// Reads the fields of the backend's reply.
    pub(in super::super) fn read_head(&mut self, x: &mut Exchange) {
        reply_fields::note_status(x);
        if self.cache.is_standard() {
            return self.read_standard_head(x);
        }
        let (head, text) = (&x.backends.head, &x.backends.head_text);
        self.freshness = cached::freshness(head, text, &self.cache.family, now_s());
    }

    /// Whether the fields of the reply allow storing it.
    pub(in super::super) fn may_store(&self) -> bool {
        self.is_cacheable && self.freshness.is_cacheable()
    }

    /// Answers with the expired reply, if that is allowed after this failure. `reason` is one of
    /// `next_upstream`'s; `is_error`: the backend did not reply at all.
    pub(in super::super) fn stale_after(
        &mut self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        reason: u16,
        is_error: bool,
    ) -> Option<Flow> {
        let stale = self.stale.as_ref()?;
        if !self.hides_failure(stale, reason, is_error) {
            return None;
        }
        self.answer_stale(x, rules, CacheStatus::Stale)
    }

    /// Whether a reply of that status says that the expired one is still valid.
    pub(in super::super) fn is_revalidated_by(&self, status: u16) -> bool {
        let Some(stale) = self.stale.as_ref().filter(|_| status == 304) else { return false };
        match self.cache.is_standard() {
            true => self.is_cacheable && (!stale.etag.is_empty() || stale.last_modified != -1),
            false => self.cache.conf.cache_revalidate,
        }
    }

    /// Answers with the reply that the backend has found valid, which is fresh again.
    pub(in super::super) fn revalidated(
        &mut self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
    ) -> Flow {
        if self.cache.is_standard() {
            return self.revalidated_by_standard(x, rules);
        }
        let mut freshness = std::mem::take(&mut self.freshness);
        let Some(flow) = self.answer_stale(x, rules, CacheStatus::Revalidated) else {
            return Flow::Status(500);
        };
        let now_s = now_s();
        // Those of the stored head.
        let tags = self.store.tags.values_of(&x.backends.head, &x.backends.head_text);
        if freshness.valid_s == 0 {
            freshness = CachedReply::freshness(x, &self.cache.family, now_s);
        }
        if freshness.valid_s == 0 {
            freshness.valid_s = self.valid_until(x.backends.head.status, now_s).unwrap_or(0);
        }
        if let Some(stale) = self.stale.take().filter(|_| freshness.valid_s != 0) {
            let subject = PurgeSubject::new(&self.key, &tags);
            let renewed = self.store.zone.renew(&subject, self.begun_ns, |earliest_ns| {
                stale.renew(&self.key, &freshness, now_s, earliest_ns)
            });
            if let Err(error) = renewed {
                stale.log_failure(x, "pwrite()", &error);
            }
        }
        flow
    }

    fn answer_stale(
        &mut self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        status: CacheStatus,
    ) -> Option<Flow> {
        let stale = self.stale.as_ref()?;
        if !stale.parse(x, self.cache.terms.form, self.cache.is_to_head(x)) {
            stale.log_invalid_head(x);
            return None;
        }
        Some(stale.answer(x, rules, &self.store, status))
    }

    /// Ends with a reply of a server that is not stored. What is true of the next reply as well is
    /// remembered, so that nobody waits for it.
    pub(in super::super) fn leave_unstored(&mut self, status: u16) {
        if status >= 500 {
            let reasons = NextUpstream::of_status(status);
            self.fail(FillFailure { status, reasons, is_error: false, was_sent: true });
        } else if self.is_cacheable {
            refuse(self.fill.take());
        }
    }

    /// Ends with a reply for which the client is given an error page.
    pub(in super::super) fn intercept(&mut self, status: u16) {
        if !self.remember_error(status, true) {
            self.leave_unstored(status);
        }
    }

    /// Tells those who wait that there is nothing to wait for.
    pub(in super::super) fn fail(&mut self, failure: FillFailure) {
        if let Some(fill) = self.fill.take() {
            fill.fail(failure);
        }
    }

    /// Remembers an error that the client is given, if `*_cache_valid` says so; `replied`: it is
    /// the status of a reply, whose fields count.
    pub(in super::super) fn remember_error(&self, status: u16, replied: bool) -> bool {
        let now_s = now_s();
        let fresh = if replied { self.freshness.valid_s } else { 0 };
        let may = if replied { self.may_store() } else { self.is_cacheable };
        let until_s = match fresh {
            0 => self.valid_until(status, now_s),
            until_s => Some(until_s),
        };
        let Some(until_s) = until_s.filter(|_| may) else { return false };
        let zone = &self.store.zone;
        zone.remember_error(&self.digest, status, self.begun_ns, until_s, now_s);
        true
    }

    pub(super) fn valid_until(&self, status: u16, now_s: i64) -> Option<i64> {
        let seconds = self.cache.conf.cache_valid.as_ref()?.of(status)?;
        Some(now_s.saturating_add(seconds))
    }

    /// The file that a reply with this `Vary` belongs in, and its variant: the first variant has
    /// the file of the key, others have their own.
    pub(super) fn place(&self, x: &Exchange) -> (KeyDigest, KeyDigest) {
        let main = self.key.digest();
        if self.freshness.vary.is_empty() {
            return (main, KeyDigest::default());
        }
        let variant = self.cache.variant_of(x, main, &self.freshness.vary);
        match variant == self.digest {
            true => (variant, variant),
            false => (main, variant),
        }
    }
}

/// Ends a fill whose reply cannot be stored, so that nobody waits for the next one either.
pub(super) fn refuse(fill: Option<Fill>) {
    if let Some(fill) = fill {
        let now_s = now_s();
        fill.refuse(now_s + UNCACHEABLE_S, now_s);
    }
}

impl LocationCache {
    /// The digest of the variant that a request is given.
    pub(super) fn variant_of(&self, x: &Exchange, main: KeyDigest, vary: &[u8]) -> KeyDigest {
        let values_of = |name: &[u8], add: &mut dyn FnMut(&[u8])| {
            for field in &x.request.head.fields {
                if x.request.text(field.name).eq_ignore_ascii_case(name) {
                    add(x.request.text(field.value));
                }
            }
        };
        match self.is_standard() {
            true => vary::normalized_variant(main, vary, values_of),
            false => vary::variant(main, vary, values_of),
        }
    }

    /// Whether stored replies are those to HEAD requests.
    pub(super) fn is_to_head(&self, x: &Exchange) -> bool {
        let is_sent = x.request.head.method == wire::Method::Head && !self.terms.converts_head;
        is_sent && !self.is_standard()
    }

    pub(super) fn key_is_too_long(&self, x: &Exchange, key: &CacheKey, family: &Family) -> bool {
        let room = family.buffer_size.0;
        let wanted = key.head_start().map(|start| u64::from(start) + 256);
        if wanted.is_some_and(|wanted| wanted <= room) {
            return false;
        }
        let (prefix, wanted) = (self.prefix, wanted.unwrap_or(0x10000).next_multiple_of(1024));
        let what = format_args!("{prefix}buffer_size {room} is not enough for cache key");
        let help = format_args!("it should be increased to at least {wanted}");
        x.log(Level::Error, format_args!("{what}, {help}"));
        true
    }
}

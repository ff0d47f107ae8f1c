//! `*_cache_rules rfc9111`: where a location obeys the standards, not nginx.
//!
//! | | nginx | RFC 9111 |
//! |---|---|---|
//! | `Cache-Control` of a request | nothing | says whether a stored reply will do |
//! | a stored reply | sent as it was stored | with its own `Date`, and with `Age` |
//! | a 304 | renews the times | changes the fields as well |
//! | an unsafe method | nothing | removes what is stored for its URI |
//!
//! The rules themselves are in [`cache::rules`].

use std::borrow::Cow;

use cache::rules::fields::{HeadText, HeadUpdate, is_of_connection};
use cache::rules::invalidation::{is_unsafe, same_origin_target, sibling_key};
use cache::rules::request::RequestControl;
use cache::rules::rfc9111::{ReplyFacts, StandardReply, http_date};
use cache::{Freshness, KeyDigest, PurgeSubject};
use wire::reply::ReplyName;
use wire::{Known, Method};

use super::super::values::{IgnoredFields, NextUpstream};
use super::attempt::{CacheAttempt, now_s};
use super::cached::CachedReply;
use super::state::CacheStatus;
use super::{LocationCache, ReplyRules, StorageRules};
use crate::exchange::{Exchange, Flow};

impl LocationCache {
    /// Whether the rules are those of RFC 9111.
    pub(super) fn is_standard(&self) -> bool {
        self.conf.cache_rules == StorageRules::Rfc9111
    }

    /// Whether the backend is asked if an expired reply is still valid.
    pub(super) fn revalidates(&self) -> bool {
        self.conf.cache_revalidate || self.is_standard()
    }

    fn read_reply<'t>(&self, head: HeadText<'t>) -> StandardReply<'t> {
        StandardReply::of(head.head, head.text, |name| {
            let ignored = IgnoredFields::of_caching(name);
            ignored != 0 && self.family.ignore_headers.is_some_and(|fields| fields.has(ignored))
        })
    }
}

/// The head of the backend's reply, or of the stored reply that was parsed last.
fn head_of(x: &Exchange) -> HeadText<'_> {
    HeadText { head: &x.backends.head, text: &x.backends.head_text }
}

/// Reads what a request says about stored replies.
fn control_of(x: &Exchange) -> RequestControl {
    let request = &x.request;
    let values = |name: &'static [u8]| {
        let fields = request.head.fields.iter();
        let of_name = fields.filter(|field| request.text(field.name).eq_ignore_ascii_case(name));
        of_name.map(|field| request.text(field.value))
    };
    RequestControl::of(values(b"cache-control"), values(b"pragma"))
}

impl CacheAttempt {
    /// Reads the request.
    pub(super) fn begin_standard(&mut self, x: &Exchange) {
        if !self.is_cacheable {
            self.is_unsafe = is_unsafe(x.request.method_name());
            return;
        }
        self.wanted = control_of(x);
        // A reply to HEAD is no reply to GET.
        let is_whole = x.request.head.method != Method::Head || self.converts_head();
        self.is_cacheable &= !self.wanted.no_store && is_whole;
    }

    /// Whether a stored reply, whose head was parsed, is used without asking the backend.
    pub(super) fn will_do(&self, x: &Exchange, reply: &mut CachedReply, now_s: i64) -> bool {
        if !self.cache.is_standard() {
            return reply.valid_s >= now_s;
        }
        let is_expired = reply.valid_s < now_s;
        reply.forbids_stale = is_expired && self.cache.read_reply(head_of(x)).forbids_stale();
        self.wanted.accepts(reply.age(), !reply.forbids_stale, now_s)
    }

    /// Whether the expired reply may be used while another request updates it.
    pub(super) fn allows_updating(&self, stale: &CachedReply) -> bool {
        let within = stale.valid_s.saturating_add(stale.updating_s) >= now_s();
        let may = within || self.cache.conf.cache_use_stale.has(NextUpstream::UPDATING);
        may && !stale.forbids_stale && !self.wanted.is_demanding()
    }

    /// Whether the expired reply is updated without a client that waits.
    pub(super) fn updates_in_background(&self, stale: &CachedReply) -> bool {
        let is_asked_to = self.cache.is_standard() && stale.updating_s > 0;
        self.is_cacheable && (self.cache.conf.cache_background_update || is_asked_to)
    }

    /// Whether the expired reply may hide a failure of the backend: no reply at all, or a status
    /// of those that `stale-if-error` is about (RFC 5861, section 4).
    pub(super) fn hides_failure(&self, stale: &CachedReply, reason: u16, is_error: bool) -> bool {
        let within = stale.valid_s.saturating_add(stale.error_s) >= now_s();
        let is_configured = self.cache.conf.cache_use_stale.has(reason);
        if !self.cache.is_standard() {
            return is_configured || is_error && within;
        }
        let is_wanted = within || self.wanted.accepts_after_error(stale.age(), now_s());
        let is_failure = is_error || reason & NextUpstream::SERVER_ERRORS != 0;
        (is_configured || is_failure && is_wanted) && !stale.forbids_stale
    }

    /// Reads the fields of the backend's reply.
    pub(super) fn read_standard_head(&mut self, x: &mut Exchange) {
        let status = x.backends.head.status;
        if status == 101 {
            return;
        }
        match self.is_unsafe {
            true if (200..400).contains(&status) => self.invalidate(x),
            true => {}
            false => self.read_freshness(x, status),
        }
        self.drop_fields_of_connection(x);
    }

    fn read_freshness(&mut self, x: &Exchange, status: u16) {
        if x.request.head.method == Method::Head && status == 200 && self.is_outdated_by(x) {
            self.store.zone.remove(&self.digest);
        }
        let reply = self.cache.read_reply(head_of(x));
        self.freshness = reply.freshness(&self.facts(x, now_s()));
        // The backend has something else than what is stored, which must not be used again.
        let is_newer = self.is_cacheable && self.stale.is_some() && status < 400 && status != 304;
        if is_newer && !self.freshness.is_cacheable() {
            self.store.zone.remove(&self.digest);
        }
    }

    /// Whether a reply to HEAD is about something else than what is stored (section 4.3.5).
    fn is_outdated_by(&self, x: &Exchange) -> bool {
        let Some(stale) = &self.stale else { return false };
        let head = head_of(x);
        let tag = head.first(ReplyName::ETag);
        let modified = head.first(ReplyName::LastModified).and_then(http_date);
        let length = head.first(ReplyName::ContentLength).and_then(conf::units::number);
        tag.is_some_and(|tag| tag != stale.etag)
            || modified.is_some_and(|modified| modified != stale.last_modified)
            || length.is_some_and(|length| length != stale.body_bytes())
    }

    fn facts(&self, x: &Exchange, now_s: i64) -> ReplyFacts<'_> {
        let valid = self.cache.conf.cache_valid.as_ref();
        ReplyFacts {
            asked_s: self.asked_s,
            now_s,
            is_authorized: x.request.field(Known::Authorization).is_some(),
            configured_s: valid.and_then(|valid| valid.of(x.backends.head.status)),
            key: self.key.text(),
        }
    }

    /// Fields that are about the backend's connection are neither stored nor passed on.
    fn drop_fields_of_connection(&mut self, x: &mut Exchange) {
        let head = head_of(x);
        let connection: Vec<_> = head.values(b"connection").collect();
        let drops = |name: &[u8]| is_of_connection(name, connection.iter().copied());
        if !head.has(drops) {
            return;
        }
        let text = head.text;
        let kept = head.head.fields.iter().filter(|field| !drops(field.name.of(text)));
        let kept = kept.copied().collect();
        x.backends.head.fields = kept;
        self.has_dropped_fields = true;
    }

    /// The head as it is stored: without fields that are only for the client that asked.
    pub(super) fn head_to_store<'t>(&self, x: &Exchange, text: &'t [u8]) -> Cow<'t, [u8]> {
        if !self.cache.is_standard() {
            return Cow::Borrowed(text);
        }
        let head = head_of(x);
        let reply = self.cache.read_reply(head);
        match self.has_dropped_fields || head.has(|name| reply.withholds(name)) {
            true => Cow::Owned(head.without(|name| reply.withholds(name))),
            false => Cow::Borrowed(text),
        }
    }

    /// Answers with the stored reply that the backend has found valid, as the 304 changes it.
    pub(super) fn revalidated_by_standard(
        &mut self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
    ) -> Flow {
        let Some(mut stale) = self.stale.take() else { return Flow::Status(500) };
        let newer = std::mem::take(&mut x.backends.head);
        let newer_text = std::mem::take(&mut x.backends.head_text);
        let newer = HeadText { head: &newer, text: &newer_text };
        let form = self.cache.terms.form;
        if !stale.parse(x, form, false) {
            stale.log_invalid_head(x);
            return Flow::Status(500);
        }
        let news = self.cache.read_reply(newer);
        let update = head_of(x).updated_by(newer, |name| news.withholds(name));
        if let HeadUpdate::Changed(text) = &update {
            stale.change_head(form, text);
            if !stale.parse(x, form, false) {
                stale.log_invalid_head(x);
                return Flow::Status(500);
            }
        }
        let now_s = now_s();
        let reply = self.cache.read_reply(head_of(x)).with_times_of(news);
        let facts = self.facts(x, now_s);
        let is_for_all = !facts.is_authorized || reply.allows_authorized();
        let freshness = reply.freshness(&ReplyFacts { is_authorized: false, ..facts });
        (stale.made_s, stale.valid_s) = (freshness.made_s, freshness.valid_s);
        // A 304 for an authorised request may be about a reply for that user only.
        if is_for_all {
            self.keep_revalidated(x, &stale, &update, &freshness);
        }
        stale.answer(x, rules, &self.store, CacheStatus::Revalidated)
    }

    /// Writes what the 304 has changed into the stored reply.
    fn keep_revalidated(
        &mut self,
        x: &mut Exchange,
        stale: &CachedReply,
        update: &HeadUpdate,
        freshness: &Freshness,
    ) {
        match update {
            HeadUpdate::OtherReply => _ = self.store.zone.remove(&self.digest),
            _ if !freshness.is_cacheable() => _ = self.store.zone.remove(&self.digest),
            HeadUpdate::Same => {
                let tags = self.store.tags.values_of(&x.backends.head, &x.backends.head_text);
                let subject = PurgeSubject::new(&self.key, &tags);
                let renewed = self.store.zone.renew(&subject, self.begun_ns, |earliest_ns| {
                    stale.renew(&self.key, freshness, freshness.made_s, earliest_ns)
                });
                if let Err(error) = renewed {
                    stale.log_failure(x, "pwrite()", &error);
                }
            }
            HeadUpdate::Changed(_) => self.rewrite(x, stale, freshness),
        }
    }

    /// Whether a variant may be left over from before an unsafe method has removed its key. The
    /// variants of an earlier process are not known then, but all are older than what was stored
    /// for the key afterwards.
    pub(super) fn is_left_over(&self, variant: &CachedReply, key_modified_ns: u64) -> bool {
        self.cache.is_standard()
            && variant.modified_ns() < key_modified_ns
            && !self.store.zone.knows_variant(&self.key.digest(), &self.digest)
    }

    /// Removes what is stored for the URI of the request, and for those that its reply names.
    fn invalidate(&self, x: &Exchange) {
        self.store.zone.remove_variants(&self.key.digest());
        let target = x.request.text(x.request.head.target);
        let host = x.request.field(Known::Host).unwrap_or_default();
        let head = head_of(x);
        let location = head.first(ReplyName::Location);
        for reference in location.into_iter().chain(head.values(b"content-location")) {
            let other = same_origin_target(reference, host, target);
            let key = other.and_then(|other| sibling_key(self.key.text(), target, &other));
            if let Some(key) = key {
                self.store.zone.remove_variants(&KeyDigest::of(&key));
            }
        }
    }
}

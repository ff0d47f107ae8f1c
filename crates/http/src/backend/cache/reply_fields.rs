//! What a cache adds to the heads of replies: `Cache-Status` (RFC 9211), and by the rules of RFC
//! 9111 `Age`, `Date` and conditions in the order of RFC 9110.
//!
//! Without `*_cache_rules` and `*_cache_status`, nothing is kept and nothing added.

use std::io::Write;

use cache::rules::request::StoredAge;
use cache::rules::rfc9111::http_date;
use net::clock;
use wire::date;
use wire::reply::ReplyName;

use super::LocationCache;
use super::state::{AddedFields, CacheState, ForwardReason};
use crate::decimal;
use crate::exchange::Exchange;

impl ForwardReason {
    fn word(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Stale => "stale",
            Self::Request => "request",
        }
    }
}

impl LocationCache {
    /// Whether the cache has to do with requests whose replies it does not store.
    pub(super) fn looks_at_all_methods(&self) -> bool {
        self.is_standard() || self.conf.cache_status.0.is_some()
    }
}

/// From here on, fields are added to replies.
pub(super) fn begin(x: &mut Exchange, cache: &LocationCache) {
    x.states.of::<CacheState>().added = Some(AddedFields {
        name: cache.conf.cache_status.0.clone(),
        is_standard: cache.is_standard(),
        forwarded: None,
        status: None,
        stored_until_s: None,
    });
}

fn added(x: &mut Exchange) -> Option<&mut AddedFields> {
    x.states.find::<CacheState>()?;
    x.states.of::<CacheState>().added.as_mut()
}

/// Notes why the backend is asked.
pub(super) fn note_forwarded(x: &mut Exchange, reason: ForwardReason) {
    if let Some(added) = added(x) {
        added.forwarded = Some(reason);
    }
}

/// Notes that the backend has replied.
pub(super) fn note_status(x: &mut Exchange) {
    let status = x.backends.head.status;
    if let Some(added) = added(x) {
        added.status = Some(status);
    }
}

/// Notes that the reply is being stored.
pub(super) fn note_stored(x: &mut Exchange, valid_s: i64) {
    if let Some(added) = added(x) {
        added.stored_until_s = Some(valid_s);
    }
}

fn now_s() -> i64 {
    (clock::unix_ms() / 1000) as i64
}

/// Adds the fields of a reply from the cache.
pub(super) fn add_to_stored(x: &mut Exchange, stored: StoredAge) {
    let now_s = now_s();
    let age_s = now_s.saturating_sub(stored.made_s).max(0);
    let state = x.states.of::<CacheState>();
    state.age_s = Some(age_s);
    let Some(added) = state.added.clone() else { return };
    if added.is_standard {
        pass_date(x, Some(stored.made_s));
        x.reply.fields.remove(b"Age");
        let mut text = x.scratch();
        decimal::write(age_s.unsigned_abs(), &mut text);
        x.reply.fields.append(b"Age", &text);
        x.give_scratch(text);
        obey_standard_conditions(x, stored.made_s);
    }
    added.add_status(x, Some(stored.valid_s), now_s);
}

/// Adds the fields of a backend's reply.
pub(in super::super) fn add_to_forwarded(x: &mut Exchange) {
    let Some(added) = added(x) else { return };
    let added = added.clone();
    if added.is_standard && x.reply.status != 101 {
        pass_date(x, None);
        if !x.reply.disable_not_modified {
            obey_standard_conditions(x, now_s());
        }
    }
    added.add_status(x, None, now_s());
}

/// Passes the backend's `Date` on, which a cache does not replace.
fn pass_date(x: &mut Exchange, made_s: Option<i64>) {
    let sent = x.backends.head.field(ReplyName::Date);
    let sent = sent.and_then(|field| http_date(field.value.of(&x.backends.head_text)));
    // A 304 that has changed nothing else is newer than the stored field.
    let Some(date_s) = sent.max(made_s) else { return };
    x.reply.has_date = true;
    x.reply.fields.remove(b"Date");
    x.reply.fields.append(b"Date", &date::http(date_s));
}

/// The whole reply is there, so that conditions and ranges are decided here.
fn obey_standard_conditions(x: &mut Exchange, made_s: i64) {
    x.reply.standard_conditions = Some(made_s);
    x.reply.allow_ranges |= x.reply.status == 200;
}

impl AddedFields {
    /// Adds `Cache-Status`. `stored_s`: the last fresh second of the stored reply that this is.
    fn add_status(&self, x: &mut Exchange, stored_s: Option<i64>, now_s: i64) {
        let Some(name) = &self.name else { return };
        let mut text = x.scratch();
        text.extend_from_slice(name);
        let mut put = |parameter: std::fmt::Arguments<'_>| {
            text.extend_from_slice(b"; ");
            text.write_fmt(parameter).expect("memory takes all");
        };
        match self.forwarded {
            None => put(format_args!("hit")),
            Some(forwarded) => put(format_args!("fwd={}", forwarded.word())),
        }
        if let Some(status) = self.status {
            put(format_args!("fwd-status={status}"));
        }
        if self.stored_until_s.is_some() {
            put(format_args!("stored"));
        }
        if let Some(valid_s) = self.stored_until_s.or(stored_s) {
            // By nginx's rules, a reply is fresh for a second more than it says.
            let last_s = valid_s.saturating_add(self.is_standard.into());
            let left_s = last_s.saturating_sub(now_s);
            put(format_args!("ttl={left_s}"));
        }
        x.reply.fields.append(b"Cache-Status", &text);
        x.give_scratch(text);
    }
}

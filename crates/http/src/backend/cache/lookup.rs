//! Looks a request up in the cache: an answer, or what the backend is asked for.
//!
//! ```text
//!          +--> file --fresh--> HIT
//! key --> index       --expired--> updated by another: UPDATING, or wait
//!   ^      |                   \--> background update: STALE
//!   |      |                    \-> attempt: EXPIRED
//!   |      +--> nothing, fetched by another: wait --+
//!   |      +--> nothing: attempt: MISS              |
//!   +-----------------------------------------------+
//! ```

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use cache::rules::request::RequestControl;
use cache::{CacheKey, FileProblem, Freshness, KeyDigest, KeyState, PurgeSubject};
use observe::{Level, Text};
use wire::Known;

use super::attempt::{CacheAttempt, now_s};
use super::cached::{CachedReply, NotCached, log_invalid};
use super::lock::{LockOutcome, LockPatience};
use super::path::CacheStore;
use super::purge::PurgeWanted;
use super::state::{CacheState, CacheStatus, ForwardReason};
use super::{CacheChoice, LocationCache, ReplyRules, reply_fields, state, update};
use crate::exchange::{Exchange, Flow};
use crate::paths;

/// The result of looking a request up.
pub(crate) enum CacheLookup {
    /// The exchange has its reply, or goes on otherwise.
    Answered(Flow),
    /// The backend is asked; `None`: the cache has nothing to do with it.
    Ask(Option<Box<CacheAttempt>>),
}

/// What the cache has for a request.
enum CacheFinding {
    Fresh(Box<CachedReply>),
    Expired(Box<CachedReply>),
    /// The file is that of another variant.
    OtherVariant(WantedVariant),
    Nothing {
        is_scarce: bool,
        is_uncacheable: bool,
    },
    Error(u16),
    /// The file is large, and may be torn: it must be read before it is used.
    Unchecked(Box<CachedReply>),
    /// The file cannot be opened: the backend is asked, and nothing is stored.
    Failed,
}

/// The variant that a request is for, if it is not the one in the file of its key.
#[derive(Clone, Copy)]
struct WantedVariant {
    digest: KeyDigest,
    /// When the file of the key was written.
    key_modified_ns: u64,
}

/// What to do after one look.
enum Look {
    Done(CacheLookup),
    /// Another fetches the key: look again afterwards.
    Wait(Box<CacheAttempt>),
    /// Check the file, and look again.
    Check(Box<CacheAttempt>, Box<CachedReply>),
}

impl LocationCache {
    /// Looks a request up. `default_key` writes the key that the family has without `*_cache_key`.
    pub(crate) async fn look_up(
        self: &Arc<Self>,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        default_key: impl FnOnce(&mut Exchange, &mut Vec<u8>),
    ) -> CacheLookup {
        if let Some(attempt) = update::take(x) {
            attempt.expect_revalidation(x);
            return asked(x, CacheLookup::Ask(Some(attempt)));
        }
        let purge = match PurgeWanted::by(self.conf.cache_purge.as_ref(), x) {
            Ok(purge) => purge,
            Err(flow) => return CacheLookup::Answered(flow),
        };
        let methods = self.conf.cache_methods.unwrap_or(super::CacheMethods::USUAL);
        let is_cacheable = methods.has(x.request.head.method);
        if !is_cacheable && !self.looks_at_all_methods() && purge.is_none() {
            return CacheLookup::Ask(None);
        }
        let store = match self.store(x) {
            Ok(Some(store)) => store,
            Ok(None) => return CacheLookup::Ask(None),
            Err(flow) => return CacheLookup::Answered(flow),
        };
        let key = self.key(x, default_key);
        if let Some(purge) = purge {
            return CacheLookup::Answered(Box::pin(purge.answer(x, store, key)).await);
        }
        if self.key_is_too_long(x, &key, &self.family) {
            return CacheLookup::Ask(None);
        }
        let (digest, begun_ns) = (key.digest(), store.zone.newest_purge_ns());
        let mut attempt = Box::new(CacheAttempt {
            cache: self.clone(),
            store,
            key,
            digest,
            fill: None,
            stale: None,
            is_cacheable,
            is_unstored: false,
            freshness: Freshness::default(),
            asked_s: 0,
            wanted: RequestControl::default(),
            is_unsafe: false,
            has_dropped_fields: false,
            begun_ns,
        });
        if self.looks_at_all_methods() {
            reply_fields::begin(x, self);
        }
        if self.is_standard() {
            attempt.begin_standard(x);
        }
        if !is_cacheable {
            return asked(x, CacheLookup::Ask(Some(attempt)));
        }
        if self.conf.cache_bypass.as_ref().is_some_and(|bypass| bypass.any(x)) {
            CacheState::set(x, CacheStatus::Bypass);
            state::count_at_end(x, &attempt.store);
            return asked(x, CacheLookup::Ask(Some(attempt)));
        }
        CacheState::set(x, CacheStatus::Miss);
        self.look_until_done(x, rules, attempt).await
    }

    /// Looks, and looks again after each wait.
    async fn look_until_done(
        self: &Arc<Self>,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        mut attempt: Box<CacheAttempt>,
    ) -> CacheLookup {
        let mut patience = LockPatience::new(self);
        loop {
            attempt = match self.look(x, rules, attempt, &patience) {
                Look::Done(lookup) => {
                    if let CacheLookup::Ask(Some(attempt)) = &lookup {
                        state::count_at_end(x, &attempt.store);
                    }
                    return asked(x, lookup);
                }
                Look::Wait(attempt) => attempt,
                Look::Check(checking, reply) => {
                    attempt = checking;
                    attempt.check_file(x, &reply).await;
                    attempt.fill = None;
                    continue;
                }
            };
            match patience.wait(x, &attempt).await {
                LockOutcome::LookAgain => {}
                LockOutcome::Failed(failure) => {
                    return CacheLookup::Answered(attempt.share_failure(x, rules, &failure));
                }
                LockOutcome::Begun(progress) => {
                    if let Some(flow) = attempt.follow(x, rules, &progress) {
                        return CacheLookup::Answered(flow);
                    }
                }
            }
        }
    }

    fn key(
        &self,
        x: &mut Exchange,
        default_key: impl FnOnce(&mut Exchange, &mut Vec<u8>),
    ) -> CacheKey {
        let mut text = x.scratch();
        match &self.conf.cache_key {
            Some(template) => template.render(x, &mut text),
            None => default_key(x, &mut text),
        }
        let key = CacheKey::new(&text);
        x.give_scratch(text);
        key
    }

    /// The cache for a request; `None`: there is none.
    fn store(&self, x: &mut Exchange) -> Result<Option<Arc<CacheStore>>, Flow> {
        let (template, stores) = match &self.store {
            CacheChoice::Fixed(store) => return Ok(Some(store.clone())),
            CacheChoice::Computed(template, stores) => (template, stores),
        };
        let name = x.render(template);
        if matches!(&name[..], b"" | b"off") {
            return Ok(None);
        }
        match stores.get(&name[..]) {
            Some(store) => Ok(Some(store.clone())),
            None => {
                x.log(Level::Error, format_args!("cache \"{}\" not found", Text(&name)));
                Err(Flow::Status(500))
            }
        }
    }

    /// Looks once.
    fn look(
        self: &Arc<Self>,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        mut attempt: Box<CacheAttempt>,
        patience: &LockPatience,
    ) -> Look {
        let answered = |flow| Look::Done(CacheLookup::Answered(flow));
        let asks = |attempt| Look::Done(CacheLookup::Ask(attempt));
        let mut is_uncacheable = false;
        attempt.begun_ns = attempt.store.zone.newest_purge_ns();
        match attempt.find(x) {
            CacheFinding::Fresh(reply) => {
                return answered(reply.answer(x, rules, &attempt.store, CacheStatus::Hit));
            }
            CacheFinding::Error(status) => {
                CacheState::set(x, CacheStatus::Hit);
                if metrics::are_wanted() {
                    attempt.store.counts.own().answered(CacheStatus::Hit, 0);
                }
                return answered(Flow::Status(status));
            }
            CacheFinding::Failed | CacheFinding::OtherVariant(_) => return asks(None),
            CacheFinding::Unchecked(reply) => {
                attempt.begin_fill(u64::MAX, patience);
                if attempt.fill.is_some() {
                    return Look::Check(attempt, reply);
                }
                if patience.may_wait() {
                    return Look::Wait(attempt);
                }
                attempt.is_cacheable = false;
            }
            CacheFinding::Expired(reply) => {
                attempt.stale = Some(reply);
                return self.look_at_expired(x, rules, attempt, patience);
            }
            CacheFinding::Nothing { is_scarce: true, .. } => attempt.is_cacheable = false,
            CacheFinding::Nothing { is_uncacheable: known, .. } => is_uncacheable = known,
        }
        if attempt.is_cacheable && self.conf.cache_lock && !is_uncacheable {
            attempt.begin_fill(self.conf.cache_lock_age.0, patience);
            if attempt.fill.is_none() {
                if patience.may_wait() {
                    return Look::Wait(attempt);
                }
                attempt.is_cacheable = !patience.is_late();
            }
        }
        attempt.check_range(x);
        asks(Some(attempt))
    }

    fn look_at_expired(
        self: &Arc<Self>,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        mut attempt: Box<CacheAttempt>,
        patience: &LockPatience,
    ) -> Look {
        let stale = attempt.stale.as_ref();
        let may_update = stale.is_some_and(|stale| attempt.allows_updating(stale));
        let in_background = stale.is_some_and(|stale| attempt.updates_in_background(stale));
        // Without a lock, or with something to serve meanwhile, nobody waits for the first.
        let age_ms = match self.conf.cache_lock && !may_update {
            true => self.conf.cache_lock_age.0,
            false => u64::MAX,
        };
        attempt.begin_fill(age_ms, patience);
        let is_first = attempt.fill.is_some();
        if is_first && may_update && in_background {
            return Look::Done(CacheLookup::Answered(update::begin(x, rules, attempt)));
        }
        if !is_first && may_update {
            let flow = attempt.answer(x, rules, CacheStatus::Updating);
            return Look::Done(CacheLookup::Answered(flow));
        }
        if !is_first && self.conf.cache_lock {
            if patience.may_wait() && !attempt.is_uncacheable() {
                return Look::Wait(attempt);
            }
            attempt.is_unstored = patience.is_late();
        }
        attempt.expect_revalidation(x);
        attempt.check_range(x);
        Look::Done(CacheLookup::Ask(Some(attempt)))
    }
}

/// The backend is asked, unless the request forbids that.
fn asked(x: &mut Exchange, lookup: CacheLookup) -> CacheLookup {
    let CacheLookup::Ask(Some(mut attempt)) = lookup else { return lookup };
    if attempt.wanted.only_if_cached {
        return CacheLookup::Answered(Flow::Status(504));
    }
    attempt.asked_s = now_s();
    let reason = attempt.reason(x);
    reply_fields::note_forwarded(x, reason);
    CacheLookup::Ask(Some(attempt))
}

impl CacheFinding {
    const NOTHING: Self = Self::Nothing { is_scarce: false, is_uncacheable: false };
    const SCARCE: Self = Self::Nothing { is_scarce: true, is_uncacheable: false };
}

impl CacheAttempt {
    /// Finds what the cache has.
    fn find(&mut self, x: &mut Exchange) -> CacheFinding {
        self.digest = self.key.digest();
        let found = self.find_file(x, None);
        let CacheFinding::OtherVariant(variant) = found else { return found };
        self.digest = variant.digest;
        let found = self.find_file(x, Some(&variant));
        if !matches!(found, CacheFinding::OtherVariant(_)) {
            return found;
        }
        let path = self.store.zone.folder().file(&self.digest);
        let (path, what) = (path.display(), "has incorrect vary hash");
        x.log(Level::Crit, format_args!("cache file \"{path}\" {what}"));
        CacheFinding::NOTHING
    }

    /// What the cache has in the file of the digest.
    fn find_file(&self, x: &mut Exchange, wanted: Option<&WantedVariant>) -> CacheFinding {
        let uses_min = u32::try_from(self.cache.conf.cache_min_uses.0).unwrap_or(u32::MAX);
        let (zone, now_s) = (&self.store.zone, now_s());
        let state = zone.find(&self.digest, uses_min, now_s);
        let is_scarce = match state {
            KeyState::Stored | KeyState::Loaded => false,
            KeyState::Unread { is_scarce } => is_scarce,
            KeyState::Missing => return CacheFinding::NOTHING,
            KeyState::Scarce => return CacheFinding::SCARCE,
            KeyState::Error { status, purge_ns } => {
                let subject = PurgeSubject::new(&self.key, b"");
                return match zone.is_error_purged(&subject, purge_ns) {
                    true => CacheFinding::NOTHING,
                    false => CacheFinding::Error(status),
                };
            }
            KeyState::Uncacheable => {
                return CacheFinding::Nothing { is_scarce: false, is_uncacheable: true };
            }
        };
        let path = zone.folder().file(&self.digest);
        let mut reply = match CachedReply::open(x, path.clone(), &self.key) {
            Ok(reply) => Box::new(reply),
            Err(unusable) => return self.without_file(x, &path, &unusable, is_scarce),
        };
        // Before the variant, so that whatever is used was looked at.
        let is_purged = zone.may_be_purged(reply.modified_ns()) && self.is_purged(x, &reply);
        if is_purged
            || wanted.is_some_and(|wanted| self.is_left_over(&reply, wanted.key_modified_ns))
        {
            zone.remove(&self.digest);
            return CacheFinding::NOTHING;
        }
        if !reply.vary.is_empty() {
            let digest = self.cache.variant_of(x, self.key.digest(), &reply.vary);
            if digest != reply.variant {
                let key_modified_ns = reply.modified_ns();
                return CacheFinding::OtherVariant(WantedVariant { digest, key_modified_ns });
            }
        }
        if state != KeyState::Stored {
            if !zone.is_trusted() && reply.long_check().is_some() {
                return CacheFinding::Unchecked(reply);
            }
            if !reply.is_intact() {
                log_invalid(x, &path, FileProblem::Checksum);
                zone.remove(&self.digest);
                return CacheFinding::NOTHING;
            }
            self.note_found(&reply);
        }
        if !reply.parse(x, self.cache.terms.form, self.cache.is_to_head(x)) {
            reply.log_invalid_head(x);
            zone.remove(&self.digest);
            return CacheFinding::NOTHING;
        }
        match self.will_do(x, &mut reply, now_s) {
            true => CacheFinding::Fresh(reply),
            false => CacheFinding::Expired(reply),
        }
    }

    /// Has the index know a file of an earlier process as one that can be used.
    fn note_found(&self, reply: &CachedReply) {
        let CacheStore { zone, variants_max, .. } = &*self.store;
        zone.store(&self.digest, reply.facts(), now_s());
        if self.digest != self.key.digest() {
            zone.note_variant(&self.key.digest(), &self.digest, *variants_max);
        }
    }

    /// Checks a large file of an earlier process on another thread, and notes or removes it. Those
    /// who want it meanwhile wait for the fill.
    async fn check_file(&self, x: &mut Exchange, reply: &CachedReply) {
        let Some(check) = reply.long_check() else { return };
        let zone = &self.store.zone;
        match net::offload(check).await {
            true => self.note_found(reply),
            false => {
                let path = zone.folder().file(&self.digest);
                log_invalid(x, &path, FileProblem::Checksum);
                zone.remove(&self.digest);
            }
        }
    }

    /// Whether a file was purged. Its head is read if its tags count.
    fn is_purged(&self, x: &mut Exchange, reply: &CachedReply) -> bool {
        let CacheStore { zone, tags, .. } = &*self.store;
        let (modified_ns, form) = (reply.modified_ns(), self.cache.terms.form);
        let tags = match zone.has_purged_tags_since(modified_ns)
            && reply.parse(x, form, self.cache.is_to_head(x))
        {
            true => tags.values_of(&x.backends.head, &x.backends.head_text),
            false => Vec::new(),
        };
        zone.is_purged(&PurgeSubject::new(&self.key, &tags), modified_ns)
    }

    /// What follows from a file that is not there or cannot be used.
    fn without_file(
        &self,
        x: &Exchange,
        path: &Path,
        unusable: &NotCached,
        is_scarce: bool,
    ) -> CacheFinding {
        match unusable {
            NotCached::Absent => {
                self.store.zone.lost(&self.digest);
                match is_scarce {
                    true => CacheFinding::SCARCE,
                    false => CacheFinding::NOTHING,
                }
            }
            NotCached::Invalid(problem) => {
                log_invalid(x, path, *problem);
                self.store.zone.lost(&self.digest);
                CacheFinding::NOTHING
            }
            NotCached::Failed(failed) => {
                paths::log_failed(x, Level::Crit, path.as_os_str().as_bytes(), failed);
                CacheFinding::Failed
            }
        }
    }

    /// Why the backend is asked.
    fn reason(&self, x: &Exchange) -> ForwardReason {
        let status = x.states.find::<CacheState>().and_then(|state| state.status);
        match &self.stale {
            _ if status.is_none() => ForwardReason::Method,
            _ if status == Some(CacheStatus::Bypass) => ForwardReason::Bypass,
            Some(stale) if stale.valid_s >= now_s() => ForwardReason::Request,
            Some(_) => ForwardReason::Stale,
            None if self.digest != self.key.digest() => ForwardReason::VaryMiss,
            None => ForwardReason::UriMiss,
        }
    }

    /// Answers with the expired reply, whose head was parsed.
    pub(super) fn answer(
        &mut self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        status: CacheStatus,
    ) -> Flow {
        match self.stale.take() {
            Some(stale) => stale.answer(x, rules, &self.store, status),
            None => Flow::Status(500),
        }
    }

    /// Keeps what the backend is asked about an expired reply.
    fn expect_revalidation(&self, x: &mut Exchange) {
        CacheState::set(x, CacheStatus::Expired);
        if let Some(stale) = self.stale.as_ref().filter(|_| self.cache.revalidates()) {
            let state = x.states.of::<CacheState>();
            state.last_modified = Some(stale.last_modified).filter(|time| *time != -1);
            state.etag.extend_from_slice(&stale.etag);
        }
    }

    /// A range far in the reply is passed on, and its reply is not stored.
    fn check_range(&mut self, x: &Exchange) {
        let Some(conf::Offset(most)) = self.cache.conf.cache_max_range_offset else { return };
        let Some(range) = x.request.field(Known::Range) else { return };
        self.is_cacheable &= most > 0 && begins_before(range, most);
    }
}

/// Whether the first range begins before an offset. A field that is no range does not count.
fn begins_before(range: &[u8], offset: u64) -> bool {
    let is_range = range.len() >= 7 && range[..6].eq_ignore_ascii_case(b"bytes=");
    if !is_range {
        return true;
    }
    let rest = range[6..].trim_ascii_start();
    if rest.first() == Some(&b'-') {
        return false;
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A number that cannot be read is -1 in nginx.
    conf::units::number(&rest[..digits]).is_none_or(|start| start < offset)
}

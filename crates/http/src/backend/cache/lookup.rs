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

use std::future::poll_fn;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;

use cache::{CacheKey, FileProblem, Freshness, KeyDigest, KeyState, PurgeSubject};
use net::{Timer, clock};
use observe::{Level, Text};
use wire::Known;

use super::attempt::{CacheAttempt, now_s, variant_of};
use super::cached::{CachedReply, NotCached, log_invalid};
use super::path::CacheStore;
use super::purge::PurgeWanted;
use super::state::{CacheState, CacheStatus};
use super::{CacheChoice, LocationCache, ReplyRules, update};
use crate::exchange::{Exchange, Flow, TimedPhase};
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
    /// The file is that of another variant than this, which the request is for.
    OtherVariant(KeyDigest),
    Nothing {
        is_scarce: bool,
        is_uncacheable: bool,
    },
    Error(u16),
    /// The file cannot be opened: the backend is asked, and nothing is stored.
    Failed,
}

/// What to do after one look.
enum Look {
    Done(CacheLookup),
    /// Another fetches the key: look again afterwards.
    Wait,
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
            return CacheLookup::Ask(Some(attempt));
        }
        let purge = match PurgeWanted::by(self.conf.cache_purge.as_ref(), x) {
            Ok(purge) => purge,
            Err(flow) => return CacheLookup::Answered(flow),
        };
        if purge.is_none()
            && !self
                .conf
                .cache_methods
                .unwrap_or(super::CacheMethods::USUAL)
                .has(x.request.head.method)
        {
            return CacheLookup::Ask(None);
        }
        let store = match self.store(x) {
            Ok(Some(store)) => store,
            Ok(None) => return CacheLookup::Ask(None),
            Err(flow) => return CacheLookup::Answered(flow),
        };
        let mut text = x.scratch();
        match &self.conf.cache_key {
            Some(template) => template.render(x, &mut text),
            None => default_key(x, &mut text),
        }
        let key = CacheKey::new(&text);
        x.give_scratch(text);
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
            is_cacheable: true,
            freshness: Freshness::default(),
            begun_ns,
        });
        if self.conf.cache_bypass.as_ref().is_some_and(|bypass| bypass.any(x)) {
            CacheState::set(x, CacheStatus::Bypass);
            return CacheLookup::Ask(Some(attempt));
        }
        CacheState::set(x, CacheStatus::Miss);
        let deadline_ms = clock::now_ms().saturating_add(self.conf.cache_lock_timeout.0);
        loop {
            attempt = match self.look(x, rules, attempt, deadline_ms) {
                (Look::Done(lookup), _) => return lookup,
                (Look::Wait, attempt) => attempt.expect("whoever waits goes on"),
            };
            wait(x, &attempt, deadline_ms).await;
        }
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

    /// Looks once. The attempt comes back if it has to wait.
    fn look(
        self: &Arc<Self>,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        mut attempt: Box<CacheAttempt>,
        deadline_ms: u64,
    ) -> (Look, Option<Box<CacheAttempt>>) {
        let answered = |flow| (Look::Done(CacheLookup::Answered(flow)), None);
        let asks = |attempt| (Look::Done(CacheLookup::Ask(attempt)), None);
        let mut is_uncacheable = false;
        attempt.begun_ns = attempt.store.zone.newest_purge_ns();
        match attempt.find(x) {
            CacheFinding::Fresh(reply) => {
                CacheState::set(x, CacheStatus::Hit);
                return answered(reply.answer(x, rules));
            }
            CacheFinding::Error(status) => {
                CacheState::set(x, CacheStatus::Hit);
                return answered(Flow::Status(status));
            }
            CacheFinding::Failed | CacheFinding::OtherVariant(_) => return asks(None),
            CacheFinding::Expired(reply) => {
                let may_update = self.allows_updating(&reply);
                let (now_ms, zone) = (clock::now_ms(), &attempt.store.zone);
                attempt.fill = zone.begin_fill(&attempt.digest, now_ms, u64::MAX);
                let is_first = attempt.fill.is_some();
                attempt.stale = Some(reply);
                if is_first && may_update && self.conf.cache_background_update {
                    return answered(update::begin(x, rules, attempt));
                }
                if !is_first && may_update {
                    return answered(attempt.answer(x, rules, CacheStatus::Updating));
                }
                if is_first || !self.conf.cache_lock || now_ms >= deadline_ms {
                    attempt.expect_revalidation(x);
                    attempt.check_range(x);
                    return asks(Some(attempt));
                }
                return (Look::Wait, Some(attempt));
            }
            CacheFinding::Nothing { is_scarce: true, .. } => attempt.is_cacheable = false,
            CacheFinding::Nothing { is_uncacheable: known, .. } => is_uncacheable = known,
        }
        if attempt.is_cacheable && self.conf.cache_lock && !is_uncacheable {
            let (now_ms, zone) = (clock::now_ms(), &attempt.store.zone);
            attempt.fill = zone.begin_fill(&attempt.digest, now_ms, self.conf.cache_lock_age.0);
            if attempt.fill.is_none() {
                if now_ms < deadline_ms {
                    return (Look::Wait, Some(attempt));
                }
                attempt.is_cacheable = false;
            }
        }
        attempt.check_range(x);
        asks(Some(attempt))
    }
}

/// Waits until the key is no longer fetched, or has been for too long.
async fn wait(x: &mut Exchange, attempt: &CacheAttempt, deadline_ms: u64) {
    x.waits_for(TimedPhase::Queue);
    let (waiter, timer) = (attempt.store.zone.wait(&attempt.digest), Timer::new());
    let mut timed_ms = 0;
    poll_fn(|cx| {
        loop {
            let (now_ms, mut until_ms) = (clock::now_ms(), deadline_ms);
            if now_ms >= deadline_ms || waiter.poll(cx, now_ms, &mut until_ms).is_ready() {
                return Poll::Ready(());
            }
            let until_ms = until_ms.min(deadline_ms);
            if timed_ms != until_ms {
                timer.set(until_ms - now_ms);
                timed_ms = until_ms;
            }
            if timer.poll(cx).is_pending() {
                return Poll::Pending;
            }
            timed_ms = 0;
        }
    })
    .await;
    if clock::now_ms() >= deadline_ms {
        x.log(Level::Info, format_args!("cache lock timeout"));
    }
}

impl CacheFinding {
    const NOTHING: Self = Self::Nothing { is_scarce: false, is_uncacheable: false };
    const SCARCE: Self = Self::Nothing { is_scarce: true, is_uncacheable: false };
}

impl CacheAttempt {
    /// Finds what the cache has.
    fn find(&mut self, x: &mut Exchange) -> CacheFinding {
        self.digest = self.key.digest();
        let found = self.find_file(x);
        let CacheFinding::OtherVariant(variant) = found else { return found };
        self.digest = variant;
        let found = self.find_file(x);
        if !matches!(found, CacheFinding::OtherVariant(_)) {
            return found;
        }
        let path = self.store.zone.folder().file(&self.digest);
        let (path, what) = (path.display(), "has incorrect vary hash");
        x.log(Level::Crit, format_args!("cache file \"{path}\" {what}"));
        CacheFinding::NOTHING
    }

    /// What the cache has in the file of the digest.
    fn find_file(&self, x: &mut Exchange) -> CacheFinding {
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
        let reply = match CachedReply::open(x, path.clone(), &self.key) {
            Ok(reply) => Box::new(reply),
            Err(unusable) => return self.without_file(x, &path, &unusable, is_scarce),
        };
        // Before the variant, so that whatever is used was looked at.
        if zone.may_be_purged(reply.modified_ns()) && self.is_purged(x, &reply) {
            zone.remove(&self.digest);
            return CacheFinding::NOTHING;
        }
        if !reply.vary.is_empty() {
            let variant = variant_of(x, self.key.digest(), &reply.vary);
            if variant != reply.variant {
                return CacheFinding::OtherVariant(variant);
            }
        }
        if state != KeyState::Stored {
            if !reply.is_intact() {
                log_invalid(x, &path, FileProblem::Checksum);
                zone.remove(&self.digest);
                return CacheFinding::NOTHING;
            }
            zone.store(&self.digest, reply.facts(), now_s);
        }
        if !reply.parse(x, self.cache.terms.form, self.cache.is_to_head(x)) {
            reply.log_invalid_head(x);
            zone.remove(&self.digest);
            return CacheFinding::NOTHING;
        }
        match reply.valid_s >= now_s {
            true => CacheFinding::Fresh(reply),
            false => CacheFinding::Expired(reply),
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

    /// Answers with the expired reply, whose head was parsed.
    pub(super) fn answer(
        &mut self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        status: CacheStatus,
    ) -> Flow {
        CacheState::set(x, status);
        match self.stale.take() {
            Some(stale) => stale.answer(x, rules),
            None => Flow::Status(500),
        }
    }

    /// Keeps what the backend is asked about an expired reply.
    fn expect_revalidation(&self, x: &mut Exchange) {
        CacheState::set(x, CacheStatus::Expired);
        if let Some(stale) = self.stale.as_ref().filter(|_| self.cache.conf.cache_revalidate) {
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

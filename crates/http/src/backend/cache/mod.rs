//! Caches of replies: `*_cache` and its companions, for all families of backends.
//!
//! ```text
//! look up ---> fresh: it answers
//!    |  ^----> being fetched: wait
//!    |-------> stale: it answers, while a subrequest updates it
//!    v
//! attempt ---> the backend's reply, stored on its way to the client
//!         ---> the stale reply, if the backend fails or has nothing newer
//! ```
//!
//! Crate `cache` has the files and the index. Here is what a location makes of them: [`lookup`]
//! before the request to the backend, with [`lock`] for those who wait; [`attempt`] with its reply,
//! [`fill`] while that is stored, and [`follow`] for others meanwhile; [`standard`] has what is
//! different by the rules of RFC 9111.
//! A hit is read as a static file is ([`cached`]): small ones are in the worker's memory, others
//! are sent by the kernel. Nothing here knows a family's protocol, except by its
//! [`StoredForm`](super::protocol::stored::StoredForm).

mod attempt;
mod cached;
mod fill;
mod follow;
mod job;
mod lock;
mod lookup;
mod path;
mod purge;
mod purge_change;
mod purge_lines;
mod reply_fields;
mod rewrite;
mod standard;
mod state;
mod tags;
mod update;
mod values;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use conf::{Error, Load, Milliseconds, Number, Offset, Predicates, Result, Template};

use super::Conf as Family;
use super::head::{HeaderFilter, ReplyRewriter};
use super::protocol::stored::StoredForm;
use super::values::{NextUpstream, Store};
use crate::site::LocationBuilder;
use crate::site::policy::OwnSettings;
pub(crate) use attempt::CacheAttempt;
pub(crate) use job::CacheKeeper;
pub(crate) use lookup::CacheLookup;
use path::{CacheStore, DeclaredCaches};
pub(crate) use purge::PurgeReplyForm;
pub use purge_change::CachePurgeChange;
pub(crate) use purge_change::SiteCaches;
use purge_lines::{CachePurge, TagPurge};
pub(super) use reply_fields::add_to_forwarded;
pub(crate) use state::VARIABLES;
use values::{CacheMethods, CacheName, CacheStatusName, ValidTimes};

conf::directives! {
    declare {
        /// Names a directory for cached responses, and the zone of its index. The directory and its
        /// files are those of nginx, so that either server can use what the other has stored.
        ///
        /// `levels=` is the number of characters that the names of subdirectories have; `inactive=`
        /// (10m) is how long a response is kept after its last use; above `max_size=`, or with less
        /// than `min_free=` left on the disk, those of least use are removed. The index has a key
        /// for every 128 bytes of its size. A response whose body is larger than `max_object_size=`
        /// (that of all, `max_size=`) is not stored. Of a key with more than `max_variants=` (1000)
        /// variants by `Vary`, the oldest is removed. `use_temp_path=off` has responses received in
        /// the directory itself. At the start, the directory is read, `loader_files=` at a time;
        /// files are removed `manager_files=` at a time. With `purger=on`, files that were purged
        /// are removed at once, `purger_files=` at a time, and otherwise when they are used or too
        /// old. `tags=` names the fields of responses that have tags to purge by; clients do not
        /// get these fields, except `Cache-Groups`, unless `proxy_pass_header` names them. See
        /// docs/cache.md.
        ///
        /// Syntax: PATH keys_zone=NAME:SIZE [levels=LEVELS] [use_temp_path=on|off]
        /// [inactive=TIME] [max_size=SIZE] [max_object_size=SIZE] [max_variants=NUMBER]
        /// [min_free=SIZE] [loader_files=NUMBER]
        /// [loader_sleep=TIME] [loader_threshold=TIME] [manager_files=NUMBER] [manager_sleep=TIME]
        /// [manager_threshold=TIME] [purger=on|off] [purger_files=NUMBER] [purger_sleep=TIME]
        /// [purger_threshold=TIME] [tags=FIELD,...]
        /// Differs: files that are no cache files are left alone; what a crash left behind is
        /// removed at the start. `tags` is Weir's own, and `purger` is NGINX Plus's.
        ///
        /// ```nginx
        /// proxy_cache_path /var/cache/weir levels=1:2 keys_zone=app:10m max_size=1g;
        /// server {
        ///     location / {
        ///         proxy_pass http://127.0.0.1:3000;
        ///         proxy_cache app;
        ///         proxy_cache_valid 200 10m;
        ///     }
        /// }
        /// ```
        cache_path(2..=usize::MAX) in MAIN => path::declare;
    }

    in MAIN | SERVER | LOCATION;

    /// The zone of the cache for responses.
    ///
    /// Syntax: NAME | off
    ///
    /// ```nginx
    /// proxy_cache_path /var/cache/weir keys_zone=app:10m;
    /// proxy_cache app;
    /// ```
    cache: CacheName = "off",
    /// The key of cached responses. The default of `proxy_cache_key` is scheme, host and URI of the
    /// request to the backend, without the client's `Host`; the other families have none.
    ///
    /// ```nginx
    /// proxy_cache_key $scheme$host$request_uri;
    /// ```
    cache_key: Option<Template>,
    /// How long responses of these statuses are fresh, if their fields do not say it: `200`, `301`
    /// and `302` if none is named, all with `any`.
    ///
    /// Syntax: [STATUS | any ...] TIME
    ///
    /// ```nginx
    /// proxy_cache_valid 10m;
    /// proxy_cache_valid 404 1m;
    /// ```
    cache_valid: Option<ValidTimes>,
    /// The methods whose responses are cached, besides `GET` and `HEAD`.
    ///
    /// Syntax: GET | HEAD | POST ...
    ///
    /// ```nginx
    /// proxy_cache_methods GET HEAD POST;
    /// ```
    cache_methods: Option<CacheMethods>,
    /// The request from which on a response is cached.
    ///
    /// ```nginx
    /// proxy_cache_min_uses 3;
    /// ```
    cache_min_uses: Number = "1",
    /// Does not answer from the cache if one of these strings is neither empty nor `0`. The
    /// response is still stored.
    ///
    /// ```nginx
    /// proxy_cache_bypass $cookie_session $arg_nocache;
    /// ```
    cache_bypass: Option<Predicates>,
    /// Does not store the response if one of these strings is neither empty nor `0`.
    ///
    /// ```nginx
    /// proxy_no_cache $cookie_session;
    /// ```
    no_cache: Option<Predicates>,
    /// Whether only one request at a time fetches a response, and the others wait for it.
    ///
    /// Differs: that is also so for an expired response, and those who wait are woken at once. A
    /// response that may not be stored is remembered for five seconds, in which nobody waits. If
    /// the backend fails, one request after the other tries it; at the third failure in a row, or
    /// if no server could be reached, all that wait are given its status or the expired response,
    /// as `proxy_cache_use_stale` says.
    ///
    /// ```nginx
    /// proxy_cache_lock on;
    /// ```
    cache_lock: bool = "off",
    /// How long a request waits for another one. Then it is sent to the backend as well, and its
    /// response is not stored.
    ///
    /// ```nginx
    /// proxy_cache_lock_timeout 2s;
    /// ```
    cache_lock_timeout: Milliseconds = "5s",
    /// How long a request may take before another one is sent to fetch the same response.
    ///
    /// ```nginx
    /// proxy_cache_lock_age 10s;
    /// ```
    cache_lock_age: Milliseconds = "5s",
    /// Whether requests that wait for a response (`proxy_cache_lock`) are given what has come of it
    /// so far, and the rest as it comes.
    ///
    /// Differs: not in nginx's sources; Weir's own.
    ///
    /// ```nginx
    /// proxy_cache_lock on;
    /// proxy_cache_read_while_writing on;
    /// ```
    cache_read_while_writing: bool = "off",
    /// When an expired response is used: after these failures of the backend, or while it is being
    /// updated. Only `proxy_cache_use_stale` has `http_502` and `http_504`.
    ///
    /// Syntax: error | timeout | invalid_header | updating | http_500 | http_502 | http_503 |
    /// http_504 | http_403 | http_404 | http_429 | off ...
    ///
    /// ```nginx
    /// proxy_cache_use_stale error timeout updating http_502;
    /// ```
    cache_use_stale: NextUpstream = "off",
    /// Whether an expired response that may be used while it is being updated is updated by a
    /// request of the server's own, so that no client waits.
    ///
    /// Differs: the update does not hold the client's connection.
    ///
    /// ```nginx
    /// proxy_cache_use_stale updating;
    /// proxy_cache_background_update on;
    /// ```
    cache_background_update: bool = "off",
    /// Whether the backend is asked if an expired response is still valid, with
    /// `If-Modified-Since` and `If-None-Match`.
    ///
    /// ```nginx
    /// proxy_cache_revalidate on;
    /// ```
    cache_revalidate: bool = "off",
    /// The rules by which responses are stored and used again: nginx's, or those of the standards
    /// for a shared cache (RFC 9111, 9213 and 5861).
    ///
    /// With `rfc9111`, `CDN-Cache-Control` counts before `Cache-Control`, `Age` and `Date` count
    /// and are sent, and `Last-Modified` says for how long a response is likely to stay the same. A
    /// client can demand a newer response (`Cache-Control: no-cache`). Responses to requests with
    /// `Authorization`, and those with `Vary: *`, are not stored unless they say that they may be.
    /// Expired responses are validated, also without `proxy_cache_revalidate`, and a 304 changes
    /// their fields. `must-revalidate` wins over `proxy_cache_use_stale`. A successful `POST`,
    /// `PUT` or `DELETE` removes what is stored for its URI.
    ///
    /// Differs: not in nginx's sources; Weir's own.
    ///
    /// ```nginx
    /// proxy_cache_rules rfc9111;
    /// ```
    cache_rules: StorageRules = "nginx",
    /// Adds the field `Cache-Status` (RFC 9211) to responses, with this name for the cache. It says
    /// whether the response came from the cache, and if not, why.
    ///
    /// Syntax: NAME | off
    /// Differs: not in nginx's sources; Weir's own.
    ///
    /// ```nginx
    /// proxy_cache_status edge;
    /// ```
    cache_status: CacheStatusName = "off",
    /// A range that begins at or after this offset is requested from the backend as it is, and not
    /// cached. Without this line, whole responses are requested and cached.
    ///
    /// Default: unlimited
    ///
    /// ```nginx
    /// proxy_cache_max_range_offset 100m;
    /// ```
    cache_max_range_offset: Option<Offset>,
    /// Lets requests purge cached responses.
    ///
    /// As in NGINX Plus: if one of these strings is neither empty nor `0`, the response with the
    /// request's key is purged, with all its variants. A key that ends in `*` stands for all keys
    /// that begin so. The response is 204, or 404 if there was none with the key.
    ///
    /// As in the module ngx_cache_purge: `on` or a method lets requests of that method (`PURGE`)
    /// purge their key, from the given addresses; with `purge_all`, they purge the whole cache. In
    /// a location of its own, `ZONE KEY` has every request purge that key. The response is a page
    /// (`cache_purge_response_type`), or 412 if there was none with the key.
    ///
    /// Syntax: STRING ...
    /// Syntax: on | off | METHOD [purge_all] [from ADDRESS | CIDR | all ...]
    /// Syntax: ZONE KEY
    /// Default: off
    /// Differs: not in nginx's sources; as in NGINX Plus and in ngx_cache_purge. A key with `*` is
    /// answered as purged, whether any response has it or not.
    ///
    /// ```nginx
    /// proxy_cache_path /var/cache/weir keys_zone=app:10m;
    /// server {
    ///     location / {
    ///         proxy_pass http://127.0.0.1:3000;
    ///         proxy_cache app;
    ///         proxy_cache_key $host$request_uri;
    ///         proxy_cache_purge PURGE from 127.0.0.1 10.0.0.0/8;
    ///     }
    ///     location ~ ^/purge(/.*) {
    ///         allow 127.0.0.1;
    ///         deny all;
    ///         proxy_cache_purge app $host$1$is_args$args;
    ///     }
    /// }
    /// ```
    cache_purge: Option<CachePurge>,
    /// Has every request of a location purge all responses that have one of these tags, in a cache
    /// with `tags=`. Spaces or commas separate the tags. The response is 204, or 400 without tags.
    ///
    /// Syntax: ZONE TAGS
    /// Differs: not in nginx's sources; Weir's own.
    ///
    /// ```nginx
    /// proxy_cache_path /var/cache/weir keys_zone=app:10m tags=Surrogate-Key,Cache-Tag;
    /// server {
    ///     location = /purge-tags {
    ///         allow 127.0.0.1;
    ///         deny all;
    ///         proxy_cache_purge_tags app $http_surrogate_key;
    ///     }
    /// }
    /// ```
    cache_purge_tags + IF_IN_LOCATION: Option<TagPurge>,
}

conf::words! {
    /// The rules by which replies are stored and used.
    pub enum StorageRules {
        Nginx = "nginx",
        /// Those of RFC 9111 and its companions.
        Rfc9111 = "rfc9111",
    }
}

/// Has the requests of a location purge, if it is one for that. All other settings are used by the
/// feature of the family.
pub fn install(conf: &Arc<Conf>, place: &mut LocationBuilder<'_, '_>) -> Result<()> {
    purge::install(conf.cache_purge.as_ref(), conf.cache_purge_tags.as_ref(), place)
}

/// Keeps the caches of the configuration with its site.
pub(crate) fn keep_in_site(load: &mut Load<'_>) {
    let declared = load.own.of::<DeclaredCaches>().0.iter();
    let caches = declared.map(|(name, store)| (name.clone(), store.clone())).collect();
    load.own.of::<OwnSettings>().add(SiteCaches(caches));
}

impl Conf {
    /// The fields with tags of the cache, which are not for clients.
    pub(crate) fn hidden_fields(&self, load: &mut Load<'_>) -> Vec<Box<[u8]>> {
        let declared = &load.own.of::<DeclaredCaches>().0;
        let stores: Vec<_> = match &self.cache {
            CacheName::Off => return Vec::new(),
            CacheName::Named(name) => declared.get(name).into_iter().collect(),
            CacheName::Computed(_) => declared.values().collect(),
        };
        stores.iter().flat_map(|store| store.tags.hidden()).map(Box::from).collect()
    }

    /// Whether `*_cache_key` is set.
    pub(crate) fn has_key(&self) -> bool {
        self.cache_key.is_some()
    }
}

/// What a family's feature adds to the settings.
pub(crate) struct CacheTerms {
    /// How heads are stored.
    pub(crate) form: &'static StoredForm,
    /// `convert_head`: whether a HEAD request is sent as GET.
    pub(crate) converts_head: bool,
}

/// The cache of a location.
pub(crate) struct LocationCache {
    conf: Arc<Conf>,
    family: Arc<Family>,
    store: CacheChoice,
    terms: CacheTerms,
    /// The prefix of the family's directives.
    prefix: &'static str,
}

enum CacheChoice {
    Fixed(Arc<CacheStore>),
    /// Computed from a request, among these.
    Computed(Template, HashMap<Box<[u8]>, Arc<CacheStore>>),
}

impl CacheChoice {
    fn each(&self) -> impl Iterator<Item = &Arc<CacheStore>> {
        let (fixed, among) = match self {
            Self::Fixed(store) => (Some(store), None),
            Self::Computed(_, stores) => (None, Some(stores.values())),
        };
        fixed.into_iter().chain(among.into_iter().flatten())
    }
}

/// What a location does with the head of a reply.
#[derive(Clone, Copy)]
pub(crate) struct ReplyRules<'a> {
    pub(crate) conf: &'a Family,
    pub(crate) filter: &'a HeaderFilter,
    pub(crate) rewriter: &'a dyn ReplyRewriter,
}

impl LocationCache {
    /// The cache of a location; `None`: it has none.
    pub(crate) fn compile(
        conf: &Arc<Conf>,
        family: &Arc<Family>,
        prefix: &'static str,
        terms: CacheTerms,
        place: &mut LocationBuilder<'_, '_>,
    ) -> Result<Option<Arc<Self>>> {
        let declared = &place.load.own.of::<DeclaredCaches>().0;
        let store = match &conf.cache {
            CacheName::Off => return Ok(None),
            CacheName::Computed(template) => {
                CacheChoice::Computed(template.clone(), declared.clone())
            }
            CacheName::Named(name) => match declared.get(name) {
                Some(store) => CacheChoice::Fixed(store.clone()),
                None => {
                    let name = String::from_utf8_lossy(name);
                    let message = format!("\"{prefix}cache\" zone \"{name}\" is unknown");
                    return Err(Error::at(place.at, message));
                }
            },
        };
        if !matches!(family.store, Store::Off) {
            let what = format!("\"{prefix}cache\" is incompatible with \"{prefix}store\"");
            return Err(Error::at(place.at, what));
        }
        place.logger(state::count_end);
        if let Some(purge) = &conf.cache_purge {
            purge::check(purge, place);
        }
        if matches!(conf.cache_purge, Some(CachePurge::When(_) | CachePurge::Method(_))) {
            store.each().for_each(|store| store.is_purgeable.store(true, Ordering::Relaxed));
        }
        let (conf, family) = (conf.clone(), family.clone());
        Ok(Some(Arc::new(Self { conf, family, store, terms, prefix })))
    }
}

//! What caching adds to a request: fields that ask for the whole reply.

use std::sync::Arc;

use conf::{Directive, Load, Result, Value};

use crate::backend::Conf as Family;
use crate::backend::cache::{
    self, CacheAttempt, CacheLookup, CacheTerms, LocationCache, ReplyRules,
};
use crate::backend::protocol::stored;
use crate::backend::request_fields::{Compiled, SetHeader};
use crate::exchange::{Exchange, Flow};
use crate::site::LocationBuilder;

/// Fields of requests whose replies are stored. A line of the configuration replaces its own.
const FIELDS: [&str; 6] = [
    "If-Modified-Since $upstream_cache_last_modified",
    "If-Unmodified-Since \"\"",
    "If-None-Match $upstream_cache_etag",
    "If-Match \"\"",
    "Range \"\"",
    "If-Range \"\"",
];

/// The cache of a location.
pub(crate) struct ProxyCache {
    cache: Arc<LocationCache>,
    /// The fields of requests whose replies are stored.
    pub(super) fields: Compiled,
}

impl ProxyCache {
    pub(super) fn compile(
        caching: &Arc<cache::Conf>,
        family: &Arc<Family>,
        converts_head: bool,
        set: &[SetHeader],
        place: &mut LocationBuilder<'_, '_>,
    ) -> Result<Option<Self>> {
        let terms = CacheTerms { form: &stored::HTTP1, converts_head };
        let cache = LocationCache::compile(caching, family, "proxy_", terms, place)?;
        let Some(cache) = cache else { return Ok(None) };
        let mut set = set.to_vec();
        for field in FIELDS {
            let field = default_field(field, place.load)?;
            if !set.iter().any(|own| own.is_named_like(&field)) {
                set.push(field);
            }
        }
        Ok(Some(Self { cache, fields: Compiled::new(&set) }))
    }

    /// Looks a request up; `Err`: how it goes on without the backend. `default_key` writes the key
    /// if the configuration has none.
    pub(super) async fn look_up(
        &self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        default_key: impl FnOnce(&mut Exchange, &mut Vec<u8>),
    ) -> std::result::Result<Option<Box<CacheAttempt>>, Flow> {
        match self.cache.look_up(x, rules, default_key).await {
            CacheLookup::Answered(flow) => Err(flow),
            CacheLookup::Ask(attempt) => Ok(attempt),
        }
    }
}

fn default_field(text: &str, load: &mut Load<'_>) -> Result<SetHeader> {
    SetHeader::parse(&Directive::sample("proxy_set_header", text), load)
}

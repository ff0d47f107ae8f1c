//! Purges that are asked for at the control socket or by the API: as JSON, and as bytes on their
//! way to every process.

use std::io;
use std::sync::Arc;

use cache::PurgeRule;
use cache::purge::journal::{JournalContents, JournalEnd, write_record};
use wire::json::{self, JsonLimits, JsonValue};

use super::job::unix_ns;
use super::path::CacheStore;
use super::purge::TAGS_MAX;
use crate::site::Site;

const LIMITS: JsonLimits = JsonLimits { bytes_max: 1 << 20, depth_max: 3, values_max: 10_000 };

/// The caches of a configuration, by name.
#[derive(Default)]
pub(crate) struct SiteCaches(pub(super) Vec<(Box<[u8]>, Arc<CacheStore>)>);

/// What is purged in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePurgeChange {
    pub cache: Box<[u8]>,
    pub rules: Vec<PurgeRule>,
}

impl CachePurgeChange {
    /// Reads a request: `{"key":"..."}`, `{"keys":[...]}`, `{"tags":[...]}` or `{"all":true}`.
    pub fn from_json(cache: &[u8], body: &[u8]) -> Result<Self, String> {
        let expected = "expected {\"keys\":[...]}, {\"tags\":[...]} or {\"all\":true}";
        let value =
            json::parse(body, LIMITS).map_err(|error| format!("JSON error: {}", error.problem))?;
        let JsonValue::Object(object) = value else { return Err(expected.into()) };
        let mut rules = Vec::new();
        for member in &object {
            match (&*member.name, &member.value) {
                ("all", JsonValue::Bool(true)) => rules.push(PurgeRule::all()),
                ("key", JsonValue::Text(key)) => rules.push(PurgeRule::of_key(key.as_bytes())),
                (name @ ("keys" | "tags"), JsonValue::List(list)) => {
                    for one in list {
                        let JsonValue::Text(text) = one else { return Err(expected.into()) };
                        rules.push(match name {
                            "keys" => PurgeRule::of_key(text.as_bytes()),
                            _ => PurgeRule::Tag(text.as_bytes().into()),
                        });
                    }
                }
                (name, _) => return Err(format!("\"{name}\": {expected}")),
            }
        }
        match rules.len() {
            0 => Err(expected.into()),
            count if count > TAGS_MAX => {
                Err(format!("{count} keys and tags at once; {TAGS_MAX} at most"))
            }
            _ => Ok(Self { cache: cache.into(), rules }),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = (self.cache.len() as u64).to_le_bytes().to_vec();
        out.extend_from_slice(&self.cache);
        out.extend_from_slice(JournalContents::HEADER);
        self.rules.iter().for_each(|rule| write_record(rule, 0, &mut out));
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None`: something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (cache, rest) = rest.split_at_checked(length)?;
        let contents = JournalContents::parse(rest);
        let rules = contents.rules.into_iter().map(|(rule, _)| rule).collect();
        (contents.end == JournalEnd::Whole).then(|| Self { cache: cache.into(), rules })
    }

    /// Whether a configuration allows it; `Err`: why not, with a status.
    pub fn check(&self, site: &Site) -> Result<(), (u16, &'static str, &'static str)> {
        let Some(store) = site.cache(&self.cache) else {
            return Err((404, "cache not found", "CacheNotFound"));
        };
        let has_tags = self.rules.iter().any(|rule| matches!(rule, PurgeRule::Tag(_)));
        match has_tags && store.tags.is_empty() {
            true => Err((409, "the cache has no \"tags=\"", "CacheWithoutTags")),
            false => Ok(()),
        }
    }

    /// Makes it in a configuration. Nothing happens if that does not have the cache.
    pub fn make(&self, site: &Site) -> io::Result<()> {
        match site.cache(&self.cache) {
            Some(store) => store.zone.purge(self.rules.clone(), unix_ns()).map(|_| ()),
            None => Ok(()),
        }
    }
}

impl Site {
    fn cache(&self, name: &[u8]) -> Option<&CacheStore> {
        let caches = self.own.find::<SiteCaches>()?;
        caches.0.iter().find(|(own, _)| **own == *name).map(|(_, store)| &**store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_keys_tags_or_everything() {
        let read = |body: &str| {
            CachePurgeChange::from_json(b"c", body.as_bytes()).map(|change| change.rules)
        };
        let tag = |name: &[u8]| PurgeRule::Tag(name.into());
        assert_eq!(read(r#"{"key":"a"}"#), Ok(vec![PurgeRule::of_key(b"a")]));
        let both = vec![PurgeRule::of_key(b"a"), PurgeRule::of_key(b"b*")];
        assert_eq!(read(r#"{"keys":["a","b*"]}"#), Ok(both));
        assert_eq!(read(r#"{"tags":["a","b c"]}"#), Ok(vec![tag(b"a"), tag(b"b c")]));
        assert_eq!(read(r#"{"all":true}"#), Ok(vec![PurgeRule::all()]));
        for wrong in ["", "[]", "{}", r#"{"all":false}"#, r#"{"keys":[1]}"#, r#"{"a":"b"}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let many = format!(r#"{{"tags":["a"{}]}}"#, r#","a""#.repeat(TAGS_MAX));
        assert!(read(&many).unwrap_err().starts_with("1001 keys and tags"));
    }

    #[test]
    fn a_change_arrives_as_it_was_sent() {
        let body = br#"{"keys":["a","b*"],"tags":["t"],"all":true}"#;
        let change = CachePurgeChange::from_json(b"zone", body).unwrap();
        let bytes = change.to_bytes();
        assert_eq!(CachePurgeChange::from_bytes(&bytes), Some(change));
        for end in 0..8 + 4 {
            assert_eq!(CachePurgeChange::from_bytes(&bytes[..end]), None, "{end}");
        }
        assert_eq!(CachePurgeChange::from_bytes(&bytes[..bytes.len() - 1]), None);
    }
}

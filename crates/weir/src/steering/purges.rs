//! Requests to purge what a cache has: `POST http/caches/NAME/purge`.
//!
//! Every worker process makes the purge, and writes it to the journal of the cache itself.

use http::CachePurgeChange;
use session::steering::{SteeringReply, SteeringRequest};
use upstream::api::{SpecRefusal, percent_decoded};

use crate::log::alert;
use crate::subsystems::Sites;

/// The cache that a path names; `None`: the path names something else.
pub(super) fn cache_of(path: &[u8]) -> Option<Box<[u8]>> {
    let name = path.strip_prefix(b"http/caches/")?;
    let name = name.strip_suffix(b"/").unwrap_or(name).strip_suffix(b"/purge")?;
    (!name.is_empty() && !name.contains(&b'/')).then(|| percent_decoded(name))
}

/// Decides a request.
pub(super) fn accept(
    request: &SteeringRequest,
    cache: &[u8],
    sites: &Sites,
) -> Result<(CachePurgeChange, SteeringReply), SpecRefusal> {
    if &*request.method != b"POST" {
        return Err(SpecRefusal::new(405, "method disabled", "MethodDisabled"));
    }
    let change = CachePurgeChange::from_json(cache, &request.body)
        .map_err(|text| SpecRefusal::new(400, text, "CachePurgeFormatError"))?;
    change
        .check(sites.http())
        .map_err(|(status, text, code)| SpecRefusal::new(status, text, code))?;
    Ok((change, SteeringReply { status: 204, ..SteeringReply::default() }))
}

/// Makes a purge in a configuration. Nothing happens if that does not have the cache. `Err`: it
/// holds only as long as this process.
pub fn apply_purge(change: &CachePurgeChange, sites: &Sites) -> Result<(), String> {
    change.make(sites.http()).map_err(|error| {
        let (cache, errno) = (String::from_utf8_lossy(&change.cache), observe::Errno(&error));
        let why = format!("the journal of cache \"{cache}\" cannot be written{errno}");
        alert!("{why}");
        why
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_a_cache() {
        for (path, expected) in [
            ("http/caches/a/purge", Some("a")),
            ("http/caches/a%20b/purge/", Some("a b")),
            ("http/caches/a", None),
            ("http/caches//purge", None),
            ("http/caches/a/b/purge", None),
            ("stream/caches/a/purge", None),
        ] {
            let cache = cache_of(path.as_bytes());
            assert_eq!(cache.as_deref(), expected.map(str::as_bytes), "{path}");
        }
    }
}

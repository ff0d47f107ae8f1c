//! `ssl_ocsp_cache`: the statuses of clients' certificates that responders gave, for all workers.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use conf::{Directive, Load, Result, Value, units};
use net::tls::{OcspStatus, OcspVerdict};
use wire::ocsp::OcspCertificateId;
use zones::{TwoProcesses, ZoneState, Zones};

use session::lru::Lru;

/// `ssl_ocsp_cache`: the name and the size of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcspCacheZone(Option<(Box<[u8]>, u64)>);

/// Statuses by certificate.
pub(super) struct OcspCache {
    entries_max: usize,
    entries: Mutex<Lru<CachedStatus>>,
}

/// Which certificate: two hashes of its issuer and its serial number, as in nginx.
pub(super) struct OcspCacheKey([u8; 60]);

#[derive(Clone, Copy)]
struct CachedStatus {
    status: OcspStatus,
    valid_until: i64,
}

/// The smallest cache, as in nginx: eight pages.
const SIZE_MIN: u64 = 8 * 4096;
/// Bytes that a status takes.
const ENTRY_BYTES: u64 = 256;
/// Bytes of a serial number, at most, as in nginx.
const CACHED_SERIAL_MAX: usize = 20;
/// How long a response without an end is used, in seconds, as in nginx.
const ENDLESS_S: i64 = 3600;

impl Value for OcspCacheZone {
    const SYNTAX: &'static str = "off | shared:NAME:SIZE";
    const ARGS: RangeInclusive<usize> = 1..=1;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        if &*word.text == b"off" {
            return Ok(Self(None));
        }
        let invalid = || from.error_at(word, format!("invalid OCSP cache \"{word}\""));
        let rest = word.text.strip_prefix(b"shared:").ok_or_else(invalid)?;
        let colon = rest.iter().position(|byte| *byte == b':').ok_or_else(invalid)?;
        let (name, size) = (&rest[..colon], &rest[colon + 1..]);
        let size = units::size(size).filter(|_| !name.is_empty()).ok_or_else(invalid)?;
        if size < SIZE_MIN {
            return Err(from.error_at(word, format!("OCSP cache \"{word}\" is too small")));
        }
        Zones::of(load).mention::<OcspCache>(name, Some(size), from)?;
        Ok(Self(Some((name.into(), size))))
    }
}

impl ZoneState for OcspCache {
    const DIRECTIVES: &'static [&'static str] = &["ssl_ocsp_cache"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

impl OcspCacheZone {
    /// The cache, which the configuration before may have had.
    pub(super) fn open(&self, load: &mut Load<'_>) -> Result<Option<Arc<OcspCache>>> {
        let Some((name, size)) = &self.0 else { return Ok(None) };
        let new = || Arc::new(OcspCache::new(*size));
        Zones::of(load).open(name, |before| Ok(before.unwrap_or_else(new))).map(Some)
    }
}

impl OcspCache {
    fn new(size: u64) -> Self {
        let entries_max = usize::try_from(size / ENTRY_BYTES).unwrap_or(usize::MAX);
        Self { entries_max, entries: Mutex::default() }
    }

    /// The status of a certificate, if it is known and still valid.
    pub(super) fn status(&self, key: &OcspCacheKey, now_seconds: i64) -> Option<OcspStatus> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.find(&key.0)?;
        let known = *entries.value(entry);
        if known.valid_until > now_seconds {
            return Some(known.status);
        }
        entries.remove(entry);
        None
    }

    /// Keeps a status as long as its response is valid. The oldest one makes room.
    pub(super) fn store(&self, key: OcspCacheKey, verdict: OcspVerdict, now_seconds: i64) {
        let OcspVerdict { status, mut valid_until } = verdict;
        if valid_until < now_seconds {
            return;
        }
        if valid_until == i64::MAX {
            valid_until = now_seconds.saturating_add(ENDLESS_S);
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.entries_max && entries.find(&key.0).is_none() {
            entries.remove_oldest();
        }
        entries.insert(&key.0, CachedStatus { status, valid_until });
    }
}

impl OcspCacheKey {
    /// `None`: the serial number is too long.
    pub(super) fn of(id: &OcspCertificateId) -> Option<Self> {
        let mut key = [0; 60];
        key[..20].copy_from_slice(&id.name_hash);
        key[20..40].copy_from_slice(&id.key_hash);
        let serial = &id.serial[..];
        if serial.len() > CACHED_SERIAL_MAX {
            return None;
        }
        key[40..40 + serial.len()].copy_from_slice(serial);
        Some(Self(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(serial: &[u8]) -> Option<OcspCacheKey> {
        let id =
            OcspCertificateId { name_hash: [1; 20], key_hash: [2; 20], serial: serial.to_vec() };
        OcspCacheKey::of(&id)
    }

    fn known(cache: &OcspCache, serial: &[u8], now: i64) -> Option<OcspStatus> {
        cache.status(&key(serial).expect("a short number"), now)
    }

    fn store(cache: &OcspCache, serial: &[u8], status: OcspStatus, valid_until: i64) {
        let key = key(serial).expect("a short number");
        cache.store(key, OcspVerdict { status, valid_until }, 1000);
    }

    #[test]
    fn a_status_is_known_until_its_response_ends() {
        let cache = OcspCache::new(SIZE_MIN);
        store(&cache, &[1], OcspStatus::Revoked, 2000);
        assert_eq!(known(&cache, &[1], 1999), Some(OcspStatus::Revoked));
        assert_eq!(known(&cache, &[2], 1999), None);
        assert_eq!(known(&cache, &[1], 2000), None);
        assert_eq!(known(&cache, &[1], 1999), None, "it was removed");
        store(&cache, &[1], OcspStatus::Good, 999);
        assert_eq!(known(&cache, &[1], 998), None);
        store(&cache, &[1], OcspStatus::Good, i64::MAX);
        assert_eq!(known(&cache, &[1], 1000 + ENDLESS_S - 1), Some(OcspStatus::Good));
        assert_eq!(known(&cache, &[1], 1000 + ENDLESS_S), None);
    }

    #[test]
    fn the_oldest_status_is_evicted() {
        let cache = OcspCache::new(2 * ENTRY_BYTES);
        for serial in 1..=3 {
            store(&cache, &[serial], OcspStatus::Good, 2000);
        }
        let known = [1, 2, 3].map(|serial| known(&cache, &[serial], 1000).is_some());
        assert_eq!(known, [false, true, true]);
    }

    #[test]
    fn a_serial_number_has_twenty_bytes_at_most() {
        assert!(key(&[1; CACHED_SERIAL_MAX]).is_some());
        assert!(key(&[1; CACHED_SERIAL_MAX + 1]).is_none());
    }
}

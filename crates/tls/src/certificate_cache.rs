//! Certificates and keys that were read for a connection, for all workers and all servers that have
//! the same line.
//!
//! As in nginx, the two are cached apart. An object is used for `valid` without a look at its file;
//! after that it is read again if the file's inode or time has changed. Objects that were not used
//! for `inactive` make room for new ones, and at `max` the one that was not used for longest does.

use std::collections::HashMap;
use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use conf::{Directive, Load, Result, Value, units};
use net::tls::{CertificateChain, PrivateKey};

/// What `*_ssl_certificate_cache` says, with the cache that it made.
#[derive(Clone, Default)]
pub struct CertificateCacheRules(Option<Arc<CertificateCache>>);

pub(super) struct CertificateCache {
    max: usize,
    inactive_ms: u64,
    valid_ms: u64,
    objects: Mutex<HashMap<ObjectKey, CachedTlsFile>>,
}

/// The kind of an object, and the name of its file or its text.
type ObjectKey = (ObjectKind, Box<[u8]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ObjectKind {
    Chain,
    Key,
}

#[derive(Clone)]
pub(super) enum FileObject {
    Chain(CertificateChain),
    Key(PrivateKey),
}

struct CachedTlsFile {
    object: FileObject,
    version: Option<FileVersion>,
    checked_ms: u64,
    used_ms: u64,
}

/// Inode and time of modification.
type FileVersion = (u64, i64, i64);

/// What is in a file.
pub(super) trait CachedObject: Sized {
    const KIND: ObjectKind;
    fn to_object(&self) -> FileObject;
    fn of_object(object: &FileObject) -> Option<Self>;
}

impl CachedObject for CertificateChain {
    const KIND: ObjectKind = ObjectKind::Chain;
    fn to_object(&self) -> FileObject {
        FileObject::Chain(self.clone())
    }
    fn of_object(object: &FileObject) -> Option<Self> {
        match object {
            FileObject::Chain(chain) => Some(chain.clone()),
            FileObject::Key(_) => None,
        }
    }
}

impl CachedObject for PrivateKey {
    const KIND: ObjectKind = ObjectKind::Key;
    fn to_object(&self) -> FileObject {
        FileObject::Key(self.clone())
    }
    fn of_object(object: &FileObject) -> Option<Self> {
        match object {
            FileObject::Key(key) => Some(key.clone()),
            FileObject::Chain(_) => None,
        }
    }
}

impl Value for CertificateCacheRules {
    const SYNTAX: &'static str = "off | max=NUMBER [inactive=TIME] [valid=TIME]";
    const ARGS: RangeInclusive<usize> = 1..=3;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let mut cache = CertificateCache::new(0, 10_000, 60_000);
        let mut is_off = false;
        for word in &from.args {
            let text = &word.text[..];
            let time = |text| units::seconds(text).map(|seconds| seconds.saturating_mul(1000));
            let understood = if let Some(number) = text.strip_prefix(b"max=") {
                let number = units::number(number).and_then(|number| usize::try_from(number).ok());
                cache.max = number.unwrap_or(0);
                cache.max > 0
            } else if let Some(text) = text.strip_prefix(b"inactive=") {
                time(text).map(|ms| cache.inactive_ms = ms).is_some()
            } else if let Some(text) = text.strip_prefix(b"valid=") {
                time(text).map(|ms| cache.valid_ms = ms).is_some()
            } else {
                is_off = text == b"off";
                is_off
            };
            if !understood {
                return Err(from.error_at(word, format!("invalid parameter \"{word}\"")));
            }
        }
        if is_off {
            return Ok(Self(None));
        }
        if cache.max == 0 {
            let name = String::from_utf8_lossy(&from.name.text);
            return Err(from.error(format!("\"{name}\" must have the \"max\" parameter")));
        }
        Ok(Self(Some(Arc::new(cache))))
    }
}

impl CertificateCacheRules {
    /// `None`: nothing is cached.
    pub(super) fn cache(&self) -> Option<&CertificateCache> {
        self.0.as_deref()
    }
}

impl CertificateCache {
    fn new(max: usize, inactive_ms: u64, valid_ms: u64) -> Self {
        Self { max, inactive_ms, valid_ms, objects: Mutex::default() }
    }

    /// The object of this name, which `read` reads if need be; with it comes whether it may be
    /// cached. `path` is its file, if it has one; `is_stale`: what is cached must not be used.
    pub(super) fn get<T: CachedObject, E>(
        &self,
        name: &[u8],
        path: Option<&Path>,
        is_stale: bool,
        now_ms: u64,
        read: impl FnOnce() -> std::result::Result<(T, bool), E>,
    ) -> std::result::Result<T, E> {
        let key = (T::KIND, Box::from(name));
        if let Some(known) = self.find(&key, path, is_stale, now_ms) {
            return Ok(known);
        }
        // Looked at first: a file that changes meanwhile is read again.
        let version = path.and_then(version);
        let (object, may_be_cached) = read()?;
        if may_be_cached {
            let file = CachedTlsFile {
                object: object.to_object(),
                version,
                checked_ms: now_ms,
                used_ms: now_ms,
            };
            self.put(key, file, now_ms);
        }
        Ok(object)
    }

    /// An object that was compared with its file not long ago.
    pub(super) fn find_young<T: CachedObject>(&self, name: &[u8], now_ms: u64) -> Option<T> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let file = objects.get_mut(&(T::KIND, Box::from(name)))?;
        if now_ms.saturating_sub(file.checked_ms) > self.valid_ms {
            return None;
        }
        file.used_ms = now_ms;
        T::of_object(&file.object)
    }

    /// What is cached and still holds. Anything else under this name is removed.
    fn find<T: CachedObject>(
        &self,
        key: &ObjectKey,
        path: Option<&Path>,
        is_stale: bool,
        now_ms: u64,
    ) -> Option<T> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let file = objects.get_mut(key)?;
        let is_young = now_ms.saturating_sub(file.checked_ms) <= self.valid_ms;
        let holds =
            || path.is_none_or(|path| file.version.is_some() && version(path) == file.version);
        if is_stale || !(is_young || holds()) {
            objects.remove(key);
            return None;
        }
        if !is_young {
            file.checked_ms = now_ms;
        }
        file.used_ms = now_ms;
        T::of_object(&file.object)
    }

    fn put(&self, key: ObjectKey, file: CachedTlsFile, now_ms: u64) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.retain(|_, file| now_ms.saturating_sub(file.used_ms) <= self.inactive_ms);
        if objects.len() >= self.max {
            let oldest = objects.iter().min_by_key(|(_, file)| file.used_ms);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                objects.remove(&oldest);
            }
        }
        objects.insert(key, file);
    }
}

fn version(path: &Path) -> Option<FileVersion> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.mtime(), file.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use net::testing::tls::ECDSA_CERTIFICATE;

    use super::*;

    fn read(cache: &CertificateCache, name: &str, now_ms: u64) -> bool {
        let mut was_read = false;
        let chain: std::result::Result<CertificateChain, ()> =
            cache.get(name.as_bytes(), None, false, now_ms, || {
                was_read = true;
                Ok((CertificateChain::read(ECDSA_CERTIFICATE.as_bytes()).unwrap(), true))
            });
        chain.unwrap();
        was_read
    }

    #[test]
    fn the_least_recently_used_object_is_evicted() {
        let cache = CertificateCache::new(2, 10_000, 60_000);
        assert!(read(&cache, "a", 1) && read(&cache, "b", 2));
        assert!(!read(&cache, "a", 3) && read(&cache, "c", 4));
        assert!(!read(&cache, "a", 5) && read(&cache, "b", 6));
        assert!(!read(&cache, "b", 50_000), "unused, but nothing came in its place");
        assert!(read(&cache, "d", 70_000) && read(&cache, "b", 70_001));
    }

    #[test]
    fn a_file_is_compared_after_valid_and_read_if_it_changed() {
        let folder = testing::Folder::new();
        let path = folder.join("certificate");
        let cache = CertificateCache::new(2, 10_000, 1000);
        let read = |now_ms, is_stale| {
            let mut was_read = false;
            let chain: std::result::Result<CertificateChain, ()> =
                cache.get(b"a", Some(&path), is_stale, now_ms, || {
                    was_read = true;
                    Ok((CertificateChain::read(ECDSA_CERTIFICATE.as_bytes()).unwrap(), true))
                });
            chain.unwrap();
            was_read
        };
        fs::write(&path, "1").unwrap();
        assert!(read(0, false));
        assert!(!read(1000, false) && !read(2000, false), "unchanged");
        let other = path.with_extension("new");
        fs::write(&other, "2").unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!read(2500, false), "not looked at");
        assert!(read(3001, false), "another file");
        assert!(read(3002, true), "its pair does not fit");
    }
}

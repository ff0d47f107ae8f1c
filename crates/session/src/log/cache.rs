//! `open_log_file_cache`: keeps log files whose names have variables open, per worker and
//! directive.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use conf::{Directive, Load, Result, Value, Word, bytes_path, units};

use crate::lru::Lru;

/// The parameters of the cache; `None` if it is off.
#[derive(Clone)]
pub struct LogFileCache(Option<Arc<LogCacheRules>>);

impl LogFileCache {
    /// Every line opens its file.
    pub const OFF: Self = Self(None);
}

#[derive(Clone, Copy)]
struct LogCacheRules {
    max: usize,
    inactive_ms: u64,
    valid_ms: u64,
    min_uses: u64,
}

impl Value for LogFileCache {
    const ARGS: RangeInclusive<usize> = 1..=4;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let mut rules =
            LogCacheRules { max: 0, inactive_ms: 10_000, valid_ms: 60_000, min_uses: 1 };
        let mut off = false;
        for word in &from.args {
            if &*word.text == b"off" {
                off = true;
                continue;
            }
            rules.read(word).ok_or_else(|| {
                let message = format!("invalid \"open_log_file_cache\" parameter \"{word}\"");
                from.error_at(word, message)
            })?;
        }
        if off {
            return Ok(Self(None));
        }
        if rules.max == 0 {
            return Err(from.error("\"open_log_file_cache\" must have \"max\" parameter"));
        }
        Ok(Self(Some(Arc::new(rules))))
    }
}

impl LogCacheRules {
    fn read(&mut self, word: &Word) -> Option<()> {
        let text = &word.text;
        if let Some(value) = text.strip_prefix(b"max=") {
            self.max = units::number(value)? as usize;
        } else if let Some(value) = text.strip_prefix(b"inactive=") {
            self.inactive_ms = units::seconds(value)? * 1000;
        } else if let Some(value) = text.strip_prefix(b"min_uses=") {
            self.min_uses = units::number(value)?;
        } else {
            self.valid_ms = units::seconds(text.strip_prefix(b"valid=")?)? * 1000;
        }
        Some(())
    }
}

thread_local! {
    static CACHES: RefCell<Vec<WorkerLogCache>> = const { RefCell::new(Vec::new()) };
}

/// The files that one directive keeps open on this worker.
struct WorkerLogCache {
    /// The directive's parameters; dropped with the last configuration that has the directive.
    of: Weak<LogCacheRules>,
    rules: LogCacheRules,
    files: Lru<CachedFile>,
}

struct CachedFile {
    /// `None` until the file was used often enough.
    file: Option<Rc<File>>,
    opened_ms: u64,
    used_ms: u64,
    uses: u64,
}

impl LogFileCache {
    /// Opens the file for appending, or takes it from the cache.
    pub(super) fn open(&self, path: &[u8]) -> io::Result<Rc<File>> {
        let Some(rules) = &self.0 else { return open(path) };
        CACHES.with_borrow_mut(|caches| {
            let at = caches.iter().position(|cache| cache.of.as_ptr() == Arc::as_ptr(rules));
            let at = at.unwrap_or_else(|| {
                let (of, rules) = (Arc::downgrade(rules), **rules);
                caches.push(WorkerLogCache { of, rules, files: Lru::new() });
                caches.len() - 1
            });
            caches[at].open(path, net::clock::now_ms())
        })
    }
}

/// Closes the files of directives whose configurations are gone.
pub fn forget_old() {
    CACHES.with_borrow_mut(|caches| caches.retain(|cache| cache.of.strong_count() > 0));
}

fn open(path: &[u8]) -> io::Result<Rc<File>> {
    observe::append_to(bytes_path(path)).map(Rc::new)
}

impl WorkerLogCache {
    fn open(&mut self, path: &[u8], now_ms: u64) -> io::Result<Rc<File>> {
        let rules = &self.rules;
        let Some(entry) = self.files.get(path) else {
            let file = open(path)?;
            self.insert(path, &file, now_ms);
            return Ok(file);
        };
        let inactive = now_ms - entry.used_ms > rules.inactive_ms;
        entry.uses = if inactive { 1 } else { entry.uses + 1 };
        entry.used_ms = now_ms;
        if let Some(file) = &entry.file
            && now_ms - entry.opened_ms < rules.valid_ms
        {
            return Ok(file.clone());
        }
        entry.file = None;
        let file = open(path)?;
        if entry.uses >= rules.min_uses {
            (entry.file, entry.opened_ms) = (Some(file.clone()), now_ms);
        }
        Ok(file)
    }

    fn insert(&mut self, path: &[u8], file: &Rc<File>, now_ms: u64) {
        let LogCacheRules { max, inactive_ms, min_uses, .. } = self.rules;
        while let Some(oldest) = self.files.oldest() {
            let unused_ms = now_ms - self.files.value(oldest).used_ms;
            if self.files.len() < max && unused_ms <= inactive_ms {
                break;
            }
            self.files.remove(oldest);
        }
        let file = (min_uses <= 1).then(|| file.clone());
        self.files.insert(path, CachedFile { file, opened_ms: now_ms, used_ms: now_ms, uses: 1 });
    }
}

#[cfg(test)]
mod tests {
    use testing::Folder;

    use super::*;

    fn cache(max: usize, min_uses: u64) -> WorkerLogCache {
        let rules = LogCacheRules { max, inactive_ms: 1000, valid_ms: 500, min_uses };
        WorkerLogCache { of: Weak::new(), rules, files: Lru::new() }
    }

    #[test]
    fn a_file_stays_open_after_enough_uses() {
        let folder = Folder::new();
        let (mut cache, a) = (cache(3, 2), folder.name("a").into_bytes());
        let open = |cache: &mut WorkerLogCache, at| cache.open(&a, at).unwrap();
        let first = open(&mut cache, 0);
        let second = open(&mut cache, 10);
        assert!(!Rc::ptr_eq(&first, &second));
        assert!(Rc::ptr_eq(&second, &open(&mut cache, 20)));
        assert!(!Rc::ptr_eq(&second, &open(&mut cache, 600)), "no longer valid");
    }

    #[test]
    fn the_oldest_file_is_closed_for_a_new_one() {
        let mut cache = cache(2, 1);
        let folder = Folder::new();
        let names = ["a", "b", "c"].map(|name| folder.name(name).into_bytes());
        let first = cache.open(&names[0], 0).unwrap();
        for name in &names {
            cache.open(name, 1).unwrap();
        }
        assert_eq!(cache.files.len(), 2);
        assert!(!Rc::ptr_eq(&first, &cache.open(&names[0], 2).unwrap()));
    }
}

//! Files that are only in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Call, ENOENT, FileError, Files, glob};

/// Files held in memory: the configuration built into the program, and tests.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(BTreeMap<Box<[u8]>, Arc<[u8]>>);

impl MemoryFiles {
    /// Adds a file, or replaces its contents.
    pub fn with(mut self, path: impl AsRef<[u8]>, text: impl AsRef<[u8]>) -> Self {
        self.0.insert(path.as_ref().into(), text.as_ref().into());
        self
    }
}

impl Files for MemoryFiles {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        self.0.get(path).cloned().ok_or(FileError { call: Call::Open, errno: ENOENT })
    }

    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        let fits = |path: &[u8]| {
            let mut names = path.split(|&byte| byte == b'/');
            let mut parts = pattern.split(|&byte| byte == b'/');
            // The empty part before a leading slash matches only another one: `*` does not match
            // it.
            let fits = |part: &[u8], name: &[u8]| {
                part.is_empty() == name.is_empty() && glob::matches(part, name)
            };
            parts.all(|part| names.next().is_some_and(|name| fits(part, name)))
                && names.next().is_none()
        };
        Ok(self.0.keys().filter(|path| fits(path)).cloned().collect())
    }
}

//! A cache directory: where the file of a key is.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::key::KeyDigest;

/// The most levels of subdirectories.
pub const LEVELS_MAX: usize = 3;
/// The digits of the number that ends the name of a temporary file.
const TEMP_DIGITS: usize = 10;

/// `levels=1:2`: how many characters of the end of a name its directories have; 0: no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectoryLevels([u8; LEVELS_MAX]);

/// A cache directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheFolder {
    pub path: Box<Path>,
    pub levels: DirectoryLevels,
}

/// What a file in a cache directory is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The reply of a key.
    Stored(KeyDigest),
    /// A reply that is being received, or that a crash left behind.
    Temporary,
    Foreign,
}

impl DirectoryLevels {
    /// The levels in a text such as `1:2`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut levels = Self::default();
        let mut parts = text.split(|byte| *byte == b':');
        for level in &mut levels.0 {
            match parts.next() {
                Some(b"1") => *level = 1,
                Some(b"2") => *level = 2,
                None if levels_begun(text) => break,
                _ => return None,
            }
        }
        parts.next().is_none().then_some(levels)
    }
}

fn levels_begun(text: &[u8]) -> bool {
    !text.is_empty() && !text.ends_with(b":")
}

impl CacheFolder {
    /// The path of a key's file.
    pub fn file(&self, digest: &KeyDigest) -> PathBuf {
        let name = digest.hexadecimal();
        let mut path = self.path.to_path_buf();
        let mut end = name.len();
        for level in self.levels.0.iter().take_while(|level| **level > 0) {
            let start = end - usize::from(*level);
            path.push(OsStr::from_bytes(&name[start..end]));
            end = start;
        }
        path.push(OsStr::from_bytes(&name));
        path
    }

    /// What the file at a path is. A stored reply that is not where its name belongs is foreign,
    /// for it would never be found.
    pub fn kind_of(&self, path: &Path) -> FileKind {
        let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
        if let Some(digest) = KeyDigest::from_hexadecimal(name) {
            return match self.file(&digest) == path {
                true => FileKind::Stored(digest),
                false => FileKind::Foreign,
            };
        }
        let dot = name.len().checked_sub(TEMP_DIGITS + 1);
        match dot.map(|dot| name.split_at(dot)) {
            Some((_, [b'.', digits @ ..])) if digits.iter().all(u8::is_ascii_digit) => {
                FileKind::Temporary
            }
            _ => FileKind::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(levels: &[u8]) -> CacheFolder {
        let levels = DirectoryLevels::parse(levels).unwrap();
        CacheFolder { path: Path::new("/c").into(), levels }
    }

    #[test]
    fn a_file_is_where_nginx_has_it() {
        let digest = KeyDigest::from_hexadecimal(b"b7f54b2df7773722d382f4809d65029c").unwrap();
        for (levels, path) in [
            (&b"1:2"[..], "/c/c/29/b7f54b2df7773722d382f4809d65029c"),
            (b"2", "/c/9c/b7f54b2df7773722d382f4809d65029c"),
            (b"1:2:2", "/c/c/29/50/b7f54b2df7773722d382f4809d65029c"),
        ] {
            assert_eq!(folder(levels).file(&digest), Path::new(path));
            assert_eq!(folder(levels).kind_of(Path::new(path)), FileKind::Stored(digest));
        }
        let flat = CacheFolder { path: Path::new("/c").into(), levels: Default::default() };
        assert_eq!(flat.file(&digest), Path::new("/c/b7f54b2df7773722d382f4809d65029c"));
    }

    #[test]
    fn invalid_levels_are_refused() {
        for text in ["", ":", "1:", ":1", "0", "3", "1:2:1:2", "1:x", "12", "1 "] {
            assert_eq!(DirectoryLevels::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn other_files_are_temporary_or_foreign() {
        let temporary = "/c/c/29/b7f54b2df7773722d382f4809d65029c.0000000001";
        for (path, kind) in [
            (temporary, FileKind::Temporary),
            ("/c/c/28/b7f54b2df7773722d382f4809d65029c", FileKind::Foreign),
            ("/c/b7f54b2df7773722d382f4809d65029c.000000001", FileKind::Foreign),
            ("/c/index", FileKind::Foreign),
            ("/", FileKind::Foreign),
        ] {
            assert_eq!(folder(b"1:2").kind_of(Path::new(path)), kind, "{path}");
        }
    }
}

//! MIME types by the extension of a file's name.
//!
//! A sorted table that is searched without copying the extension, whatever its case.

use std::cmp::Ordering;
use std::sync::Arc;

/// MIME types by extension.
#[derive(Clone, Default)]
pub struct Types {
    /// Sorted by extension.
    pub(crate) sorted: Arc<Vec<TypeEntry>>,
}

/// An extension in lower case, and its type.
pub(crate) type TypeEntry = (Box<[u8]>, Arc<[u8]>);

impl Types {
    /// The type for a path, by the text after the last dot of its last component. A name whose only
    /// dot is its first character has no extension.
    pub fn of(&self, path: &[u8]) -> Option<&Arc<[u8]>> {
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |at| at + 1)..];
        let extension = &name[memchr::memrchr(b'.', name).filter(|at| *at > 0)? + 1..];
        let at =
            self.sorted.binary_search_by(|(known, _)| extension_order(known, extension)).ok()?;
        Some(&self.sorted[at].1)
    }
}

/// Compares an extension of the table with one of any case.
pub(crate) fn extension_order(known: &[u8], extension: &[u8]) -> Ordering {
    known.iter().copied().cmp(extension.iter().map(u8::to_ascii_lowercase))
}

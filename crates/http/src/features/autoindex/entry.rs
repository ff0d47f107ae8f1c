//! The entries of a listed directory.

use net::file::Stat;

pub(super) struct ListedEntry {
    pub(super) name: Box<[u8]>,
    pub(super) stat: Stat,
}

impl ListedEntry {
    /// The name of its kind in JSON and XML.
    pub(super) fn kind(&self) -> &'static [u8] {
        match &self.stat {
            stat if stat.is_directory() => b"directory",
            stat if stat.is_regular() => b"file",
            _ => b"other",
        }
    }
}

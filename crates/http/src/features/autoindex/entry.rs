//! What is in a directory, as it is listed.

use net::file::Stat;

/// Something in the directory.
pub(super) struct ListedEntry {
    pub(super) name: Box<[u8]>,
    pub(super) stat: Stat,
}

impl ListedEntry {
    /// What it is called in the machines' forms.
    pub(super) fn kind(&self) -> &'static [u8] {
        match &self.stat {
            stat if stat.is_directory() => b"directory",
            stat if stat.is_regular() => b"file",
            _ => b"other",
        }
    }
}

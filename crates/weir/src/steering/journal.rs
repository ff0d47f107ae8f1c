//! Appends changes of a table to the journal of its state file.
//!
//! Only this process knows what it has written, so its first change writes the file whole, and so
//! does a change after which the file or the journal is not as it was left: somebody else has
//! written it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use session::keyval::{StateMark, journal_path};

use super::whole_file::{sync_folder, write_whole};

/// The length of state files from which on changes are appended; shorter ones are written whole.
const APPENDED_FROM: u64 = if cfg!(test) { 64 } else { 64 * 1024 };

/// A state file of a table, as this process has left it.
#[derive(Clone, Debug)]
pub(super) struct WrittenTable {
    mark: StateMark,
    file: FileIdentity,
    /// The length of the journal; 0: there is none.
    journal_bytes: u64,
}

/// What changes when a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileIdentity {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// Changes to be appended.
pub(super) struct JournalWrite {
    pub(super) written: WrittenTable,
    pub(super) line: Vec<u8>,
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Self { inode: metadata.ino(), bytes: metadata.len(), modified }
    }
}

impl WrittenTable {
    /// Replaces the state file; its journal is not needed any more.
    pub(super) fn write(path: &Path, text: &[u8]) -> io::Result<Self> {
        write_whole(path, text)?;
        // One that stays belongs to another text, and is ignored.
        let _ = fs::remove_file(journal_path(path));
        let file = FileIdentity::of(&fs::metadata(path)?);
        Ok(Self { mark: StateMark::of(text), file, journal_bytes: 0 })
    }

    /// Whether a line that long may be appended: together, the lines of a journal are no longer
    /// than the file, so that on average a change costs no more than three times its own length.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let file_bytes = self.mark.bytes;
        file_bytes >= APPENDED_FROM && self.journal_bytes + bytes as u64 <= file_bytes
    }
}

impl JournalWrite {
    /// Appends the changes. `None`: the file has to be written whole.
    pub(super) fn run(self, path: &Path) -> Option<io::Result<WrittenTable>> {
        let Self { written, line } = self;
        let metadata = fs::metadata(path).ok()?;
        if FileIdentity::of(&metadata) != written.file {
            return None;
        }
        let journal = journal_path(path);
        let is_new = written.journal_bytes == 0;
        let mut file = if is_new {
            let mut options = OpenOptions::new();
            // The mode is that of the state file, whose content is as secret.
            let mode = metadata.mode() & 0o777;
            options.write(true).create(true).truncate(true).mode(mode).open(&journal).ok()?
        } else {
            OpenOptions::new().append(true).open(&journal).ok()?
        };
        if !is_new && file.metadata().ok()?.len() != written.journal_bytes {
            return None;
        }
        let head = if is_new { written.mark.journal_head() } else { Vec::new() };
        let text = [head, line].concat();
        Some(append(&mut file, &journal, &text, &written))
    }
}

/// Appends to the journal. After an error it is as it was, as far as that is possible.
fn append(
    file: &mut File,
    journal: &Path,
    text: &[u8],
    before: &WrittenTable,
) -> io::Result<WrittenTable> {
    let is_new = before.journal_bytes == 0;
    let stored = file.write_all(text).and_then(|()| file.sync_data()).and_then(|()| match is_new {
        true => sync_folder(journal),
        false => Ok(()),
    });
    if let Err(error) = stored {
        // The next change writes the whole file, which then belongs to no journal.
        let _ = file.set_len(before.journal_bytes);
        return Err(error);
    }
    let journal_bytes = before.journal_bytes + text.len() as u64;
    Ok(WrittenTable { journal_bytes, ..before.clone() })
}

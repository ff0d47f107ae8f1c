//! The journal of a zone's purges, a file in its directory: what was purged stays purged when the
//! process starts again.
//!
//! ```text
//! "weir purges 1\n", then records:
//!   CRC-32C of the rest 4, moment 8, kind 1, length of the text 2, text (little-endian)
//! ```
//!
//! Processes that use a directory at the same time append to one file, under its lock; one that
//! removes old records writes another file and renames it. A record that a crash has cut short was
//! never acknowledged. A record that is damaged stands for everything.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::rules::PurgeRule;
use crate::checksum::Checksum;
use crate::file_time::modified_ns;
use crate::key::KeyDigest;

/// The name of the file. nginx's loader removes it, as it does all foreign files.
pub(super) const FILE_NAME: &str = "weir-purges";

/// The bytes of a record before its text.
const FIXED: usize = 15;
/// Where the moment begins, which is the first that the checksum covers.
const MOMENT_AT: usize = 4;

const KEY: u8 = 0;
const PREFIX: u8 = 1;
const TAG: u8 = 2;

/// The largest file that is read. The rules of a zone take less.
const FILE_BYTES_MAX: u64 = 128 << 20;
/// How often another process may replace the file while it is being opened.
const OPEN_TRIES_MAX: usize = 16;

/// The contents of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalContents {
    pub rules: Vec<(PurgeRule, u64)>,
    pub end: JournalEnd,
}

/// How a journal ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalEnd {
    #[default]
    Whole,
    /// The last record was cut short.
    Torn,
    /// Something else is there than was written: records may be lost.
    Damaged,
}

impl JournalContents {
    /// The first bytes of a journal.
    pub const HEADER: &[u8] = b"weir purges 1\n";

    pub fn parse(bytes: &[u8]) -> Self {
        let mut contents = Self::default();
        let Some(mut rest) = bytes.strip_prefix(Self::HEADER) else {
            contents.end = match Self::HEADER.starts_with(bytes) {
                true if bytes.is_empty() => JournalEnd::Whole,
                true => JournalEnd::Torn,
                false => JournalEnd::Damaged,
            };
            return contents;
        };
        while !rest.is_empty() {
            let length = rest.get(FIXED - 2..FIXED).map(|length| [length[0], length[1]]);
            let length = length.map(|length| FIXED + usize::from(u16::from_le_bytes(length)));
            let record = length.and_then(|length| rest.split_at_checked(length));
            let Some((record, after)) = record else {
                contents.end = JournalEnd::Torn;
                return contents;
            };
            let Some(rule) = read_record(record) else {
                contents.end = JournalEnd::Damaged;
                return contents;
            };
            contents.rules.push(rule);
            rest = after;
        }
        contents
    }
}

fn read_record(record: &[u8]) -> Option<(PurgeRule, u64)> {
    let (checksum, covered) = record.split_first_chunk()?;
    if u32::from_le_bytes(*checksum) != checksum_of(covered) {
        return None;
    }
    let (moment, rest) = covered.split_first_chunk()?;
    let (kind, text) = (*rest.first()?, &record[FIXED..]);
    let rule = match kind {
        KEY => PurgeRule::Key(KeyDigest(text.try_into().ok()?)),
        PREFIX => PurgeRule::Prefix(text.into()),
        TAG => PurgeRule::Tag(text.into()),
        _ => return None,
    };
    Some((rule, u64::from_le_bytes(*moment)))
}

/// Appends a record. Nothing has a text that is too long for one.
pub fn write_record(rule: &PurgeRule, at_ns: u64, out: &mut Vec<u8>) {
    let (kind, text): (_, &[u8]) = match rule {
        PurgeRule::Key(digest) => (KEY, &digest.0),
        PurgeRule::Prefix(prefix) => (PREFIX, prefix),
        PurgeRule::Tag(tag) => (TAG, tag),
    };
    let Ok(length) = u16::try_from(text.len()) else { return };
    let start = out.len();
    out.extend_from_slice(&[0; MOMENT_AT]);
    out.extend_from_slice(&at_ns.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text);
    let checksum = checksum_of(&out[start + MOMENT_AT..]);
    out[start..start + MOMENT_AT].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum_of(bytes: &[u8]) -> u32 {
    let mut checksum = Checksum::default();
    checksum.add(bytes);
    checksum.value()
}

/// The file, and which of its contents this process has read or written.
#[derive(Debug)]
pub(super) struct PurgeJournal {
    path: PathBuf,
    /// The inode and the length up to which this process knows the file.
    known: (u64, u64),
    /// The records in the file.
    records: usize,
    was_read: bool,
}

/// What became of records that were to be appended.
pub(super) struct Appended {
    /// The file, which is to be synchronised with the disk.
    pub(super) file: File,
    /// Whether it began with them, so that the directory is to be synchronised as well.
    pub(super) is_new: bool,
    /// Whether another process has written to it as well.
    pub(super) has_others: bool,
}

impl PurgeJournal {
    pub(super) fn new(folder: &Path) -> Self {
        Self { path: folder.join(FILE_NAME), known: (0, 0), records: 0, was_read: false }
    }

    /// Whether this process has tried to read it.
    pub(super) fn was_read(&self) -> bool {
        self.was_read
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn records(&self) -> usize {
        self.records
    }

    /// Whether the file is another than this process knows.
    pub(super) fn has_changed(&self) -> bool {
        let found = fs::metadata(&self.path).map_or((0, 0), |found| (found.ino(), found.len()));
        found != self.known
    }

    /// Reads the file; also when it was last written, in nanoseconds since 1970. Without a file
    /// there are no rules.
    pub(super) fn read(&mut self) -> io::Result<(JournalContents, u64)> {
        self.was_read = true;
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (self.known, self.records) = ((0, 0), 0);
                return Ok((JournalContents::default(), 0));
            }
            Err(error) => return Err(error),
        };
        file.lock_shared()?;
        self.read_locked(&file)
    }

    fn read_locked(&mut self, file: &File) -> io::Result<(JournalContents, u64)> {
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        let mut contents = JournalContents::parse(&bytes);
        if bytes.len() as u64 > FILE_BYTES_MAX {
            contents.end = JournalEnd::Damaged;
        }
        (self.known, self.records) = ((metadata.ino(), bytes.len() as u64), contents.rules.len());
        Ok((contents, modified_ns(&metadata)))
    }

    /// Appends records. `all` has those of a file that begins anew, the new ones included.
    pub(super) fn append(
        &mut self,
        records: &[u8],
        count: usize,
        all: impl FnOnce() -> (Vec<u8>, usize),
    ) -> io::Result<Appended> {
        let mut file = self.open_locked()?;
        let metadata = file.metadata()?;
        let (inode, length) = (metadata.ino(), metadata.len());
        let has_others = length > 0 && self.known != (inode, length);
        let (bytes, count) = match length {
            0 => {
                let (records, count) = all();
                self.records = 0;
                ([JournalContents::HEADER, &records].concat(), count)
            }
            _ => (records.to_vec(), count),
        };
        if let Err(error) = file.write_all(&bytes) {
            // A part of a record would hide those that follow.
            let _ = file.set_len(length);
            return Err(error);
        }
        self.records += count;
        self.known = (inode, length + bytes.len() as u64);
        file.unlock()?;
        Ok(Appended { file, is_new: length == 0, has_others })
    }

    /// Replaces the file by one with these records, after `take` was given those that are there.
    pub(super) fn rewrite(
        &mut self,
        take: impl FnOnce(JournalContents) -> (Vec<u8>, usize),
    ) -> io::Result<()> {
        let file = self.open_locked()?;
        let (records, count) = take(self.read_locked(&file)?.0);
        if count == 0 {
            fs::remove_file(&self.path)?;
            (self.known, self.records) = ((0, 0), 0);
            return Ok(());
        }
        let next = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut written = options.open(&next)?;
        written.write_all(JournalContents::HEADER)?;
        written.write_all(&records)?;
        written.sync_data()?;
        let metadata = written.metadata()?;
        fs::rename(&next, &self.path)?;
        self.sync_directory()?;
        (self.known, self.records) = ((metadata.ino(), metadata.len()), count);
        Ok(())
    }

    /// Has the name of the file on disk.
    pub(super) fn sync_directory(&self) -> io::Result<()> {
        File::open(self.path.parent().unwrap_or(&self.path))?.sync_all()
    }

    /// Opens the file, with its lock, for appending.
    fn open_locked(&self) -> io::Result<File> {
        for _ in 0..OPEN_TRIES_MAX {
            let mut options = OpenOptions::new();
            let file = options.read(true).append(true).create(true).mode(0o600).open(&self.path)?;
            file.lock()?;
            // Another process may have replaced it meanwhile.
            let is_there =
                |there: fs::Metadata| there.ino() == file.metadata().map_or(0, |m| m.ino());
            if fs::metadata(&self.path).is_ok_and(is_there) {
                return Ok(file);
            }
        }
        Err(io::Error::other("the file is replaced all the time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Vec<(PurgeRule, u64)> {
        vec![
            (PurgeRule::of_key(b"http://app/a"), 5),
            (PurgeRule::of_key(b"http://app/*"), 6),
            (PurgeRule::Tag((*b"t\n").into()), 7),
            (PurgeRule::all(), u64::MAX),
        ]
    }

    fn bytes() -> Vec<u8> {
        let mut bytes = JournalContents::HEADER.to_vec();
        rules().iter().for_each(|(rule, at_ns)| write_record(rule, *at_ns, &mut bytes));
        bytes
    }

    #[test]
    fn a_journal_is_read_as_it_was_written() {
        let whole = JournalContents { rules: rules(), end: JournalEnd::Whole };
        assert_eq!(JournalContents::parse(&bytes()), whole);
        assert_eq!(JournalContents::parse(b""), JournalContents::default());
        let too_long = PurgeRule::Tag(vec![0; 65536].into());
        let mut nothing = Vec::new();
        write_record(&too_long, 1, &mut nothing);
        assert!(nothing.is_empty());
    }

    #[test]
    fn a_journal_cut_anywhere_has_the_records_before() {
        let bytes = bytes();
        let mut counts = Vec::new();
        for length in 1..bytes.len() {
            let contents = JournalContents::parse(&bytes[..length]);
            assert!(rules().starts_with(&contents.rules));
            if contents.end == JournalEnd::Whole {
                counts.push(contents.rules.len());
            }
        }
        assert_eq!(counts, [0, 1, 2, 3]);
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let whole = bytes();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert_ne!(JournalContents::parse(&bytes).end, JournalEnd::Whole, "{at}");
        }
    }

    #[test]
    fn two_processes_append_to_one_file() {
        let folder = testing::Folder::new();
        let mut journals = [PurgeJournal::new(&folder), PurgeJournal::new(&folder)];
        let record = |text: &[u8]| {
            let mut record = Vec::new();
            write_record(&PurgeRule::of_key(text), 1, &mut record);
            (record, 1)
        };
        let append = |journals: &mut [PurgeJournal; 2], number: usize, text: &[u8]| {
            let (records, count) = record(text);
            journals[number].append(&records, count, || record(text)).unwrap().has_others
        };
        assert!(!append(&mut journals, 0, b"a"));
        assert!(journals[1].has_changed() && !journals[0].has_changed());
        assert!(append(&mut journals, 1, b"b") && append(&mut journals, 0, b"c"));
        assert_eq!(journals[1].read().unwrap().0.rules.len(), 3);
        journals[0].rewrite(|contents| (record(b"d").0, contents.rules.len() / 3)).unwrap();
        assert!(append(&mut journals, 1, b"e"));
        let texts = journals[0].read().unwrap().0.rules;
        assert_eq!(texts, [b"d", b"e"].map(|text| (PurgeRule::of_key(text), 1)));
        journals[0].rewrite(|_| (Vec::new(), 0)).unwrap();
        assert!(!folder.join(FILE_NAME).exists());
        assert!(!append(&mut journals, 1, b"f"));
        assert_eq!(journals[1].records(), 1);
    }
}

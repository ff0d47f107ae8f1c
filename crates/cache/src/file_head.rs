//! The beginning of a cache file: nginx's version 5, in the byte order of the machine.
//!
//! ```text
//!   0 version 8      8 valid until 8      16 updating 8       24 error 8
//!  32 last modified 8      40 date 8      48 CRC-32 of the key 4     52 valid ms 2
//!  54 head start 2   56 body start 2      58 etag: length 1, text 128
//! 187 vary: length 1, text 128   316 variant 16   332 checksum 4 (padding in nginx: 0)
//! 336 "\nKEY: ", the key, "\n"     head start: the head of the reply     body start: its body
//! ```
//!
//! The checksum covers everything from the key on, so that a new validity can be written in place.

use crate::key::{CacheKey, KeyDigest};

/// The length of the fixed part.
pub const FIXED_BYTES: usize = 336;
/// The longest `ETag` that is stored for revalidation, and the longest `Vary`.
pub const TEXT_BYTES_MAX: usize = 128;
/// Where the checksum is.
pub const CHECKSUM_AT: u64 = 332;

const VERSION: u64 = 5;
const BEFORE_KEY: &[u8] = b"\nKEY: ";
const AFTER_KEY: &[u8] = b"\n";

/// The fixed part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileHead<'t> {
    /// Until when the reply is fresh, in seconds since 1970, as the other times.
    pub valid_s: i64,
    /// How many seconds it may be served longer while it is being updated.
    pub updating_s: i64,
    /// How many seconds it may be served longer when updating it fails.
    pub error_s: i64,
    /// `Last-Modified`; -1: none.
    pub last_modified: i64,
    /// When it was stored or last found valid.
    pub date: i64,
    pub valid_ms: u16,
    pub head_start: u16,
    pub body_start: u16,
    pub etag: &'t [u8],
    pub vary: &'t [u8],
    /// The digest of the variant, if there is `vary`.
    pub variant: KeyDigest,
    /// See [`Checksum`]; 0: unknown.
    pub checksum: u32,
}

/// Why a file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileProblem {
    TooSmall,
    /// Another version, or nothing of this kind.
    Version,
    /// The file of another key.
    OtherKey,
    /// The positions of head and body do not fit the file.
    Positions,
    VaryLength,
    EtagLength,
    /// The contents are not those that were stored.
    Checksum,
}

impl FileProblem {
    /// nginx's words after `cache file "..."`.
    pub fn message(self) -> &'static str {
        match self {
            Self::TooSmall => "is too small",
            Self::Version => "version mismatch",
            Self::OtherKey => "has md5 collision",
            Self::Positions => "has too long header",
            Self::VaryLength => "has incorrect vary length",
            Self::EtagLength => "has incorrect etag length",
            Self::Checksum => "has incorrect checksum",
        }
    }
}

impl CacheKey {
    /// Where the head of the reply begins in its file; `None`: the key is too long for a file.
    pub fn head_start(&self) -> Option<u16> {
        let around = FIXED_BYTES + BEFORE_KEY.len() + AFTER_KEY.len();
        u16::try_from(around + self.text().len()).ok()
    }

    /// Writes what is between the fixed part and the head.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(BEFORE_KEY);
        out.extend_from_slice(self.text());
        out.extend_from_slice(AFTER_KEY);
    }
}

impl<'t> FileHead<'t> {
    /// Reads the beginning of a file of `size` bytes, which has at least the key.
    pub fn read(bytes: &'t [u8], size: u64, key: &CacheKey) -> Result<Self, FileProblem> {
        let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_BYTES>() else {
            return Err(FileProblem::TooSmall);
        };
        if read_u64(fixed, 0) != VERSION {
            return Err(FileProblem::Version);
        }
        let head = Self::read_fixed(fixed)?;
        if read_u32(fixed, 48) != key.crc32() || Some(head.head_start) != key.head_start() {
            return Err(FileProblem::OtherKey);
        }
        let line = rest.get(..usize::from(head.head_start) - FIXED_BYTES);
        let line = line.ok_or(FileProblem::TooSmall)?;
        let text = line.strip_prefix(BEFORE_KEY).and_then(|line| line.strip_suffix(AFTER_KEY));
        if text != Some(key.text()) {
            return Err(FileProblem::OtherKey);
        }
        match head.body_start > head.head_start && u64::from(head.body_start) <= size {
            true => Ok(head),
            false => Err(FileProblem::Positions),
        }
    }

    fn read_fixed(fixed: &'t [u8; FIXED_BYTES]) -> Result<Self, FileProblem> {
        let text = |at: usize, problem| {
            let length = usize::from(fixed[at]);
            fixed[at + 1..][..TEXT_BYTES_MAX].get(..length).ok_or(problem)
        };
        let mut variant = KeyDigest::default();
        variant.0.copy_from_slice(&fixed[316..332]);
        Ok(Self {
            valid_s: read_u64(fixed, 8) as i64,
            updating_s: read_u64(fixed, 16) as i64,
            error_s: read_u64(fixed, 24) as i64,
            last_modified: read_u64(fixed, 32) as i64,
            date: read_u64(fixed, 40) as i64,
            valid_ms: read_u16(fixed, 52),
            head_start: read_u16(fixed, 54),
            body_start: read_u16(fixed, 56),
            etag: text(58, FileProblem::EtagLength)?,
            vary: text(187, FileProblem::VaryLength)?,
            variant,
            checksum: read_u32(fixed, 332),
        })
    }

    /// The fixed part. A text that is too long is left out.
    pub fn write(&self, key: &CacheKey) -> [u8; FIXED_BYTES] {
        let mut fixed = [0; FIXED_BYTES];
        let mut put = |at: usize, bytes: &[u8]| fixed[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &VERSION.to_ne_bytes());
        let times = [self.valid_s, self.updating_s, self.error_s, self.last_modified, self.date];
        for (time, at) in times.iter().zip((8..).step_by(8)) {
            put(at, &time.to_ne_bytes());
        }
        put(48, &key.crc32().to_ne_bytes());
        put(52, &self.valid_ms.to_ne_bytes());
        put(54, &self.head_start.to_ne_bytes());
        put(56, &self.body_start.to_ne_bytes());
        for (text, at) in [(self.etag, 58), (self.vary, 187)] {
            if text.len() <= TEXT_BYTES_MAX {
                put(at, &[text.len() as u8]);
                put(at + 1, text);
            }
        }
        if !self.vary.is_empty() {
            put(316, &self.variant.0);
        }
        put(332, &self.checksum.to_ne_bytes());
        fixed
    }
}

fn read_u64(fixed: &[u8; FIXED_BYTES], at: usize) -> u64 {
    u64::from_ne_bytes(fixed_part(fixed, at))
}

fn read_u32(fixed: &[u8; FIXED_BYTES], at: usize) -> u32 {
    u32::from_ne_bytes(fixed_part(fixed, at))
}

fn read_u16(fixed: &[u8; FIXED_BYTES], at: usize) -> u16 {
    u16::from_ne_bytes(fixed_part(fixed, at))
}

fn fixed_part<const N: usize>(fixed: &[u8; FIXED_BYTES], at: usize) -> [u8; N] {
    *fixed[at..].first_chunk().expect("positions are constants within the fixed part")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> FileHead<'static> {
        FileHead {
            valid_s: 1_900_000_000,
            updating_s: 5,
            error_s: 6,
            last_modified: -1,
            date: 1_800_000_000,
            valid_ms: 0,
            head_start: CacheKey::new(b"http://app/x").head_start().unwrap(),
            body_start: 400,
            etag: b"\"a\"",
            vary: b"Accept-Encoding",
            variant: KeyDigest([7; 16]),
            checksum: 9,
        }
    }

    fn file(head: &FileHead<'_>, key: &CacheKey) -> Vec<u8> {
        let mut bytes = head.write(key).to_vec();
        key.write_line(&mut bytes);
        bytes
    }

    #[test]
    fn what_was_written_is_read() {
        let key = CacheKey::new(b"http://app/x");
        let bytes = file(&head(), &key);
        assert_eq!(bytes.len(), 355);
        assert_eq!(FileHead::read(&bytes, 400, &key), Ok(head()));
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused() {
        let key = CacheKey::new(b"http://app/x");
        let whole = file(&head(), &key);
        let refused = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            FileHead::read(&bytes, 400, &key).err()
        };
        for (at, byte, problem) in [
            (0, 4, FileProblem::Version),
            (7, 1, FileProblem::Version),
            (48, 0, FileProblem::OtherKey),
            (54, 0, FileProblem::OtherKey),
            (336, b'x', FileProblem::OtherKey),
            (350, b'!', FileProblem::OtherKey),
            (56, 255, FileProblem::Positions),
            (57, 0, FileProblem::Positions),
            (58, 129, FileProblem::EtagLength),
            (187, 129, FileProblem::VaryLength),
        ] {
            assert_eq!(refused(at, byte), Some(problem), "{at}");
        }
        for length in 0..whole.len() {
            let read = FileHead::read(&whole[..length], length as u64, &key);
            assert_eq!(read.err(), Some(FileProblem::TooSmall), "{length}");
        }
        let other = FileHead::read(&whole, 400, &CacheKey::new(b"http://app/y"));
        assert_eq!(other.err(), Some(FileProblem::OtherKey));
    }

    #[test]
    fn a_key_that_is_too_long_has_no_file() {
        assert!(CacheKey::new(&[b'a'; 65535 - 343]).head_start().is_some());
        assert!(CacheKey::new(&[b'a'; 65536 - 343]).head_start().is_none());
    }
}

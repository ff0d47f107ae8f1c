//! A key of a shared table as the store has it: its last change, and when that was made.
//!
//! ```text
//! 1795722245000-00c0ffee00c0ffee set 1795722305000 0\nVALUE
//! 1795722245000-00c0ffee00c0ffee set - 12\n192.0.2.7/32VALUE
//! 1795722245000-00c0ffee00c0ffee removed\n
//! ```
//!
//! After the stamp of the change comes the store's time at which the entry ends, and the length of
//! the key's text if that is not the field's name. A removed key stays as a tombstone, for nodes
//! that were away. Whatever else a store has is no record.

use std::fmt;

use super::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// The longest first line.
const HEAD_BYTES_MAX: usize = 128;
/// The longest record.
pub(super) const RECORD_BYTES_MAX: usize = HEAD_BYTES_MAX + KEY_BYTES_MAX + VALUE_BYTES_MAX;

/// The name of a key in the store: the text that is the same at all nodes.
pub(super) type KeyvalField = Box<[u8]>;

/// The place of a change among all changes of its key: the last one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyvalStamp {
    /// The store's time. 0: the entry comes from a file, and every change is later.
    pub(super) ms: i64,
    /// The node that made it. It decides between changes at the same time.
    pub(super) node: u64,
}

/// What the store has for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyvalRecord {
    pub(super) stamp: KeyvalStamp,
    /// `None`: the key was removed.
    pub(super) entry: Option<RecordEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordEntry {
    /// The key's text; `None`: it is the field's name.
    pub(super) key: Option<Box<[u8]>>,
    pub(super) value: Box<[u8]>,
    /// The store's time at which it ends.
    pub(super) expires_ms: Option<i64>,
}

impl KeyvalStamp {
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let dash = memchr::memchr(b'-', text)?;
        let node = &text[dash + 1..];
        let is_hex = node.len() == 16 && node.iter().all(u8::is_ascii_hexdigit);
        let node = str::from_utf8(node).ok().filter(|_| is_hex)?;
        Some(Self { ms: number(&text[..dash])?, node: u64::from_str_radix(node, 16).ok()? })
    }
}

impl fmt::Display for KeyvalStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.ms, self.node)
    }
}

impl KeyvalRecord {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Self { stamp, entry } = self;
        let Some(RecordEntry { key, value, expires_ms }) = entry else {
            return format!("{stamp} removed\n").into_bytes();
        };
        let key = key.as_deref().unwrap_or_default();
        let expires = expires_ms.map_or("-".to_owned(), |expires_ms| expires_ms.to_string());
        let head = format!("{stamp} set {expires} {}\n", key.len());
        [head.as_bytes(), key, value].concat()
    }

    /// Reads a record; `None`: it is none.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = memchr::memchr(b'\n', &bytes[..bytes.len().min(HEAD_BYTES_MAX)])?;
        let (head, rest) = (&bytes[..end], &bytes[end + 1..]);
        let mut words = head.split(|byte| *byte == b' ');
        let stamp = KeyvalStamp::parse(words.next()?)?;
        let entry = match words.next()? {
            b"removed" if rest.is_empty() => None,
            b"set" => {
                let expires_ms = match words.next()? {
                    b"-" => None,
                    digits => Some(number(digits)?),
                };
                let length = usize::try_from(number(words.next()?)?).ok()?;
                let (key, value) = rest.split_at_checked(length)?;
                if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
                    return None;
                }
                let key = (!key.is_empty()).then(|| key.into());
                Some(RecordEntry { key, value: value.into(), expires_ms })
            }
            _ => return None,
        };
        words.next().is_none().then_some(Self { stamp, entry })
    }
}

/// Digits, and nothing else.
fn number(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let stamp = KeyvalStamp { ms: 1_795_722_245_000, node: 0xc0_ffee };
        let entry = |key: Option<&str>, expires_ms| RecordEntry {
            key: key.map(|key| key.as_bytes().into()),
            value: (*b"a\n\0 b").into(),
            expires_ms,
        };
        for (entry, head) in [
            (None, "1795722245000-0000000000c0ffee removed\n"),
            (Some(entry(None, None)), "1795722245000-0000000000c0ffee set - 0\n"),
            (
                Some(entry(Some("192.0.2.7/32"), Some(1_795_722_305_000))),
                "1795722245000-0000000000c0ffee set 1795722305000 12\n192.0.2.7/32",
            ),
        ] {
            let record = KeyvalRecord { stamp, entry };
            let bytes = record.to_bytes();
            assert!(bytes.starts_with(head.as_bytes()), "{}", bytes.escape_ascii());
            assert_eq!(KeyvalRecord::parse(&bytes), Some(record));
        }
    }

    #[test]
    fn anything_else_is_no_record() {
        for text in [
            "",
            "\n",
            "1-0000000000c0ffee",
            "1-0000000000c0ffee removed",
            "1-0000000000c0ffee removed\nx",
            "1-0000000000c0ffee removed now\n",
            "1-c0ffee removed\n",
            "-1-0000000000c0ffee removed\n",
            "+1-0000000000c0ffee removed\n",
            "1-+000000000c0ffee removed\n",
            "99999999999999999999-0000000000c0ffee removed\n",
            "1-0000000000c0ffee set - 5\nabcd",
            "1-0000000000c0ffee set 0\nabcd",
            "1-0000000000c0ffee set -1 0\nabcd",
            "1-0000000000c0ffee set - 0 0\nabcd",
        ] {
            assert_eq!(KeyvalRecord::parse(text.as_bytes()), None, "{text}");
        }
        let long = [b"1-0000000000c0ffee set - 0\n", &[b'v'; VALUE_BYTES_MAX + 1][..]].concat();
        assert_eq!(KeyvalRecord::parse(&long), None);
        assert!(KeyvalRecord::parse(&long[..long.len() - 1]).is_some());
        assert!(long.len() - 1 + KEY_BYTES_MAX <= RECORD_BYTES_MAX);
    }
}

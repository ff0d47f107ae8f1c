//! A table as JSON, in the form of NGINX Plus's API: `{"key":"value"}`.

use wire::json::write_text;

use super::entry::KeyvalEntry;
use super::table::KeyvalTable;
use super::trie::TrieEntries;

/// The JSON of a table as it was at a moment, piece by piece.
#[derive(Debug)]
pub struct KeyvalJson {
    entries: TrieEntries,
    now_ms: u64,
    written: usize,
    is_done: bool,
}

impl KeyvalTable {
    /// The whole table.
    pub fn to_json(&self, now_ms: u64) -> KeyvalJson {
        KeyvalJson { entries: self.all(), now_ms, written: 0, is_done: false }
    }
}

impl KeyvalEntry {
    /// `{"key":"value"}`
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_member(out);
        out.push(b'}');
    }

    fn write_member(&self, out: &mut Vec<u8>) {
        write_text(&self.key, out);
        out.push(b':');
        write_text(&self.value, out);
    }
}

impl KeyvalJson {
    /// Writes until there are about `bytes` more bytes; false at the end.
    pub fn write_piece(&mut self, bytes: usize, out: &mut Vec<u8>) -> bool {
        let end = out.len() + bytes;
        while !self.is_done && out.len() < end {
            let now_ms = self.now_ms;
            match self.entries.find(|entry| entry.is_live(now_ms)) {
                Some(entry) => {
                    out.push(if self.written == 0 { b'{' } else { b',' });
                    entry.write_member(out);
                    self.written += 1;
                }
                None => {
                    out.extend_from_slice(if self.written == 0 { b"{}" } else { b"}" });
                    self.is_done = true;
                }
            }
        }
        !self.is_done
    }

    /// Writes all of it.
    pub fn write(mut self, out: &mut Vec<u8>) {
        while self.write_piece(usize::MAX / 2, out) {}
    }
}

//! Encodes fields into blocks.
//!
//! A field that is likely to be sent again enters the dynamic table, and takes one or two bytes
//! from then on. Entries are found by their name: those with one name of the static table, or with
//! one hash of another name, form a list from the newest to the oldest.

use alloc::vec::Vec;

use super::static_table::{self, DYNAMIC_FIRST, FIELDS, index};
use super::table::DynamicTable;
use super::{ENTRY_OVERHEAD_BYTES, TABLE_BYTES_DEFAULT, huffman, integer};

/// How many entries of one list are compared before a field counts as new.
const COMPARISONS_MAX: usize = 8;
/// Lists for names that are not in the static table; a power of two.
const OTHER_LISTS: usize = 16;
const LISTS: usize = FIELDS.len() + 1 + OTHER_LISTS;

/// Encodes the blocks that are sent to a peer.
pub struct Encoder {
    pub(super) table: DynamicTable,
    /// The maximum size of our table, even if the peer allows more.
    own_bytes_max: usize,
    /// The smallest size since the last block, if the peer does not know the present size yet.
    smallest_unsent: Option<usize>,
    /// The number of each list's newest entry. Numbers of evicted entries stay.
    newest: [u32; LISTS],
    lower: Vec<u8>,
}

/// How a field that is not in a table is written.
#[derive(Clone, Copy, PartialEq)]
enum Literal {
    Incremental,
    Plain,
    NeverIndexed,
}

/// The result of looking a field up in both tables.
struct TablesEntry {
    list: usize,
    /// The index of a field with this name, or 0.
    name_index: usize,
    /// The index of a field with the same name and value.
    field_index: Option<usize>,
}

impl Encoder {
    /// An encoder with a table of at most `max_table_size` bytes; 0 for none.
    pub fn new(max_table_size: usize) -> Encoder {
        let mut encoder = Encoder {
            table: DynamicTable::new(TABLE_BYTES_DEFAULT),
            own_bytes_max: max_table_size,
            smallest_unsent: None,
            newest: [u32::MAX; LISTS],
            lower: Vec::new(),
        };
        encoder.set_table_size(TABLE_BYTES_DEFAULT);
        encoder
    }

    /// The peer's SETTINGS_HEADER_TABLE_SIZE, in force from the next block on.
    pub fn set_table_size(&mut self, size: usize) {
        let size = size.min(self.own_bytes_max);
        if size != self.table.bytes_max() {
            let smallest = self.smallest_unsent.unwrap_or(size);
            self.smallest_unsent = Some(smallest.min(size));
            self.table.set_bytes_max(size);
        }
    }

    /// Whether the peer's copy of the table may have entries, or does not know its size yet.
    pub fn has_state(&self) -> bool {
        self.smallest_unsent.is_some() || !self.table.is_empty()
    }

    /// Makes the next block begin by emptying the peer's copy of the table.
    pub fn empty_peers_table(&mut self) {
        self.table.evict(0);
        self.smallest_unsent = Some(0);
    }

    /// Begins a block: announces changes of the table's size.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some(smallest) = self.smallest_unsent.take() else { return };
        integer::write(0x20, 5, smallest, out);
        if smallest != self.table.bytes_max() {
            integer::write(0x20, 5, self.table.bytes_max(), out);
        }
    }

    /// Appends a field. The name may be in any case; it is sent in lower case.
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let place = static_table::name_index(name);
        let Some(place) = place else { return self.other_field(name, value, out) };
        if let Some(known) = static_table::field_index(place, value) {
            return out.push(0x80 | known);
        }
        self.known_field(place, value, out);
    }

    /// Appends a field that no table may hold, neither here nor at an intermediary, because its
    /// value is secret (RFC 7541, 7.1.3).
    pub fn field_never_indexed(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let name_index = usize::from(static_table::name_index(name).unwrap_or(0));
        let name = self.lowered(name);
        write_literal(Literal::NeverIndexed, name_index, &name, value, out);
        self.lower = name;
    }

    /// Appends the pseudo-header `:status`.
    pub fn status(&mut self, code: u16, out: &mut Vec<u8>) {
        let known = match code {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digits = [code / 100 % 10, code / 10 % 10, code % 10];
                return self.known_field(index::STATUS, &digits.map(|d| b'0' + d as u8), out);
            }
        };
        out.push(0x80 | known);
    }

    /// A field with a name of the static table.
    fn known_field(&mut self, place: u8, value: &[u8], out: &mut Vec<u8>) {
        let name = FIELDS[usize::from(place) - 1].0;
        if !is_repeated(place) {
            return write_literal(Literal::Plain, usize::from(place), name, value, out);
        }
        let list = usize::from(place);
        let mut found = self.find(list, name, value);
        found.name_index = list;
        self.write(found, name, value, out);
    }

    fn other_field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let name = self.lowered(name);
        let list = FIELDS.len() + 1 + hash(&name) % OTHER_LISTS;
        let found = self.find(list, &name, value);
        self.write(found, &name, value, out);
        self.lower = name;
    }

    /// `name` in lower case, in the memory of `self.lower`.
    fn lowered(&mut self, name: &[u8]) -> Vec<u8> {
        let mut lower = core::mem::take(&mut self.lower);
        lower.clear();
        lower.extend(name.iter().map(u8::to_ascii_lowercase));
        lower
    }

    fn find(&self, list: usize, name: &[u8], value: &[u8]) -> TablesEntry {
        let mut found = TablesEntry { list, name_index: 0, field_index: None };
        let mut number = self.newest[list];
        for _ in 0..COMPARISONS_MAX {
            let age = self.table.age_of(number);
            let Some(entry) = self.table.entry(age) else { break };
            if entry.name == name {
                found.name_index = DYNAMIC_FIRST + age;
                if entry.value == value {
                    found.field_index = Some(DYNAMIC_FIRST + age);
                    break;
                }
            }
            number = entry.earlier;
        }
        found
    }

    fn write(&mut self, found: TablesEntry, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        if let Some(index) = found.field_index {
            return integer::write(0x80, 7, index, out);
        }
        if !self.is_worth_indexing(name, value) {
            return write_literal(Literal::Plain, found.name_index, name, value, out);
        }
        write_literal(Literal::Incremental, found.name_index, name, value, out);
        if let Some(number) = self.table.insert(name, value, self.newest[found.list]) {
            self.newest[found.list] = number;
        }
    }

    /// Whether the field is small enough to leave room for others in the table.
    fn is_worth_indexing(&self, name: &[u8], value: &[u8]) -> bool {
        name.len() + value.len() + ENTRY_OVERHEAD_BYTES <= self.table.bytes_max() / 4 * 3
    }
}

fn hash(name: &[u8]) -> usize {
    name.iter().fold(0, |hash: usize, &byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
}

/// Whether fields with this name tend to have the same value again. The others would only evict
/// those that do, or are secrets whose length a shared table could reveal.
fn is_repeated(place: u8) -> bool {
    !matches!(
        place,
        index::PATH
            | index::AGE
            | index::AUTHORIZATION
            | index::CONTENT_LENGTH
            | index::CONTENT_RANGE
            | index::ETAG
            | index::IF_MODIFIED_SINCE
            | index::IF_NONE_MATCH
            | index::LOCATION
            | index::PROXY_AUTHORIZATION
            | index::SET_COOKIE
    )
}

/// `name` is only written without a `name_index`.
fn write_literal(
    literal: Literal,
    name_index: usize,
    name: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) {
    let (pattern, prefix_bits) = match literal {
        Literal::Incremental => (0x40, 6),
        Literal::Plain => (0x00, 4),
        Literal::NeverIndexed => (0x10, 4),
    };
    integer::write(pattern, prefix_bits, name_index, out);
    if name_index == 0 {
        write_string(name, out);
    }
    write_string(value, out);
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    let huffman_len = huffman::encoded_len(text);
    if huffman_len < text.len() {
        integer::write(0x80, 7, huffman_len, out);
        return huffman::encode(text, out);
    }
    integer::write(0, 7, text.len(), out);
    out.extend_from_slice(text);
}

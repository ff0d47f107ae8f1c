//! Decodes blocks into fields.

use alloc::vec::Vec;
use core::ops::Range;

use super::integer::BlockReader;
use super::static_table::{DYNAMIC_FIRST, FIELDS};
use super::table::DynamicTable;
use super::{HpackError, huffman};

/// The capacity for decoded text that a decoder retains between blocks.
const TEXT_BYTES_KEPT: usize = 4096;

/// Fields with this many times [`FieldLimits::bytes_max`] end the connection. A block can repeat a
/// large entry of the table with each of its bytes; without a limit, the work for a block would
/// not depend on its size alone.
const EXCESS_FACTOR: usize = 8;

/// How often a block may change the size of the table. Two suffice: the smallest size since the
/// last block, and the present one (RFC 7541, section 4.2).
const SIZE_UPDATES_MAX: usize = 8;

/// Limits of one block.
#[derive(Clone, Copy, Debug)]
pub struct FieldLimits {
    /// How many fields a block may have.
    pub fields_max: usize,
    /// How many bytes of the block one name or value may take, in Huffman code or not.
    pub string_bytes_max: usize,
    /// How many bytes names and values may have together.
    pub bytes_max: usize,
}

impl FieldLimits {
    /// No limits but those of `usize`.
    pub const NONE: FieldLimits =
        FieldLimits { fields_max: usize::MAX, string_bytes_max: usize::MAX, bytes_max: usize::MAX };
}

/// Decodes the blocks that a peer sends.
pub struct Decoder {
    pub(super) table: DynamicTable,
    /// The largest table that the peer may set.
    table_bytes_max: usize,
    /// Names and values of one field that do not appear literally in the block.
    text: Vec<u8>,
}

impl Decoder {
    /// `max_table_size` is the announced SETTINGS_HEADER_TABLE_SIZE, or
    /// [`super::TABLE_BYTES_DEFAULT`] without one. If a smaller one is announced, the peer may use
    /// the default until it acknowledged the settings.
    pub fn new(max_table_size: usize) -> Decoder {
        Decoder {
            table: DynamicTable::new(max_table_size),
            table_bytes_max: max_table_size,
            text: Vec::new(),
        }
    }

    /// Frees the memory that no entry of the table needs.
    pub fn shrink(&mut self) {
        self.table.shrink();
        self.text = Vec::new();
    }

    /// Calls `on_field` with name, value, and whether the field must never be indexed, for each
    /// field of a complete block (HEADERS with all its CONTINUATION frames).
    ///
    /// Fields above the limits are decoded but not reported; the error then says so, and the next
    /// block can be decoded, unless [`HpackError::ends_connection`].
    pub fn decode(
        &mut self,
        block: &[u8],
        limits: FieldLimits,
        mut on_field: impl FnMut(&[u8], &[u8], bool),
    ) -> Result<(), HpackError> {
        let mut reader = BlockReader(block);
        self.size_updates(&mut reader)?;
        let mut admission = Admission { limits, fields: 0, bytes: 0 };
        while let Some(first) = reader.peek() {
            if first & 0x80 != 0 {
                let (name, value) = indexed(&self.table, reader.integer(7)?)?;
                if admission.admits(name, value)? {
                    on_field(name, value, false);
                }
            } else {
                self.literal(first, &mut reader, &mut admission, &mut on_field)?;
            }
        }
        self.text.clear();
        self.text.shrink_to(TEXT_BYTES_KEPT);
        admission.outcome()
    }

    /// The size updates before the first field.
    fn size_updates(&mut self, reader: &mut BlockReader<'_>) -> Result<(), HpackError> {
        let mut count = 0;
        while let Some(0x20..0x40) = reader.peek() {
            count += 1;
            if count > SIZE_UPDATES_MAX {
                return Err(HpackError::TooManySizeUpdates);
            }
            let bytes_max = reader.integer(5)?;
            if bytes_max > self.table_bytes_max {
                return Err(HpackError::TableTooLarge);
            }
            self.table.set_bytes_max(bytes_max);
        }
        Ok(())
    }

    fn literal(
        &mut self,
        first: u8,
        reader: &mut BlockReader<'_>,
        admission: &mut Admission,
        on_field: &mut impl FnMut(&[u8], &[u8], bool),
    ) -> Result<(), HpackError> {
        let is_incremental = first & 0x40 != 0;
        if !is_incremental && first & 0x20 != 0 {
            return Err(HpackError::LateSizeUpdate);
        }
        self.text.clear();
        let name = match reader.integer(if is_incremental { 6 } else { 4 })? {
            0 => self.string(reader, admission.limits)?,
            index => self.name(index)?,
        };
        let value = self.string(reader, admission.limits)?;
        let (name, value) = (name.of(&self.text), value.of(&self.text));
        if admission.admits(name, value)? {
            on_field(name, value, !is_incremental && first & 0x10 != 0);
        }
        if is_incremental {
            self.table.insert(name, value, 0);
        }
        Ok(())
    }

    fn string<'a>(
        &mut self,
        reader: &mut BlockReader<'a>,
        limits: FieldLimits,
    ) -> Result<FieldText<'a>, HpackError> {
        let (text, is_huffman) = reader.string()?;
        if text.len() > limits.string_bytes_max {
            return Err(HpackError::StringTooLong);
        }
        if !is_huffman {
            return Ok(FieldText::InBlock(text));
        }
        let start = self.text.len();
        huffman::decode(text, &mut self.text)?;
        Ok(FieldText::Decoded(start..self.text.len()))
    }

    /// The name of an indexed field; one of the dynamic table is copied, because its entry may be
    /// evicted by the field that it begins.
    fn name(&mut self, index: usize) -> Result<FieldText<'static>, HpackError> {
        if let Some((name, _)) = FIELDS.get(index - 1) {
            return Ok(FieldText::InBlock(name));
        }
        let (name, _) = indexed(&self.table, index)?;
        self.text.extend_from_slice(name);
        Ok(FieldText::Decoded(0..name.len()))
    }
}

fn indexed(table: &DynamicTable, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
    if let Some(age) = index.checked_sub(DYNAMIC_FIRST) {
        let entry = table.entry(age).ok_or(HpackError::InvalidIndex)?;
        return Ok((entry.name, entry.value));
    }
    let place = index.checked_sub(1).ok_or(HpackError::InvalidIndex)?;
    FIELDS.get(place).copied().ok_or(HpackError::InvalidIndex)
}

/// The place of a name or value.
enum FieldText<'a> {
    /// In the block, or in the static table.
    InBlock(&'a [u8]),
    /// In [`Decoder::text`].
    Decoded(Range<usize>),
}

impl<'a> FieldText<'a> {
    fn of(self, decoded: &'a [u8]) -> &'a [u8] {
        match self {
            FieldText::InBlock(text) => text,
            FieldText::Decoded(range) => &decoded[range],
        }
    }
}

/// The size of the fields so far, and its limits.
struct Admission {
    limits: FieldLimits,
    fields: usize,
    bytes: usize,
}

impl Admission {
    /// Counts a field. Returns whether it is within the limits.
    #[inline]
    fn admits(&mut self, name: &[u8], value: &[u8]) -> Result<bool, HpackError> {
        self.fields += 1;
        self.bytes += name.len() + value.len();
        if self.bytes > self.limits.bytes_max.saturating_mul(EXCESS_FACTOR) {
            return Err(HpackError::Excessive);
        }
        Ok(self.outcome().is_ok())
    }

    fn outcome(&self) -> Result<(), HpackError> {
        if self.bytes > self.limits.bytes_max {
            return Err(HpackError::TooManyBytes);
        }
        if self.fields > self.limits.fields_max {
            return Err(HpackError::TooManyFields);
        }
        Ok(())
    }
}

//! The decoded fields of one header block.

use alloc::vec::Vec;

use crate::Slice;

/// The most memory that is reused for the next block.
const TEXT_KEPT_MAX: usize = 16 * 1024;

/// Names and values in the order in which they were received. Reused for every block of a
/// connection.
#[derive(Clone, Debug, Default)]
pub struct FieldBlock {
    text: Vec<u8>,
    fields: Vec<(Slice, Slice)>,
    /// Whether the block had more fields than the limit.
    pub is_cut: bool,
}

impl FieldBlock {
    /// Iterates over names and values.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|(name, value)| (name.of(&self.text), value.of(&self.text)))
    }

    /// The value of the first field with that name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|field| field.0 == name).map(|field| field.1)
    }

    pub fn len(&self) -> usize {
        self.fields.len()
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        if self.text.capacity() > TEXT_KEPT_MAX {
            self.text = Vec::new();
            self.fields = Vec::new();
        }
        self.fields.clear();
        self.is_cut = false;
    }

    #[inline]
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        let middle = self.text.len();
        self.text.extend_from_slice(value);
        self.fields.push((Slice::new(start, middle), Slice::new(middle, self.text.len())));
    }
}

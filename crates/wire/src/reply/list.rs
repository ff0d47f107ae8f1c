//! Header lines, and the set of the well-known names among them.

use alloc::vec::Vec;
use core::ops::Deref;
use core::slice::Iter;

use super::ReplyField;

/// Header lines in order. Whether a name occurs, the most frequent query, is the test of a bit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReplyFieldList {
    fields: Vec<ReplyField>,
    /// The names that occur, as bits.
    seen: u32,
    /// The names that occur more than once, as bits.
    repeated: u32,
}

impl ReplyFieldList {
    #[inline]
    pub fn push(&mut self, field: ReplyField) {
        let bit = field.id.bit();
        self.repeated |= self.seen & bit;
        self.seen |= bit;
        self.fields.push(field);
    }

    /// Removes the lines and keeps their memory.
    pub fn clear(&mut self) {
        self.fields.clear();
        (self.seen, self.repeated) = (0, 0);
    }

    /// Frees the memory that no line needs.
    pub fn shrink_to_fit(&mut self) {
        self.fields.shrink_to_fit();
    }

    pub fn capacity(&self) -> usize {
        self.fields.capacity()
    }

    /// Whether any of these names, given as bits ([`ReplyName::bit`]), occurs.
    ///
    /// [`ReplyName::bit`]: super::ReplyName::bit
    #[inline]
    pub fn has_any(&self, names: u32) -> bool {
        self.seen & names != 0
    }

    /// Whether any of these names occurs more than once.
    #[inline]
    pub fn repeats_any(&self, names: u32) -> bool {
        self.repeated & names != 0
    }
}

impl Deref for ReplyFieldList {
    type Target = [ReplyField];

    #[inline]
    fn deref(&self) -> &[ReplyField] {
        &self.fields
    }
}

impl<'l> IntoIterator for &'l ReplyFieldList {
    type Item = &'l ReplyField;
    type IntoIter = Iter<'l, ReplyField>;

    fn into_iter(self) -> Self::IntoIter {
        self.fields.iter()
    }
}

impl FromIterator<ReplyField> for ReplyFieldList {
    fn from_iter<I: IntoIterator<Item = ReplyField>>(fields: I) -> Self {
        let mut list = Self::default();
        fields.into_iter().for_each(|field| list.push(field));
        list
    }
}

//! Header lines, and which of the well-known names are among them.

use alloc::vec::Vec;
use core::ops::Deref;
use core::slice::Iter;

use super::ReplyField;

/// Header lines in order. What is asked for most, whether a name is there, is a test of a bit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReplyFieldList {
    fields: Vec<ReplyField>,
    /// Names as bits: those that are there.
    seen: u32,
    /// Those that are there more than once.
    repeated: u32,
}

impl ReplyFieldList {
    /// Appends a line.
    #[inline]
    pub fn push(&mut self, field: ReplyField) {
        let bit = field.id.bit();
        self.repeated |= self.seen & bit;
        self.seen |= bit;
        self.fields.push(field);
    }

    /// Forgets the lines and keeps their memory.
    pub fn clear(&mut self) {
        self.fields.clear();
        (self.seen, self.repeated) = (0, 0);
    }

    /// Gives memory back that no line needs.
    pub fn shrink_to_fit(&mut self) {
        self.fields.shrink_to_fit();
    }

    /// How many lines there is memory for.
    pub fn capacity(&self) -> usize {
        self.fields.capacity()
    }

    /// Whether any of these names is there, which are bits: [`ReplyName::bit`].
    ///
    /// [`ReplyName::bit`]: super::ReplyName::bit
    #[inline]
    pub fn has_any(&self, names: u32) -> bool {
        self.seen & names != 0
    }

    /// Whether any of these names is there more than once.
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

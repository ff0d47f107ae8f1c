//! The lengths that the keys of a table have: those at which a lookup of a prefix has to try.

/// Lengths in ascending order, each with the number of its keys.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyLengths(Vec<(u16, u32)>);

impl KeyLengths {
    pub(super) fn add(&mut self, length: u16) {
        match self.0.binary_search_by_key(&length, |(own, _)| *own) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (length, 1)),
        }
    }

    pub(super) fn remove(&mut self, length: u16) {
        if let Ok(at) = self.0.binary_search_by_key(&length, |(own, _)| *own) {
            self.0[at].1 -= 1;
            if self.0[at].1 == 0 {
                self.0.remove(at);
            }
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = u16> + '_ {
        self.0.iter().map(|(length, _)| *length)
    }
}

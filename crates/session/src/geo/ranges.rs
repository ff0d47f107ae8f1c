//! Ranges of IPv4 addresses: a later range may lie inside an earlier one, but must not overlap it
//! partly.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::stretches::Stretches;

/// The ranges. Like nginx they are kept in pieces of at most 65,536 addresses, and overlaps and
/// deletions are decided piece by piece.
#[derive(Debug, Default)]
pub(super) struct GeoRanges {
    /// The last address and the value, by first address.
    pieces: BTreeMap<u32, (u32, u32)>,
}

/// The addresses of a range that another range overlaps partly.
pub(super) struct Overlap(u32, u32);

impl GeoRanges {
    /// Adds a range. If the same range exists, its value is replaced and returned.
    pub(super) fn insert(&mut self, range: (u32, u32), value: u32) -> Result<Option<u32>, Overlap> {
        let mut replaced = None;
        for (first, last) in pieces(range) {
            let before = self.pieces.range(..=last).next_back().map(|(f, (l, v))| (*f, *l, *v));
            match before {
                Some((old_first, old_last, old)) if old_last >= first => {
                    if first < old_first || last > old_last {
                        return Err(Overlap(old_first, old_last));
                    }
                    if (first, last) == (old_first, old_last) {
                        replaced = replaced.or(Some(old));
                    }
                    self.split((old_first, old_last, old), first, last);
                }
                _ => {}
            }
            self.pieces.insert(first, (last, value));
        }
        Ok(replaced)
    }

    /// Keeps the parts of an old piece before and after the new one inside it.
    fn split(&mut self, (old_first, old_last, old): (u32, u32, u32), first: u32, last: u32) {
        if old_first < first {
            self.pieces.insert(old_first, (first - 1, old));
        }
        if last < old_last {
            self.pieces.insert(last + 1, (old_last, old));
        }
    }

    /// Removes a range; false if some of its pieces do not exist exactly.
    pub(super) fn remove(&mut self, range: (u32, u32)) -> bool {
        let mut whole = true;
        for (first, last) in pieces(range) {
            if self.pieces.get(&first).is_some_and(|(own_last, _)| *own_last == last) {
                self.pieces.remove(&first);
            } else {
                whole = false;
            }
        }
        whole
    }

    /// Converts the ranges to stretches.
    pub(super) fn stretches(&self, default: u32) -> Stretches<u32> {
        let changes = self.pieces.iter().flat_map(|(first, (last, value))| {
            let after = last.checked_add(1).map(|after| (after.into(), default));
            std::iter::once((u128::from(*first), *value)).chain(after)
        });
        Stretches::new(default, changes)
    }
}

fn pieces((first, last): (u32, u32)) -> impl Iterator<Item = (u32, u32)> {
    (first >> 16..=last >> 16).map(move |high| {
        let (start, end) = (high << 16, high << 16 | 0xffff);
        (first.max(start), last.min(end))
    })
}

impl std::fmt::Display for Overlap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", Ipv4Addr::from_bits(self.0), Ipv4Addr::from_bits(self.1))
    }
}

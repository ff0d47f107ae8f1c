//! Values for all addresses, as stretches of consecutive addresses with the same value.

/// The stretches in order, without gaps: each ends where the next begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stretches<A> {
    /// The first address of each stretch; the first one is 0.
    starts: Box<[A]>,
    values: Box<[u32]>,
}

impl<A: Copy + Ord + TryFrom<u128>> Stretches<A> {
    /// Builds stretches from their first addresses and values. Of two with the same start, the
    /// later one wins; addresses before the first start have the value `default`.
    pub(super) fn new(default: u32, changes: impl IntoIterator<Item = (u128, u32)>) -> Self {
        let mut stretches: Vec<(u128, u32)> = vec![(0, default)];
        for (start, value) in changes {
            if stretches.last().is_some_and(|last| last.0 == start) {
                stretches.pop();
            }
            if stretches.last().is_none_or(|last| last.1 != value) {
                stretches.push((start, value));
            }
        }
        let start = |(start, _): &(u128, u32)| A::try_from(*start).ok().expect("within the space");
        Self {
            starts: stretches.iter().map(start).collect(),
            values: stretches.iter().map(|(_, value)| *value).collect(),
        }
    }

    /// The value of an address.
    pub(super) fn find(&self, address: A) -> u32 {
        self.values[self.starts.partition_point(|start| *start <= address) - 1]
    }
}

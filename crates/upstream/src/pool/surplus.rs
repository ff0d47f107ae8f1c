//! The surplus among the old connections of a group.

/// The oldest ones above `keepalive N`, over all servers.
pub(super) struct Surplus {
    /// All connections that became idle before this time.
    until_ms: u64,
    /// The number of connections to close that became idle at exactly this time.
    at_that_time: usize,
}

impl Surplus {
    /// Chooses from old connections, idle since these times. `None` if there is no surplus.
    pub fn of(mut since_ms: Vec<u64>, old_max: usize) -> Option<Self> {
        let last = since_ms.len().checked_sub(old_max)?.checked_sub(1)?;
        let (before, &mut until_ms, _) = since_ms.select_nth_unstable(last);
        let ties = before.iter().filter(|&&since_ms| since_ms == until_ms).count();
        Some(Self { until_ms, at_that_time: ties + 1 })
    }

    /// Whether a connection is surplus. Call it once for each.
    pub fn takes(&mut self, since_ms: u64) -> bool {
        let is_tie = since_ms == self.until_ms && self.at_that_time > 0;
        self.at_that_time -= usize::from(is_tie);
        is_tie || since_ms < self.until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_surplus_connections_are_closed() {
        let table: &[(&[u64], usize, &[u64])] = &[
            (&[30, 10, 20], 3, &[30, 10, 20]),
            (&[30, 10, 20], 2, &[30, 20]),
            (&[30, 10, 20], 0, &[]),
            (&[20, 10, 20, 20], 2, &[20, 20]),
            (&[20, 10, 20, 30], 1, &[30]),
            (&[], 0, &[]),
        ];
        for &(all, old_max, expected) in table {
            let mut surplus = Surplus::of(all.to_vec(), old_max);
            let is_kept =
                |since_ms: &u64| !surplus.as_mut().is_some_and(|surplus| surplus.takes(*since_ms));
            let kept: Vec<u64> = all.iter().copied().filter(is_kept).collect();
            assert_eq!(kept, expected, "{all:?}, {old_max}");
        }
    }
}

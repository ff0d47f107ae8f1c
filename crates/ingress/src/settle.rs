//! When changes are acted on: a moment after the last one, and not much later than the first.

#[derive(Debug)]
pub(crate) struct Settle {
    /// How long it must be quiet.
    quiet_ms: u64,
    /// How long a change waits at most for quiet.
    most_ms: u64,
    /// When the first and the last of the changes came.
    waiting: Option<(u64, u64)>,
}

impl Settle {
    pub(crate) fn new(quiet_ms: u64, most_ms: u64) -> Self {
        Self { quiet_ms, most_ms, waiting: None }
    }

    pub(crate) fn changed(&mut self, now_ms: u64) {
        let first = self.waiting.map_or(now_ms, |(first, _)| first);
        self.waiting = Some((first, now_ms));
    }

    /// When the changes are due; `None`: there are none.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.waiting.map(|(first, last)| (last + self.quiet_ms).min(first + self.most_ms))
    }

    /// Whether changes are due, which are then taken.
    pub(crate) fn take(&mut self, now_ms: u64) -> bool {
        let is_due = self.due_ms().is_some_and(|due| due <= now_ms);
        if is_due {
            self.waiting = None;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_wait_for_quiet_but_not_for_long() {
        let mut settle = Settle::new(50, 500);
        assert_eq!((settle.due_ms(), settle.take(9)), (None, false));
        settle.changed(100);
        settle.changed(130);
        assert!(!settle.take(179));
        assert!(settle.take(180));
        assert!(!settle.take(1000), "they were taken");
        (0..60).for_each(|each| settle.changed(1000 + each * 10));
        assert_eq!(settle.due_ms(), Some(1500));
    }
}

//! Replies by their status.

use std::ops::RangeInclusive;

/// The number of replies by status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    /// Received statuses with their counts, in order. Servers send few different ones, so a list is
    /// faster than a table. Its length is limited, because a status has three digits.
    codes: Vec<(u16, u64)>,
    /// Replies of which only the class is known, from files of older versions.
    classes: [u64; CLASSES],
}

/// Classes 1 to 5, and 0 for every other status.
pub const CLASSES: usize = 6;

impl StatusCounts {
    pub fn count(&mut self, status: u16) {
        self.add(status, 1);
    }

    /// Counts `more` replies with one status.
    pub fn add(&mut self, status: u16, more: u64) {
        match self.codes.iter_mut().find(|(code, _)| *code == status) {
            Some((_, count)) => *count += more,
            None => {
                let at = self.codes.partition_point(|(code, _)| *code < status);
                self.codes.insert(at, (status, more));
            }
        }
    }

    /// Counts `more` replies of which only the class is known.
    pub fn add_class(&mut self, class: usize, more: u64) {
        self.classes[class] += more;
    }

    /// Adds the counts of another thread or run.
    pub fn add_all(&mut self, other: &Self) {
        other.codes.iter().for_each(|(code, count)| self.add(*code, *count));
        for (sum, more) in self.classes.iter_mut().zip(other.classes) {
            *sum += more;
        }
    }

    /// Received statuses with their counts, in order.
    pub fn codes(&self) -> &[(u16, u64)] {
        &self.codes
    }

    /// Replies by the first digit of their status, 1 to 5; others in class 0.
    pub fn classes(&self) -> [u64; CLASSES] {
        let mut classes = self.classes;
        self.codes.iter().for_each(|(code, count)| classes[class(*code)] += count);
        classes
    }

    /// Replies with a status in this range.
    pub fn within(&self, statuses: &RangeInclusive<u16>) -> u64 {
        let within = self.codes.iter().filter(|(code, _)| statuses.contains(code));
        within.map(|(_, count)| count).sum()
    }

    /// Replies with a status of 400 or more, or in no class.
    pub fn bad(&self) -> u64 {
        let [others, _, _, _, client, server] = self.classes();
        others + client + server
    }

    /// Such replies whose exact status is known.
    pub fn bad_codes(&self) -> impl Iterator<Item = (u16, u64)> {
        self.codes.iter().copied().filter(|(code, _)| matches!(class(*code), 0 | 4 | 5))
    }
}

/// The class of a status; 0 for none.
pub(super) fn class(status: u16) -> usize {
    match usize::from(status / 100) {
        class if class < CLASSES => class,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_statuses_and_their_classes() {
        let mut statuses = StatusCounts::default();
        for status in [404, 200, 429, 404, 999, 100] {
            statuses.count(status);
        }
        assert_eq!(statuses.codes(), [(100, 1), (200, 1), (404, 2), (429, 1), (999, 1)]);
        assert_eq!(statuses.classes(), [1, 1, 1, 0, 3, 0]);
        assert_eq!((statuses.within(&(400..=499)), statuses.within(&(429..=429))), (3, 1));
        let bad: Vec<_> = statuses.bad_codes().collect();
        assert_eq!((statuses.bad(), bad), (4, vec![(404, 2), (429, 1), (999, 1)]));
    }

    #[test]
    fn two_threads_are_added() {
        let [mut one, mut other] = [StatusCounts::default(), StatusCounts::default()];
        one.add(200, 5);
        one.add_class(5, 2);
        other.add(503, 1);
        other.add(200, 1);
        other.add_class(5, 1);
        one.add_all(&other);
        assert_eq!(one.codes(), [(200, 6), (503, 1)]);
        assert_eq!(one.classes(), [0, 0, 6, 0, 0, 4]);
    }
}

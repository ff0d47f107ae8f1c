//! The attempts of one request.

use crate::peers::Peers;

/// A request's attempts in a group: no server is tried twice.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    begun: bool,
    version: u32,
    tries: u32,
    /// By position, backups after the primaries.
    tried: Tried,
    /// The position chosen last.
    last: u32,
    /// How often a hash or a random choice has hit a server that could not be used.
    pub(crate) misses: u32,
    /// The hash after the last choice.
    pub(crate) hash: u64,
    /// How often it has been hashed.
    pub(crate) rehash: u32,
}

impl Attempt {
    /// How many servers are left to try; known after the first choice. With only one server, none
    /// is left, but [`choose`](crate::Group::choose) returns it again if the caller retries after a
    /// kept connection turned out to be closed.
    pub fn tries_left(&self) -> u32 {
        self.tries
    }

    /// Allows one more try, because the last one failed on a kept connection.
    pub fn allow_another(&mut self) {
        self.tries += 1;
    }

    /// Allows one more try, also of the last server: it has not processed the request, which is not
    /// its fault.
    pub fn allow_again(&mut self) {
        self.tries += 1;
        self.tried.remove(self.last as usize);
    }

    /// Whether the group's servers have changed since the last choice.
    pub(crate) fn is_outdated(&self, peers: &Peers) -> bool {
        self.begun && self.version != peers.version
    }

    /// Continues, or starts again if the group's servers have changed.
    pub(crate) fn resume(&mut self, peers: &Peers) {
        if self.begun && !self.is_outdated(peers) {
            return;
        }
        let tries = if self.begun { self.tries.min(peers.tries()) } else { peers.tries() };
        *self = Self { begun: true, version: peers.version, tries, ..Self::default() };
    }

    /// Records that a server was chosen.
    pub(crate) fn given(&mut self, at: usize) {
        self.tried.add(at);
        self.last = at as u32;
        self.tries = self.tries.saturating_sub(1);
    }

    /// Whether the server at this position was chosen before.
    pub(crate) fn has_tried(&self, at: usize) -> bool {
        self.tried.has(at)
    }
}

/// A set of positions; small ones need no allocation.
#[derive(Clone, Debug, Default)]
struct Tried {
    first: u64,
    rest: Vec<u64>,
}

const WORD: usize = u64::BITS as usize;

impl Tried {
    fn add(&mut self, at: usize) {
        let bit = 1 << (at % WORD);
        let Some(word) = (at / WORD).checked_sub(1) else {
            self.first |= bit;
            return;
        };
        if self.rest.len() <= word {
            self.rest.resize(word + 1, 0);
        }
        self.rest[word] |= bit;
    }

    fn remove(&mut self, at: usize) {
        let word = match (at / WORD).checked_sub(1) {
            None => Some(&mut self.first),
            Some(word) => self.rest.get_mut(word),
        };
        word.into_iter().for_each(|word| *word &= !(1 << (at % WORD)));
    }

    fn has(&self, at: usize) -> bool {
        let word = match (at / WORD).checked_sub(1) {
            None => self.first,
            Some(word) => self.rest.get(word).copied().unwrap_or(0),
        };
        word & 1 << (at % WORD) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_beyond_a_word_are_remembered() {
        let mut tried = Tried::default();
        let added = [0, 1, 63, 64, 200];
        added.into_iter().for_each(|at| tried.add(at));
        let found: Vec<usize> = (0..300).filter(|at| tried.has(*at)).collect();
        assert_eq!(found, added);
        for at in [1, 200, 1000] {
            tried.remove(at);
        }
        assert_eq!([0, 1, 64, 200].map(|at| tried.has(at)), [true, false, true, false]);
    }
}

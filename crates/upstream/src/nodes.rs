//! Limits that nodes share: of `N/nodes`, each node enforces its part.
//!
//! The part is rounded down, so that all parts together stay below the limit, but it is at least
//! one: a node that admits nothing serves nobody. Where processes of one master count together,
//! they are one node; where each process counts for itself, each is a node.
//!
//! Deliberately absent: who counts the nodes. The number of the last time holds until another is
//! [set](NodeCount::set), whatever becomes of them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use conf::{Directive, Error, Load, Result, Word};

/// What follows a limit that nodes share.
const SUFFIX: &[u8] = b"/nodes";

/// The nodes that are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveNodes {
    /// Worker processes.
    pub processes: u32,
    /// Their masters: those that count together are one.
    pub masters: u32,
}

/// The number of nodes, for the limits of a subsystem in one configuration.
#[derive(Debug)]
pub struct NodeCount {
    processes: AtomicU32,
    masters: AtomicU32,
    followers: Mutex<Vec<Weak<dyn FollowsNodes>>>,
}

/// What has to apply another number of masters by itself.
pub(crate) trait FollowsNodes: Send + Sync {
    /// The number has changed.
    fn follow(&self);
}

/// A limit as a node enforces it: `N`, or its part of `N/nodes`.
#[derive(Clone, Debug)]
pub struct NodeLimit {
    number: u32,
    nodes: Option<Arc<NodeCount>>,
}

/// The number of nodes while the configuration is read.
#[derive(Default)]
struct NodesBook {
    count: Arc<NodeCount>,
    /// Whether a line says who counts the nodes.
    is_counted: bool,
    /// The error in the first limit that nodes share, if nobody counts them.
    uncounted: Option<Error>,
}

impl LiveNodes {
    /// So many processes, each with a master of its own.
    pub fn alone(nodes: u32) -> Self {
        Self { processes: nodes, masters: nodes }
    }
}

impl Default for NodeCount {
    fn default() -> Self {
        let [processes, masters] = [1, 1].map(AtomicU32::new);
        Self { processes, masters, followers: Mutex::default() }
    }
}

impl NodeCount {
    /// The line `from` says who counts the nodes. The caller sets the number.
    pub fn declare(from: &Directive, load: &mut Load<'_>) -> Result<Arc<Self>> {
        let book = load.own.of::<NodesBook>();
        match std::mem::replace(&mut book.is_counted, true) {
            false => Ok(book.count.clone()),
            true => Err(from.refuse("is duplicate")),
        }
    }

    /// Refuses a limit that nodes share, if nobody counts them. Called after the whole block was
    /// read.
    pub fn check(load: &mut Load<'_>) -> Result<()> {
        let book = load.own.of::<NodesBook>();
        match book.uncounted.take().filter(|_| !book.is_counted) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Sets the number: requests are admitted by it from now on, and those that wait for a larger
    /// part go on. For the control thread, which applies all limits.
    pub fn set(&self, live: LiveNodes) {
        self.processes.store(live.processes, Relaxed);
        if self.masters.swap(live.masters, Relaxed) != live.masters {
            let followers: Vec<_> = self.followers().iter().filter_map(Weak::upgrade).collect();
            followers.iter().for_each(|follower| follower.follow());
        }
    }

    /// Tells the follower of every other number.
    pub(crate) fn tell(&self, follower: Weak<dyn FollowsNodes>) {
        self.followers().push(follower);
    }

    fn followers(&self) -> MutexGuard<'_, Vec<Weak<dyn FollowsNodes>>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeLimit {
    /// Reads the part `text` of a word: `N` or `N/nodes`. `number` reads N.
    pub fn read(
        text: &[u8],
        number: impl FnOnce(&[u8]) -> Result<u32>,
        word: &Word,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<Self> {
        let Some(text) = text.strip_suffix(SUFFIX) else {
            return Ok(Self { number: number(text)?, nodes: None });
        };
        let number = number(text)?;
        let book = load.own.of::<NodesBook>();
        book.uncounted.get_or_insert_with(|| uncounted(word, from));
        Ok(Self { number, nodes: Some(book.count.clone()) })
    }

    /// The limit of a process that counts for itself.
    #[inline]
    pub fn of_process(&self) -> u32 {
        self.part(|nodes| &nodes.processes)
    }

    /// The limit of all processes of a master, which count together.
    pub fn of_master(&self) -> u32 {
        self.part(|nodes| &nodes.masters)
    }

    /// Who has the number of nodes, if they share it.
    pub fn nodes(&self) -> Option<&Arc<NodeCount>> {
        self.nodes.as_ref()
    }

    #[inline]
    fn part(&self, count: fn(&NodeCount) -> &AtomicU32) -> u32 {
        match &self.nodes {
            None => self.number,
            Some(nodes) => (self.number / count(nodes).load(Relaxed).max(1)).max(1),
        }
    }
}

fn uncounted(word: &Word, from: &Directive) -> Error {
    let error = from.error_at(word, format!("nobody counts the nodes of \"{word}\""));
    error.help("\"nodes valkey://HOST;\" beside it names a store that does")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_rounded_down_and_at_least_one() {
        let nodes = Arc::new(NodeCount::default());
        let limit = NodeLimit { number: 7, nodes: Some(nodes.clone()) };
        let plain = NodeLimit { number: 7, nodes: None };
        for (processes, masters, expected) in
            [(1, 1, (7, 7)), (2, 1, (3, 7)), (3, 2, (2, 3)), (7, 7, (1, 1)), (1000, 8, (1, 1))]
        {
            nodes.set(LiveNodes { processes, masters });
            assert_eq!((limit.of_process(), limit.of_master()), expected, "{processes}");
            assert_eq!((plain.of_process(), plain.of_master()), (7, 7));
        }
    }

    #[test]
    fn all_parts_together_never_exceed_the_limit_while_each_node_may_admit_one() {
        for number in 1..200 {
            let nodes = Arc::new(NodeCount::default());
            let limit = NodeLimit { number, nodes: Some(nodes.clone()) };
            for count in 1..=number {
                nodes.set(LiveNodes::alone(count));
                assert!((1..=number).contains(&(limit.of_process() * count)), "{number}/{count}");
            }
        }
    }
}

//! The processors of the machine: which of them are threads of one core, and which belong to one
//! memory node; and choices among them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::server::{allowed_cores, cores};

/// The processors that this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorMap {
    processors: Vec<MappedProcessor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MappedProcessor {
    number: usize,
    /// The first processor of its core, which identifies the core.
    core: usize,
    node: usize,
}

/// A choice of processors; the number is how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessorChoice {
    /// The first ones.
    First(usize),
    /// Each on a core of its own.
    PerCore(usize),
    /// All threads of a core before those of the next.
    Threads(usize),
    /// The first ones of a memory node.
    Node(usize, usize),
}

impl ProcessorMap {
    pub fn of_this_machine() -> Result<Self, String> {
        Ok(Self::read(Path::new("/sys/devices/system"), &allowed_cores()?))
    }

    /// Reads the folder that is /sys/devices/system except in tests. A processor without files has
    /// a core of its own and belongs to node 0.
    fn read(folder: &Path, allowed: &[usize]) -> Self {
        let list = |file: &str| cores(&fs::read_to_string(folder.join(file)).unwrap_or_default());
        let nodes: Vec<(usize, Vec<usize>)> = list("node/online")
            .into_iter()
            .map(|node| (node, list(&format!("node/node{node}/cpulist"))))
            .collect();
        let mapped = |number: &usize| {
            let siblings = list(&format!("cpu/cpu{number}/topology/thread_siblings_list"));
            let node = nodes.iter().find(|(_, members)| members.contains(number));
            MappedProcessor {
                number: *number,
                core: siblings.first().copied().unwrap_or(*number),
                node: node.map_or(0, |(node, _)| *node),
            }
        };
        Self { processors: allowed.iter().map(mapped).collect() }
    }

    /// The number of processors.
    pub fn count(&self) -> usize {
        self.processors.len()
    }

    /// The number of memory nodes with processors.
    pub fn nodes(&self) -> usize {
        self.processors.iter().map(|of| of.node).collect::<BTreeSet<_>>().len()
    }

    /// Whether some core has two processors or more.
    pub fn has_threads(&self) -> bool {
        let cores: BTreeSet<usize> = self.processors.iter().map(|of| of.core).collect();
        cores.len() < self.processors.len()
    }

    /// The numbers of the chosen processors. If there are too few of the kind, others take their
    /// places, and then there may be fewer.
    pub fn choose(&self, choice: ProcessorChoice) -> Vec<usize> {
        let mut all = self.processors.clone();
        // Of two that are equal here, the first one stays first.
        match choice {
            ProcessorChoice::First(_) => {}
            ProcessorChoice::PerCore(_) => {
                all.sort_by_key(|of| self.place_in_core(*of));
            }
            ProcessorChoice::Threads(_) => all.sort_by_key(|of| of.core),
            ProcessorChoice::Node(node, _) => all.sort_by_key(|of| of.node != node),
        }
        all.iter().take(choice.count()).map(|of| of.number).collect()
    }

    /// The map without some processors; the whole map if none would be left.
    #[must_use]
    pub fn without(&self, numbers: &[usize]) -> Self {
        let mut processors = self.processors.clone();
        processors.retain(|of| !numbers.contains(&of.number));
        if processors.is_empty() { self.clone() } else { Self { processors } }
    }

    /// How many processors of the same core come before this one.
    fn place_in_core(&self, one: MappedProcessor) -> usize {
        let before = self.processors.iter().take_while(|of| of.number != one.number);
        before.filter(|of| of.core == one.core).count()
    }
}

impl ProcessorChoice {
    /// Reads `first 4`, `cores 2`, `threads 2` or `node 1 8`.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (kind, numbers) = words.split_first()?;
        let numbers: Option<Vec<usize>> = numbers.iter().map(|word| word.parse().ok()).collect();
        let choice = match (*kind, numbers?.as_slice()) {
            ("first", [count]) => Self::First(*count),
            ("cores", [count]) => Self::PerCore(*count),
            ("threads", [count]) => Self::Threads(*count),
            ("node", [node, count]) => Self::Node(*node, *count),
            _ => return None,
        };
        (choice.count() > 0).then_some(choice)
    }

    /// The number of processors.
    pub fn count(self) -> usize {
        match self {
            Self::First(count) | Self::PerCore(count) => count,
            Self::Threads(count) | Self::Node(_, count) => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of two cores with two threads: 0 and 4 are one core, 2 and 3 belong to node 1.
    fn map() -> ProcessorMap {
        let folder = std::env::temp_dir().join(format!("weir-topology-{}", std::process::id()));
        let write = |file: String, text: &str| {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("node/online".into(), "0-1\n");
        write("node/node0/cpulist".into(), "0-1,4-5\n");
        write("node/node1/cpulist".into(), "2-3,6-7\n");
        for number in 0..8 {
            let first = number % 4;
            let file = format!("cpu/cpu{number}/topology/thread_siblings_list");
            write(file, &format!("{first},{}\n", first + 4));
        }
        let map = ProcessorMap::read(&folder, &[0, 1, 2, 3, 4, 5, 6, 7]);
        fs::remove_dir_all(folder).unwrap();
        map
    }

    #[test]
    fn cores_and_nodes_are_read() {
        let map = map();
        assert_eq!((map.count(), map.nodes(), map.has_threads()), (8, 2, true));
        let unknown = ProcessorMap::read(Path::new("/nowhere"), &[3, 5]);
        assert_eq!((unknown.count(), unknown.nodes(), unknown.has_threads()), (2, 1, false));
    }

    #[test]
    fn processors_are_chosen_by_core_and_node() {
        let chosen = |text: &str| map().choose(ProcessorChoice::parse(text).unwrap());
        assert_eq!(chosen("first 3"), [0, 1, 2]);
        assert_eq!(chosen("threads 3"), [0, 4, 1]);
        assert_eq!(chosen("cores 5"), [0, 1, 2, 3, 4]);
        assert_eq!(chosen("node 1 2"), [2, 3]);
        // Others take the places of those that do not exist.
        assert_eq!(chosen("node 1 5"), [2, 3, 6, 7, 0]);
        assert_eq!(chosen("first 9").len(), 8);
    }

    #[test]
    fn what_is_left_has_at_least_one_processor() {
        assert_eq!(map().without(&[0, 1, 2, 3]).choose(ProcessorChoice::First(9)), [4, 5, 6, 7]);
        let all: Vec<usize> = (0..8).collect();
        assert_eq!(map().without(&all), map());
    }

    #[test]
    fn other_choices_are_refused() {
        for text in ["", "first", "first 0", "first x", "node 1", "cores 1 2", "all 3"] {
            assert_eq!(ProcessorChoice::parse(text), None, "{text}");
        }
    }
}

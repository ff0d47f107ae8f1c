//! The machine that a study is meant for.

use processes::topology::ProcessorMap;
use serde::{Deserialize, Serialize};

/// What a machine must have to answer a study's question.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyNeeds {
    /// The least number of processors for server, generator and backends together.
    #[serde(default)]
    pub(crate) processors: usize,
    /// The least number of memory nodes (NUMA).
    #[serde(default)]
    pub(crate) nodes: usize,
    /// Whether cores must have two threads.
    #[serde(default)]
    pub(crate) threads: bool,
}

impl StudyNeeds {
    /// What the machine lacks, in words; `None` if nothing.
    pub(crate) fn lacks(self, machine: &ProcessorMap) -> Option<String> {
        let (processors, nodes) = (machine.count(), machine.nodes());
        let mut lacking = Vec::new();
        if processors < self.processors {
            lacking.push(format!("{} processors and not {processors}", self.processors));
        }
        if nodes < self.nodes {
            lacking.push(format!("{} memory nodes and not {nodes}", self.nodes));
        }
        if self.threads && !machine.has_threads() {
            lacking.push("cores with two threads".to_owned());
        }
        match lacking.is_empty() {
            true => None,
            false => Some(format!("the study needs a machine with {}", lacking.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_lacks_is_named() {
        let machine = ProcessorMap::of_this_machine().unwrap();
        let (processors, nodes) = (machine.count(), machine.nodes());
        let needs = StudyNeeds { processors, nodes, threads: machine.has_threads() };
        assert_eq!(needs.lacks(&machine), None);
        let more = StudyNeeds { processors: processors + 1, nodes: nodes + 1, threads: false };
        let expected = format!(
            "the study needs a machine with {} processors and not {processors}, {} memory nodes \
             and not {nodes}",
            processors + 1,
            nodes + 1
        );
        assert_eq!(more.lacks(&machine), Some(expected));
    }
}

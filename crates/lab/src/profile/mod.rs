//! Why one row costs more than another: where the CPU time of its server goes, and what it waits
//! for, seen by perf(1) in extra turns.
//!
//! The samples say only how the time is divided; how much there is comes from the measured turns.
//! So every cost is a share of the median CPU time per request that the tables show.

mod cost;
mod counts;
mod functions;
mod locks;
mod perf;
mod record;
mod stacks;
mod take;
mod tree;

pub(crate) use cost::{CostDifference, ProfileScale};
pub(crate) use counts::COUNTED;
pub(crate) use functions::{FunctionCost, differing};
pub(crate) use perf::{PERF, PerfProcess};
pub(crate) use record::{ProfileRecord, ProfiledFunction};
pub(crate) use take::{check, take};
pub(crate) use tree::{FrameNode, FrameTree};

/// What the fuzz target of perf's output calls.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod parsers {
    pub(crate) use super::counts::read as counts;
    pub(crate) use super::locks::read as locks;
    pub(crate) use super::stacks::read as stacks;
}

//! A profile, as the record keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What perf(1) saw of one row on one program.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct ProfileRecord {
    pub(crate) program: usize,
    pub(crate) row: usize,
    /// The event that took the samples: `cycles`, or `cpu-clock` without hardware counters.
    pub(crate) event: String,
    pub(crate) functions: Vec<ProfiledFunction>,
    pub(crate) stacks: Vec<ProfiledStack>,
    /// Events per request, by name.
    pub(crate) per_request: BTreeMap<String, f64>,
    /// The names of the events that this machine cannot count.
    pub(crate) missing: Vec<String>,
    /// Why there are no samples; `None` if there are.
    #[serde(default)]
    pub(crate) failure: Option<String>,
}

/// A function of a program, a library or the kernel.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct ProfiledFunction {
    pub(crate) name: String,
    /// The name of its file, or [`KERNEL`].
    pub(crate) module: String,
}

/// The module of the kernel's functions.
pub(super) const KERNEL: &str = "kernel";

/// A stack of calls, and how often it was seen.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct ProfiledStack {
    /// Indices of functions; each calls the next.
    pub(crate) frames: Vec<usize>,
    pub(crate) samples: u64,
}

impl ProfileRecord {
    pub(crate) fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.samples).fold(0, u64::saturating_add)
    }

    /// The functions of a stack from its root on.
    pub(super) fn frames<'r>(
        &'r self,
        stack: &'r ProfiledStack,
    ) -> impl DoubleEndedIterator<Item = &'r ProfiledFunction> {
        stack.frames.iter().filter_map(|index| self.functions.get(*index))
    }
}

impl ProfiledFunction {
    pub(crate) fn is_kernel(&self) -> bool {
        self.module == KERNEL
    }
}

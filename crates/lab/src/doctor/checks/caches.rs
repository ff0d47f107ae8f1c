//! Caches of responses that mix up clients.

use super::{ExaminedConfig, FindingList, MachineLimits};
use crate::doctor::caches::cache_problems;

/// Caches that give clients what was meant for others.
pub(super) fn mixed_up(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    for problem in cache_problems(conf.root()) {
        findings.add_at(&problem.lines, problem.what, problem.why, problem.fix);
    }
}

//! Certificates that clients refuse or will soon refuse.

use super::{ExaminedConfig, FindingList, MachineLimits};
use crate::doctor::certificates::certificate_problems;

/// Certificates that expire, or have none of their server's names.
pub(super) fn refused(
    machine: &MachineLimits,
    conf: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    let Some(now) = machine.seconds_since_1970 else { return };
    for problem in certificate_problems(conf.root(), &conf.certificates, now) {
        findings.add_at(&problem.lines, problem.what, problem.why, problem.fix);
    }
}

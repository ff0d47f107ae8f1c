//! The backends of a rule: which groups its requests go to, how, and in which shares.

use serde_json::Value;

use super::attach::RouteFaults;
use super::filters::Filters;
use super::targets::{self, BackendTarget, BackendUser};
use crate::plan::object::{self, list};
use crate::plan::planner::Planner;

#[derive(Clone, Debug)]
pub(super) struct Backend {
    pub(super) weight: u64,
    /// `None`: its share of requests is answered with an error.
    pub(super) target: Option<BackendTarget>,
    pub(super) filters: Filters,
}

const WEIGHT_MAX: i64 = 1_000_000;

pub(super) fn read(
    planner: &mut Planner<'_>,
    user: BackendUser<'_>,
    rule: &Value,
    faults: &mut RouteFaults,
) -> Vec<Backend> {
    let mut backends = Vec::new();
    for reference in list(rule, "/backendRefs") {
        let weight = object::number(reference, "/weight").unwrap_or(1).clamp(0, WEIGHT_MAX);
        let mut target = match targets::target(planner, user, reference) {
            Ok(target) => Some(target),
            Err(fault) => {
                faults.unresolved.push(fault);
                None
            }
        };
        let filters = match Filters::read(planner, user, list(reference, "/filters"), faults) {
            Ok(filters) if filters.is_for_backend() => filters,
            Ok(_) => {
                let message = "a filter of a backend is not supported there".to_owned();
                faults.unresolved.push(("UnsupportedValue", message));
                target = None;
                Filters::default()
            }
            Err(why) => {
                faults.unresolved.push(("UnsupportedValue", why));
                target = None;
                Filters::default()
            }
        };
        backends.push(Backend { weight: weight as u64, target, filters });
    }
    backends
}

//! GatewayClasses: those with our controller's name are ours.

use std::collections::BTreeSet;

use serde_json::json;

use crate::ResourceKind;
use crate::plan::object::{self, text};
use crate::plan::planner::Planner;
use crate::plan::status::{self, StatusCondition};

/// The names of our classes.
pub(super) fn plan(planner: &mut Planner<'_>) -> BTreeSet<String> {
    let mut classes = BTreeSet::new();
    for (key, class) in planner.all(ResourceKind::GatewayClass) {
        if text(class, "/spec/controllerName") != Some(&planner.settings.controller_name) {
            continue;
        }
        classes.insert(key.name.clone());
        let verdicts = [StatusCondition::holds("Accepted", "Accepted")];
        let old = object::list(class, "/status/conditions");
        let generation = object::generation(class);
        let conditions = status::conditions(old, &verdicts, generation, &planner.settings.now);
        let fields = vec![("conditions", json!(conditions))];
        planner.statuses.extend(status::update(ResourceKind::GatewayClass, key, class, fields));
    }
    classes
}

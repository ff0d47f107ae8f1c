//! Conditions in the status of objects.

use serde_json::{Map, Value, json};

use super::object;
use crate::plan::outcome::StatusUpdate;
use crate::{ResourceKey, ResourceKind};

/// One condition, without what follows from the object and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusCondition {
    pub(crate) kind: &'static str,
    pub(crate) is_true: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

const MESSAGE_LENGTH_MAX: usize = 4096;

impl StatusCondition {
    pub(crate) fn holds(kind: &'static str, reason: &'static str) -> Self {
        Self { kind, is_true: true, reason, message: String::new() }
    }

    pub(crate) fn fails(
        kind: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, is_true: false, reason, message: message.into() }
    }

    fn status(&self) -> &'static str {
        if self.is_true { "True" } else { "False" }
    }
}

/// The conditions as the API has them. One whose status is as before keeps the time of its last
/// transition; conditions of other kinds stay.
pub(crate) fn conditions(
    old: &[Value],
    verdicts: &[StatusCondition],
    generation: i64,
    now: &str,
) -> Vec<Value> {
    let is_other = |one: &&Value| {
        let kind = object::text(one, "/type").unwrap_or_default();
        verdicts.iter().all(|verdict| verdict.kind != kind)
    };
    let mut all: Vec<Value> = old.iter().filter(is_other).cloned().collect();
    all.extend(verdicts.iter().map(|verdict| condition(old, verdict, generation, now)));
    all
}

fn condition(old: &[Value], verdict: &StatusCondition, generation: i64, now: &str) -> Value {
    let is_same = |one: &&Value| {
        one["type"].as_str() == Some(verdict.kind)
            && one["status"].as_str() == Some(verdict.status())
    };
    let before = old.iter().find(is_same).and_then(|one| object::text(one, "/lastTransitionTime"));
    let message: String = verdict.message.chars().take(MESSAGE_LENGTH_MAX).collect();
    json!({
        "type": verdict.kind,
        "status": verdict.status(),
        "reason": verdict.reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": before.unwrap_or(now),
    })
}

/// The status with these fields instead of those it has; nothing if that changes nothing.
pub(crate) fn update(
    kind: ResourceKind,
    key: &ResourceKey,
    object: &Value,
    fields: Vec<(&str, Value)>,
) -> Option<StatusUpdate> {
    let old = object.get("status").cloned().unwrap_or(Value::Null);
    let mut status = match &old {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    for (name, value) in fields {
        status.insert(name.to_owned(), value);
    }
    let status = Value::Object(status);
    (status != old).then(|| StatusUpdate { kind, key: key.clone(), status })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_transition_is_kept_while_the_status_stays() {
        let old = conditions(&[], &[StatusCondition::holds("Accepted", "Accepted")], 1, "then");
        let same = conditions(&old, &[StatusCondition::holds("Accepted", "Other")], 2, "now");
        assert_eq!(same[0]["lastTransitionTime"], "then");
        assert_eq!(
            (&same[0]["reason"], &same[0]["observedGeneration"]),
            (&json!("Other"), &json!(2))
        );
        let other = conditions(&old, &[StatusCondition::fails("Accepted", "Bad", "why")], 2, "now");
        assert_eq!(other[0]["lastTransitionTime"], "now");
    }

    #[test]
    fn an_unchanged_status_is_no_update() {
        let object = json!({"status": {"a": 1, "b": 2}});
        let key = object::key("", "x");
        assert_eq!(update(ResourceKind::Gateway, &key, &object, vec![("a", json!(1))]), None);
        let changed = update(ResourceKind::Gateway, &key, &object, vec![("a", json!(3))]).unwrap();
        assert_eq!(changed.status, json!({"a": 3, "b": 2}));
    }
}

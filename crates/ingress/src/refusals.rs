//! The objects that the server refuses, which plans leave out until they change.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Objects, ResourceRef};

/// The most objects that are left out: more of them are a fault of another kind.
const REFUSED_MAX: usize = 64;
/// When an object is tried again that has not changed: what it refers to may have.
const AGAIN: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(crate) struct Refusals(BTreeMap<ResourceRef, ObjectRefusal>);

struct ObjectRefusal {
    why: String,
    /// As it was when it was refused.
    object: Value,
    since: Instant,
}

impl Refusals {
    /// Adds objects. Returns whether another plan is worth it.
    pub(crate) fn add(
        &mut self,
        refused: &BTreeMap<ResourceRef, String>,
        objects: &Objects,
    ) -> bool {
        let new = refused.iter().filter(|(one, _)| !self.0.contains_key(one));
        let new: Vec<_> = new.collect();
        if new.is_empty() || self.0.len() + new.len() > REFUSED_MAX {
            return false;
        }
        for (one, why) in new {
            // One that has gone meanwhile is forgotten at once.
            let object = objects.get(one.0, &one.1).cloned().unwrap_or_default();
            let refusal = ObjectRefusal { why: why.clone(), object, since: Instant::now() };
            self.0.insert(one.clone(), refusal);
        }
        true
    }

    /// Forgets objects that have changed, and those whose time is over. Returns whether there were
    /// any.
    pub(crate) fn forget(&mut self, objects: &Objects, now: Instant) -> bool {
        let before = self.0.len();
        self.0.retain(|(kind, key), refusal| {
            let object = objects.get(*kind, key);
            object.is_some_and(|object| is_same(object, &refusal.object))
                && now.duration_since(refusal.since) < AGAIN
        });
        self.0.len() < before
    }

    /// The objects, and why they are refused.
    pub(crate) fn all(&self) -> BTreeMap<ResourceRef, String> {
        self.0.iter().map(|(one, refusal)| (one.clone(), refusal.why.clone())).collect()
    }
}

/// Whether an object says the same; its status does not count.
fn is_same(one: &Value, other: &Value) -> bool {
    let parts = ["/spec", "/metadata/annotations", "/metadata/uid"];
    parts.iter().all(|part| one.pointer(part) == other.pointer(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ResourceKey, ResourceKind};

    #[test]
    fn an_object_is_left_out_until_it_changes_or_for_a_while() {
        let key = ResourceKey { namespace: "a".to_owned(), name: "b".to_owned() };
        let one = BTreeMap::from([((ResourceKind::Ingress, key.clone()), "why".to_owned())]);
        let mut objects = Objects::default();
        let put = |objects: &mut Objects, object| {
            objects.insert(ResourceKind::Ingress, key.clone(), object);
        };
        put(&mut objects, json!({"spec": 1}));
        let mut refusals = Refusals::default();
        assert!(refusals.add(&one, &objects));
        assert!(!refusals.add(&one, &objects), "it is left out already");
        put(&mut objects, json!({"spec": 1, "status": 2}));
        assert!(!refusals.forget(&objects, Instant::now()));
        put(&mut objects, json!({"spec": 2}));
        assert!(refusals.forget(&objects, Instant::now()));
        assert!(refusals.all().is_empty());
        assert!(refusals.add(&one, &objects));
        assert!(refusals.forget(&objects, Instant::now() + AGAIN));
    }

    #[test]
    fn not_everything_is_left_out() {
        let object = |number| {
            let name = format!("r{number}");
            let key = ResourceKey { namespace: "a".to_owned(), name };
            ((ResourceKind::Ingress, key), String::new())
        };
        let all = (0..=REFUSED_MAX).map(object).collect();
        assert!(!Refusals::default().add(&all, &Objects::default()));
    }
}

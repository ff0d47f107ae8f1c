//! What the cluster says: the objects of the kinds that matter, as the API server sent them.

use std::collections::BTreeMap;

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    GatewayClass,
    Gateway,
    HttpRoute,
    GrpcRoute,
    TlsRoute,
    TcpRoute,
    ReferenceGrant,
    BackendTlsPolicy,
    IngressClass,
    Ingress,
    Service,
    EndpointSlice,
    Secret,
    ConfigMap,
    Namespace,
}

/// The namespace is empty for kinds that belong to none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceKey {
    pub namespace: String,
    pub name: String,
}

/// An object of any kind.
pub type ResourceRef = (ResourceKind, ResourceKey);

#[derive(Clone, Debug, Default)]
pub struct Objects {
    by_kind: BTreeMap<ResourceKind, BTreeMap<ResourceKey, Value>>,
}

impl Objects {
    pub fn insert(&mut self, kind: ResourceKind, key: ResourceKey, object: Value) {
        self.by_kind.entry(kind).or_default().insert(key, object);
    }

    pub fn remove(&mut self, kind: ResourceKind, key: &ResourceKey) {
        if let Some(objects) = self.by_kind.get_mut(&kind) {
            objects.remove(key);
        }
    }

    pub fn clear(&mut self, kind: ResourceKind) {
        self.by_kind.remove(&kind);
    }

    pub fn get(&self, kind: ResourceKind, key: &ResourceKey) -> Option<&Value> {
        self.by_kind.get(&kind)?.get(key)
    }

    /// In the order of their keys.
    pub fn of(&self, kind: ResourceKind) -> impl Iterator<Item = (&ResourceKey, &Value)> {
        self.by_kind.get(&kind).into_iter().flatten()
    }
}

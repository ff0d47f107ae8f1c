//! The Service that a rule refers to: the group for it, and how it is spoken to.

use serde_json::Value;

use super::policies::{self, ServiceTls};
use crate::ResourceKey;
use crate::plan::names::GATEWAY_GROUP;
use crate::plan::object::{self, key, text};
use crate::plan::planner::{Planner, Referrer, ServiceFault};

/// Whose backends: a route of this kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackendUser<'r> {
    pub(super) kind: &'static str,
    pub(super) own: &'r ResourceKey,
    pub(super) is_stream: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BackendTarget {
    pub(super) group: String,
    pub(super) is_h2c: bool,
    pub(super) tls: Option<ServiceTls>,
}

pub(super) fn target(
    planner: &mut Planner<'_>,
    user: BackendUser<'_>,
    reference: &Value,
) -> Result<BackendTarget, (&'static str, String)> {
    let (group, kind) = (
        text(reference, "/group").unwrap_or_default(),
        text(reference, "/kind").unwrap_or("Service"),
    );
    if !group.is_empty() || kind != "Service" {
        return Err(("InvalidKind", format!("a backend of the kind {kind} is not supported")));
    }
    let name = text(reference, "/name").unwrap_or_default();
    let namespace = text(reference, "/namespace").unwrap_or(&user.own.namespace);
    let from = Referrer { group: GATEWAY_GROUP, kind: user.kind, namespace: &user.own.namespace };
    if !planner.may_refer(from, "Service", &key(namespace, name)) {
        let message = format!("no ReferenceGrant allows the Service {namespace}/{name}");
        return Err(("RefNotPermitted", message));
    }
    let number = object::port(reference, "/port");
    let is_it = |one: &Value| number.is_some() && object::port(one, "/port") == number;
    let port = planner.service_port(namespace, name, is_it).map_err(|fault| match fault {
        ServiceFault::Missing(_) => ("BackendNotFound", fault.to_string()),
        ServiceFault::External(_) => ("UnsupportedValue", fault.to_string()),
    })?;
    let is_h2c = match port.app_protocol.as_str() {
        "kubernetes.io/h2c" => true,
        "kubernetes.io/wss" if !user.is_stream => {
            let message = "the application protocol kubernetes.io/wss is not supported".to_owned();
            return Err(("UnsupportedProtocol", message));
        }
        _ => false,
    };
    let group = planner.group(&port, user.is_stream, "", &[]);
    let tls = if user.is_stream { None } else { policies::backend_tls(planner, &port)? };
    Ok(BackendTarget { group, is_h2c, tls })
}

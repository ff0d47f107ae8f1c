//! The settings of a plan, and its result.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::Value;

use super::nginx_conf::ServiceGroupName;
use crate::{ResourceKey, ResourceKind, ResourceRef};

/// The options that affect the plan.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `spec.controllerName` of the GatewayClasses, and `spec.controller` of the IngressClasses,
    /// that are this controller's.
    pub controller_name: String,
    /// Whether annotations may contain directives of nginx.conf.
    pub allow_snippets: bool,
    /// Where clients reach the servers; written into `status` (addresses or host names).
    pub addresses: Vec<String>,
    /// Addresses of the machine that Gateways have for themselves; without any, they share all.
    pub gateway_addresses: Vec<IpAddr>,
    /// Networks of proxies in front, which tell the client's address and scheme.
    pub trusted_proxies: Vec<String>,
    /// The folder of the files, as the server sees it: names in nginx.conf begin with it.
    pub folder: String,
    /// The control socket that nginx.conf declares, and the lists of servers are sent to.
    pub control_socket: String,
    pub faults: PlanFaults,
    /// What statuses give as the time of a transition (RFC 3339).
    pub now: String,
}

/// What the server made of earlier plans.
#[derive(Clone, Debug, Default)]
pub struct PlanFaults {
    /// The objects to leave out, and why the server refuses them.
    pub refused: BTreeMap<ResourceRef, String>,
    /// Why the server does not use the last plan.
    pub last: Option<String>,
}

/// A port of one address, or of all addresses that no other server of that port names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlannedListen {
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
}

/// The new `status` of an object, which differs from the one it has.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusUpdate {
    pub kind: ResourceKind,
    pub key: ResourceKey,
    pub status: Value,
}

/// Files by their path within the folder.
pub type PlannedFiles = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// nginx.conf, one file per route, certificates and keys. A change of one of them needs a
    /// reload.
    pub files: PlannedFiles,
    /// The servers of each group that nginx.conf declares (`app`, `stream/db`), as the arguments
    /// of `server`: `10.0.0.1:8080 weight=2`. A change needs no reload.
    pub groups: BTreeMap<String, Vec<String>>,
    /// What the groups are of.
    pub(crate) services: BTreeSet<ServiceGroupName>,
    pub statuses: Vec<StatusUpdate>,
    /// Where the listeners of Gateways listen.
    pub(crate) listens: BTreeSet<(PlannedListen, ResourceKey)>,
}

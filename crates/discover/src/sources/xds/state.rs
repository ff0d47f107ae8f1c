//! What the responses of a control plane add up to, and how each is answered: a machine without a
//! connection.
//!
//! ```text
//! begin -----> CDS request
//! response --> ACK, or NACK with the reason: then nothing of it is taken
//!              EDS request, when other clusters need endpoints than before
//! ```
//!
//! Clusters and endpoints outlive streams. A stream of the state of the world begins without a
//! version, so that the control plane tells everything again, whoever it is now; one of changes
//! begins with the versions of all that is known.

use std::collections::{BTreeMap, BTreeSet};

use wire::xds::{
    ASSIGNMENT, CLUSTER, DeltaDiscoveryRequest, DiscoveryRequest, DiscoveryResponse, XdsAssignment,
    XdsCluster, XdsClusterKind, XdsResource,
};

use super::notes::XdsNotes;
use super::servers::servers;
use crate::server_entry::ServerList;
use crate::wanted::{GROUPS_MAX, GroupKey, WantedGroups};

/// The longest reason in a NACK, and in the log.
const REASON_BYTES_MAX: usize = 1000;

/// Which clusters become which groups; without any, all become groups of their names.
pub type ClusterGroups = BTreeMap<String, GroupKey>;

pub(super) struct XdsState {
    is_delta: bool,
    groups: ClusterGroups,
    /// The encoded node.
    node: Vec<u8>,
    clusters: BTreeMap<String, KnownCluster>,
    endpoints: BTreeMap<String, KnownEndpoints>,
    cds: XdsSubscription,
    eds: XdsSubscription,
    pub(super) notes: XdsNotes,
}

#[derive(Debug)]
struct KnownCluster {
    version: String,
    /// `None`: it is nobody's.
    group: Option<GroupKey>,
    servers: ClusterServers,
}

/// Where the servers of a cluster come from.
#[derive(Clone, Debug)]
enum ClusterServers {
    /// From endpoints with this name.
    Eds(String),
    Fixed(ServerList),
    /// It has no list.
    None,
}

#[derive(Debug)]
struct KnownEndpoints {
    /// Empty if they are gone.
    version: String,
    list: ServerList,
}

/// A type of resources in the current stream.
#[derive(Debug, Default)]
struct XdsSubscription {
    /// The version that was taken last, of the state of the world.
    version: String,
    nonce: String,
    is_answered: bool,
    /// Whether the last response was refused.
    is_rejected: bool,
    /// The names that were asked for.
    names: BTreeSet<String>,
}

/// What a response means.
#[derive(Debug, PartialEq)]
pub(super) enum XdsTaken {
    Lists,
    /// It was refused, for this reason.
    Rejected(String),
}

impl XdsState {
    pub(super) fn new(is_delta: bool, groups: ClusterGroups, node: Vec<u8>) -> Self {
        Self {
            is_delta,
            groups,
            node,
            clusters: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            cds: XdsSubscription::default(),
            eds: XdsSubscription::default(),
            notes: XdsNotes::default(),
        }
    }

    /// Begins a stream; returns the requests.
    pub(super) fn begin(&mut self) -> Vec<Vec<u8>> {
        (self.cds, self.eds) = Default::default();
        let mut out = Vec::new();
        if self.is_delta {
            let names: Vec<&str> = self.groups.keys().map(String::as_str).collect();
            let request = DeltaDiscoveryRequest {
                node: Some(&self.node),
                type_url: CLUSTER,
                subscribe: &names,
                ..DeltaDiscoveryRequest::default()
            };
            let known = self.clusters.iter().map(|(name, known)| (&**name, &*known.version));
            request.write(known, &mut out);
        } else {
            let node = Some(&*self.node);
            let request =
                DiscoveryRequest { node, type_url: CLUSTER, ..DiscoveryRequest::default() };
            request.write([], &mut out);
        }
        let mut requests = vec![out];
        if self.is_delta {
            requests.extend(self.ask_for_endpoints());
        }
        requests
    }

    /// Whether the control plane has said in this stream which clusters there are.
    pub(super) fn has_clusters(&self) -> bool {
        self.cds.is_answered
    }

    /// Whether the newest response of a type was refused.
    pub(super) fn is_rejecting(&self) -> bool {
        self.cds.is_rejected || self.eds.is_rejected
    }

    /// The names of endpoints that are not known.
    pub(super) fn missing(&self) -> impl Iterator<Item = &str> {
        self.eds.names.iter().map(String::as_str).filter(|name| !self.endpoints.contains_key(*name))
    }

    /// The lists as far as they are known.
    pub(super) fn wanted(&self) -> WantedGroups {
        let lists = self.clusters.values().filter_map(|known| {
            let list = match &known.servers {
                ClusterServers::None => return None,
                ClusterServers::Fixed(list) => list.clone(),
                ClusterServers::Eds(name) => self
                    .endpoints
                    .get(name)
                    .map_or_else(ServerList::unknown, |known| known.list.clone()),
            };
            Some((known.group.clone()?, list))
        });
        lists.collect()
    }

    /// Takes a response; the requests that answer it are added to `out`. An error is the end of
    /// the stream.
    pub(super) fn take(
        &mut self,
        message: &[u8],
        out: &mut Vec<Vec<u8>>,
    ) -> Result<XdsTaken, String> {
        let response = match self.is_delta {
            true => DiscoveryResponse::read_delta(message),
            false => DiscoveryResponse::read(message),
        };
        let response = response.map_err(|why| why.to_string())?;
        let taken = match response.type_url {
            CLUSTER => self.take_clusters(&response),
            ASSIGNMENT => self.take_endpoints(&response),
            other => return Err(format!("a response is of the unknown type \"{other}\"")),
        };
        let error = taken.err().map(|why| cut(&why));
        let subscription = self.subscription(response.type_url);
        response.nonce.clone_into(&mut subscription.nonce);
        subscription.is_rejected = error.is_some();
        if error.is_none() {
            response.version.clone_into(&mut subscription.version);
            subscription.is_answered = true;
        }
        let wants_others = response.type_url == CLUSTER && self.names_wanted() != self.eds.names;
        let is_of_none = response.type_url == ASSIGNMENT && self.eds.names.is_empty();
        if !is_of_none {
            out.push(self.answer(response.type_url, error.as_deref()));
        }
        if wants_others {
            out.extend(self.ask_for_endpoints());
        }
        Ok(error.map_or(XdsTaken::Lists, XdsTaken::Rejected))
    }

    fn subscription(&mut self, type_url: &str) -> &mut XdsSubscription {
        if type_url == CLUSTER { &mut self.cds } else { &mut self.eds }
    }

    /// An ACK or a NACK.
    fn answer(&mut self, type_url: &str, error: Option<&str>) -> Vec<u8> {
        let is_delta = self.is_delta;
        let XdsSubscription { version, nonce, names, .. } = self.subscription(type_url);
        let mut out = Vec::new();
        if is_delta {
            let request = DeltaDiscoveryRequest {
                type_url,
                nonce,
                error,
                ..DeltaDiscoveryRequest::default()
            };
            request.write([], &mut out);
        } else {
            let request = DiscoveryRequest { node: None, type_url, version, nonce, error };
            request.write(names.iter().map(String::as_str), &mut out);
        }
        out
    }

    /// The names of endpoints that clusters need.
    fn names_wanted(&self) -> BTreeSet<String> {
        let names = self.clusters.values().filter_map(|known| match &known.servers {
            // The state of the world is asked for as Envoy does, because some control planes do
            // not answer who wants some endpoints of a snapshot alone.
            ClusterServers::Eds(name) if known.group.is_some() || !self.is_delta => {
                Some(name.clone())
            }
            _ => None,
        });
        names.collect()
    }

    /// Asks for the endpoints that clusters need now, if that may be asked.
    fn ask_for_endpoints(&mut self) -> Option<Vec<u8>> {
        let wanted = self.names_wanted();
        let before = std::mem::replace(&mut self.eds.names, wanted);
        let names = &self.eds.names;
        self.endpoints.retain(|name, _| names.contains(name));
        let mut out = Vec::new();
        if self.is_delta {
            let subscribe: Vec<&str> = names.difference(&before).map(String::as_str).collect();
            let unsubscribe: Vec<&str> = before.difference(names).map(String::as_str).collect();
            let request = DeltaDiscoveryRequest {
                type_url: ASSIGNMENT,
                subscribe: &subscribe,
                unsubscribe: &unsubscribe,
                ..DeltaDiscoveryRequest::default()
            };
            let known = subscribe.iter().filter_map(|name| {
                let version = &*self.endpoints.get(*name)?.version;
                (!version.is_empty()).then_some((*name, version))
            });
            request.write(known, &mut out);
            return (!subscribe.is_empty() || !unsubscribe.is_empty()).then_some(out);
        }
        // Without names it would be a request for all.
        (!names.is_empty()).then(|| self.answer(ASSIGNMENT, None))
    }

    fn take_clusters(&mut self, response: &DiscoveryResponse<'_>) -> Result<(), String> {
        let mut changed = BTreeMap::new();
        for resource in &response.resources {
            let Some(message) = of_type(resource, CLUSTER)? else { continue };
            let cluster = XdsCluster::read(message).map_err(|why| format!("CDS: {why}"))?;
            let told = |why: String| format!("cluster {}: {why}", cluster.name);
            let known = self.known_cluster(&cluster, resource.version).map_err(told)?;
            if changed.insert(cluster.name.to_owned(), known).is_some() {
                return Err(format!("cluster {} is there twice", cluster.name));
            }
        }
        // Names without resources say that those are still there, and nothing of the others.
        let says_all = !self.is_delta && response.resources.iter().all(|one| one.message.is_some());
        let is_new = |name: &&String| says_all || !self.clusters.contains_key(*name);
        let before = if says_all { 0 } else { self.clusters.len() };
        if before + changed.keys().filter(is_new).count() > GROUPS_MAX {
            return Err(format!("more than {GROUPS_MAX} clusters"));
        }
        if says_all {
            self.clusters.clear();
        }
        response.removed.iter().for_each(|name| _ = self.clusters.remove(*name));
        self.clusters.extend(changed);
        Ok(())
    }

    fn known_cluster(
        &mut self,
        cluster: &XdsCluster<'_>,
        version: &str,
    ) -> Result<KnownCluster, String> {
        let group = match self.groups.is_empty() {
            true => Some(GroupKey::parse(cluster.name)?),
            false => self.groups.get(cluster.name).cloned(),
        };
        let servers = match (cluster.kind, &cluster.assignment) {
            (XdsClusterKind::Eds, _) => ClusterServers::Eds(cluster.endpoints_name().to_owned()),
            (XdsClusterKind::Other(_), _) => ClusterServers::None,
            _ if group.is_none() => ClusterServers::None,
            (_, None) => ClusterServers::Fixed(ServerList::empty()),
            (kind, Some(assignment)) => {
                let allows_names = kind == XdsClusterKind::Dns;
                ClusterServers::Fixed(servers(assignment, allows_names, &mut self.notes)?)
            }
        };
        if group.is_some() {
            if let XdsClusterKind::Other(what) = cluster.kind {
                self.notes.note(what, cluster.name);
            }
            cluster.unread.iter().for_each(|setting| self.notes.note(setting, cluster.name));
        }
        Ok(KnownCluster { version: version.to_owned(), group, servers })
    }

    fn take_endpoints(&mut self, response: &DiscoveryResponse<'_>) -> Result<(), String> {
        let mut changed = BTreeMap::new();
        for resource in &response.resources {
            let Some(message) = of_type(resource, ASSIGNMENT)? else { continue };
            let told = |why: &dyn std::fmt::Display| format!("endpoints {}: {why}", resource.name);
            let assignment = XdsAssignment::read(message).map_err(|why| told(&why))?;
            let list = servers(&assignment, false, &mut self.notes)
                .map_err(|why| format!("endpoints of {}: {why}", assignment.name))?;
            let known = KnownEndpoints { version: resource.version.to_owned(), list };
            if changed.insert(assignment.name.to_owned(), known).is_some() {
                return Err(format!("endpoints of {} are there twice", assignment.name));
            }
        }
        for name in &response.removed {
            let (version, list) = (String::new(), ServerList::empty());
            changed.entry((*name).to_owned()).or_insert(KnownEndpoints { version, list });
        }
        changed.retain(|name, _| self.eds.names.contains(name));
        self.endpoints.extend(changed);
        Ok(())
    }
}

/// The message of a resource; `None`: it is as before.
fn of_type<'a>(resource: &XdsResource<'a>, type_url: &str) -> Result<Option<&'a [u8]>, String> {
    match resource.message {
        Some(_) if resource.type_url != type_url => {
            Err(format!("a resource is of the type \"{}\"", resource.type_url))
        }
        message => Ok(message),
    }
}

/// A reason of bounded length.
fn cut(why: &str) -> String {
    let end = (0..=REASON_BYTES_MAX.min(why.len())).rev().find(|at| why.is_char_boundary(*at));
    why[..end.unwrap_or_default()].to_owned()
}

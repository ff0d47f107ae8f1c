//! xDS, as far as lists of servers need it: the messages of an aggregated stream (ADS), in both of
//! its variants, and those of clusters (CDS) and of their endpoints (EDS), version 3.
//!
//! Deliberately absent: what a client does with them, and everything of clusters that says how
//! requests are sent. A message within another that occurs twice replaces the one before instead of
//! being merged with it: no writer splits messages.

mod assignment;
mod cluster;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod node;
mod request;
mod response;
#[cfg(test)]
mod tests;

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

pub use assignment::{XdsAddress, XdsAssignment, XdsEndpoint, XdsHealth, XdsLocality};
pub use cluster::{XdsCluster, XdsClusterKind};
pub use node::XdsNode;
pub use request::{DeltaDiscoveryRequest, DiscoveryRequest};
pub use response::{DiscoveryResponse, XdsResource};

use crate::protobuf::InvalidMessage;

/// The calls: every response has all resources of a type (the state of the world), or what changed.
pub const STREAM_PATH: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
pub const DELTA_PATH: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

/// The types of resources.
pub const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub const ASSIGNMENT: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// A resource with its name and more around it.
const WRAPPED: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidXds(pub String);

impl InvalidXds {
    fn new(what: &str) -> Self {
        Self(what.to_owned())
    }
}

impl From<InvalidMessage> for InvalidXds {
    fn from(InvalidMessage: InvalidMessage) -> Self {
        Self::new("the message is broken")
    }
}

impl fmt::Display for InvalidXds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

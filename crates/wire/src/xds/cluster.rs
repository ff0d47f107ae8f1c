//! `envoy.config.cluster.v3.Cluster`: where its endpoints are, and what else it asks for.

use alloc::vec::Vec;

use super::{InvalidXds, XdsAssignment};
use crate::protobuf::{InvalidMessage, ProtobufFieldValue, ProtobufFields};

/// A cluster, as far as it tells about servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XdsCluster<'a> {
    pub name: &'a str,
    pub kind: XdsClusterKind,
    /// The name of its endpoints in EDS, if it is not the cluster's.
    pub service_name: &'a str,
    /// The endpoints of a cluster without EDS.
    pub assignment: Option<XdsAssignment<'a>>,
    /// What it says about the way to its servers, and nothing here reads.
    pub unread: Vec<&'static str>,
}

/// Where the endpoints come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdsClusterKind {
    /// They are addresses in the cluster.
    #[default]
    Static,
    /// They are names in the cluster.
    Dns,
    /// They come in the same stream.
    Eds,
    /// It has no list of endpoints: what it has instead.
    Other(&'static str),
}

/// Settings of the way to servers by the numbers of their fields.
const UNREAD: [(u32, &str); 9] = [
    (8, "health_checks"),
    (10, "circuit_breakers"),
    (19, "outlier_detection"),
    (22, "lb_subset_config"),
    (24, "transport_socket"),
    (36, "typed_extension_protocol_options"),
    (40, "filters"),
    (41, "load_balancing_policy"),
    (43, "transport_socket_matches"),
];

impl<'a> XdsCluster<'a> {
    pub fn read(message: &'a [u8]) -> Result<Self, InvalidXds> {
        let (mut cluster, mut eds) = (Self::default(), None);
        let mut custom = None;
        for field in ProtobufFields::new(message) {
            let (number, value) = field?;
            match number {
                1 => cluster.name = value.text()?,
                2 => cluster.kind = XdsClusterKind::read(value)?,
                3 => eds = Some(EdsConfig::read(value.bytes()?)?),
                6 if value.number()? != 0 => cluster.note_unread("lb_policy"),
                33 => cluster.assignment = Some(XdsAssignment::read(value.bytes()?)?),
                38 => custom = Some(XdsClusterKind::Other("a type of an extension")),
                _ => {
                    if let Some((_, name)) = UNREAD.iter().find(|(known, _)| *known == number) {
                        cluster.note_unread(name);
                    }
                }
            }
        }
        if cluster.name.is_empty() {
            return Err(InvalidXds::new("a cluster has no name"));
        }
        if let Some(eds) = eds {
            cluster.service_name = eds.service_name;
            if !eds.is_of_stream && cluster.kind == XdsClusterKind::Eds {
                cluster.kind = XdsClusterKind::Other("endpoints from elsewhere than this stream");
            }
        }
        cluster.kind = custom.unwrap_or(cluster.kind);
        Ok(cluster)
    }

    /// The name of its endpoints in EDS.
    pub fn endpoints_name(&self) -> &'a str {
        if self.service_name.is_empty() { self.name } else { self.service_name }
    }

    fn note_unread(&mut self, name: &'static str) {
        if !self.unread.contains(&name) {
            self.unread.push(name);
        }
    }
}

impl XdsClusterKind {
    fn read(value: ProtobufFieldValue<'_>) -> Result<Self, InvalidMessage> {
        Ok(match value.number()? {
            0 => Self::Static,
            1 | 2 => Self::Dns,
            3 => Self::Eds,
            4 => Self::Other("the destination that a connection had"),
            _ => Self::Other("an unknown type"),
        })
    }
}

struct EdsConfig<'a> {
    /// Whether the endpoints come in the stream of the cluster.
    is_of_stream: bool,
    service_name: &'a str,
}

impl<'a> EdsConfig<'a> {
    fn read(message: &'a [u8]) -> Result<Self, InvalidMessage> {
        let mut config = Self { is_of_stream: false, service_name: "" };
        for field in ProtobufFields::new(message) {
            match field? {
                (1, value) => config.is_of_stream = is_of_stream(value.bytes()?)?,
                (2, value) => config.service_name = value.text()?,
                _ => {}
            }
        }
        Ok(config)
    }
}

/// Whether a `ConfigSource` is `ads` or `self`.
fn is_of_stream(message: &[u8]) -> Result<bool, InvalidMessage> {
    let mut is_it = false;
    for field in ProtobufFields::new(message) {
        // The last one of a choice counts: a path, an API, `ads`, `self`, the settings of a path.
        match field?.0 {
            3 | 5 => is_it = true,
            1 | 2 | 8 => is_it = false,
            _ => {}
        }
    }
    Ok(is_it)
}

//! `envoy.config.endpoint.v3.ClusterLoadAssignment`: the endpoints of a cluster.

use alloc::format;
use alloc::vec::Vec;

use super::InvalidXds;
use crate::protobuf::{InvalidMessage, ProtobufFieldValue, ProtobufFields};

/// The priority of localities has the same bound in Envoy.
const PRIORITY_MAX: u32 = 128;

/// The endpoints of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XdsAssignment<'a> {
    pub name: &'a str,
    pub localities: Vec<XdsLocality<'a>>,
    /// Whether requests are to be dropped at random.
    pub drops: bool,
}

/// Endpoints of one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XdsLocality<'a> {
    /// Never 0.
    pub weight: Option<u32>,
    /// 0 comes first.
    pub priority: u32,
    pub endpoints: Vec<XdsEndpoint<'a>>,
    /// Whether its endpoints are to be fetched otherwise (LEDS).
    pub is_elsewhere: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct XdsEndpoint<'a> {
    pub address: XdsAddress<'a>,
    pub health: XdsHealth,
    /// Never 0.
    pub weight: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdsAddress<'a> {
    /// The host is never empty, and neither is the port 0.
    Socket { host: &'a str, port: u16 },
    /// The path of a unix socket, never empty.
    Pipe(&'a str),
    /// A listener inside Envoy.
    Internal,
}

/// `envoy.config.core.v3.HealthStatus`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdsHealth {
    /// It is healthy, or nobody knows better.
    #[default]
    Usable,
    /// It is used when the healthy ones are not enough.
    Degraded,
    Draining,
    /// It is unhealthy, or its checks got no answer.
    Unhealthy,
}

impl<'a> XdsAssignment<'a> {
    pub fn read(message: &'a [u8]) -> Result<Self, InvalidXds> {
        let mut assignment = Self::default();
        for field in ProtobufFields::new(message) {
            match field? {
                (1, value) => assignment.name = value.text()?,
                (2, value) => assignment.localities.push(XdsLocality::read(value.bytes()?)?),
                (4, value) => assignment.drops |= drops(value.bytes()?)?,
                _ => {}
            }
        }
        match assignment.name {
            "" => Err(InvalidXds::new("endpoints have no name of a cluster")),
            _ => Ok(assignment),
        }
    }
}

/// Whether a policy has `drop_overloads`.
fn drops(policy: &[u8]) -> Result<bool, InvalidMessage> {
    ProtobufFields::new(policy).try_fold(false, |drops, field| Ok(drops || field?.0 == 2))
}

impl<'a> XdsLocality<'a> {
    fn read(message: &'a [u8]) -> Result<Self, InvalidXds> {
        let mut locality = Self::default();
        for field in ProtobufFields::new(message) {
            match field? {
                (2, value) => locality.endpoints.push(XdsEndpoint::read(value.bytes()?)?),
                (3, value) => locality.weight = weight(value)?,
                (5, value) => {
                    let priority = u32::try_from(value.number()?).unwrap_or(u32::MAX);
                    if priority > PRIORITY_MAX {
                        return Err(InvalidXds(format!("priority {priority} is too high")));
                    }
                    locality.priority = priority;
                }
                (7, value) => locality.take_list(value.bytes()?)?,
                (8, _) => locality.is_elsewhere = true,
                _ => {}
            }
        }
        Ok(locality)
    }

    /// An `LbEndpointList`, which stands for the list.
    fn take_list(&mut self, message: &'a [u8]) -> Result<(), InvalidXds> {
        for field in ProtobufFields::new(message) {
            if let (1, value) = field? {
                self.endpoints.push(XdsEndpoint::read(value.bytes()?)?);
            }
        }
        Ok(())
    }
}

impl<'a> XdsEndpoint<'a> {
    /// Reads an `LbEndpoint`.
    fn read(message: &'a [u8]) -> Result<Self, InvalidXds> {
        let (mut address, mut health, mut own_weight) = (None, XdsHealth::default(), None);
        for field in ProtobufFields::new(message) {
            match field? {
                (1, value) => address = endpoint_address(value.bytes()?)?,
                (2, value) => health = XdsHealth::read(value)?,
                (4, value) => own_weight = weight(value)?,
                _ => {}
            }
        }
        let address = address.ok_or_else(|| InvalidXds::new("an endpoint has no address"))?;
        Ok(Self { address, health, weight: own_weight })
    }
}

/// The address of an `Endpoint`.
fn endpoint_address(message: &[u8]) -> Result<Option<XdsAddress<'_>>, InvalidXds> {
    let mut address = None;
    for field in ProtobufFields::new(message) {
        if let (1, value) = field? {
            address = XdsAddress::read(value.bytes()?)?;
        }
    }
    Ok(address)
}

impl<'a> XdsAddress<'a> {
    fn read(message: &'a [u8]) -> Result<Option<Self>, InvalidXds> {
        let mut address = None;
        for field in ProtobufFields::new(message) {
            address = match field? {
                (1, value) => Some(Self::read_socket(value.bytes()?)?),
                (2, value) => Some(Self::read_pipe(value.bytes()?)?),
                (3, _) => Some(Self::Internal),
                _ => address,
            };
        }
        Ok(address)
    }

    fn read_socket(message: &'a [u8]) -> Result<Self, InvalidXds> {
        let (mut host, mut port) = ("", 0);
        for field in ProtobufFields::new(message) {
            match field? {
                (2, value) => host = value.text()?,
                (3, value) => port = value.number()?,
                _ => {}
            }
        }
        match (host, u16::try_from(port)) {
            ("", _) => Err(InvalidXds::new("an endpoint has no address")),
            (host, Ok(0) | Err(_)) => Err(InvalidXds(format!("{host} has an invalid port"))),
            (host, Ok(port)) => Ok(Self::Socket { host, port }),
        }
    }

    fn read_pipe(message: &'a [u8]) -> Result<Self, InvalidXds> {
        let mut path = "";
        for field in ProtobufFields::new(message) {
            if let (1, value) = field? {
                path = value.text()?;
            }
        }
        match path {
            "" => Err(InvalidXds::new("an endpoint has no address")),
            path => Ok(Self::Pipe(path)),
        }
    }
}

impl XdsHealth {
    fn read(value: ProtobufFieldValue<'_>) -> Result<Self, InvalidMessage> {
        Ok(match value.number()? {
            2 | 4 => Self::Unhealthy,
            3 => Self::Draining,
            5 => Self::Degraded,
            _ => Self::Usable,
        })
    }
}

/// A `google.protobuf.UInt32Value`.
fn weight(value: ProtobufFieldValue<'_>) -> Result<Option<u32>, InvalidXds> {
    let mut weight = 0;
    for field in ProtobufFields::new(value.bytes()?) {
        if let (1, value) = field? {
            weight = value.number()?;
        }
    }
    match u32::try_from(weight) {
        Ok(0) | Err(_) => Err(InvalidXds(format!("the weight {weight} is invalid"))),
        Ok(weight) => Ok(Some(weight)),
    }
}

//! What a control plane sends: resources, and which are gone.

use alloc::vec::Vec;

use super::{InvalidXds, WRAPPED};
use crate::protobuf::ProtobufFields;

/// A response of either variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiscoveryResponse<'a> {
    pub version: &'a str,
    pub type_url: &'a str,
    pub nonce: &'a str,
    pub resources: Vec<XdsResource<'a>>,
    /// Names of resources that are gone; always empty in a response of the state of the world.
    pub removed: Vec<&'a str>,
}

/// A resource in a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XdsResource<'a> {
    /// Empty in the state of the world, unless it is wrapped.
    pub name: &'a str,
    pub version: &'a str,
    pub type_url: &'a str,
    /// The encoded resource; `None`: it is as before, and still there.
    pub message: Option<&'a [u8]>,
}

impl<'a> DiscoveryResponse<'a> {
    /// Reads a response of the state of the world.
    pub fn read(message: &'a [u8]) -> Result<Self, InvalidXds> {
        let mut response = Self::default();
        for field in ProtobufFields::new(message) {
            match field? {
                (1, value) => response.version = value.text()?,
                (2, value) => {
                    let mut resource = XdsResource::default();
                    resource.take_any(value.bytes()?)?;
                    response.resources.push(resource.unwrapped()?);
                }
                (4, value) => response.type_url = value.text()?,
                (5, value) => response.nonce = value.text()?,
                _ => {}
            }
        }
        Ok(response)
    }

    /// Reads a response of changes.
    pub fn read_delta(message: &'a [u8]) -> Result<Self, InvalidXds> {
        let mut response = Self::default();
        for field in ProtobufFields::new(message) {
            match field? {
                (1, value) => response.version = value.text()?,
                (2, value) => response.resources.push(XdsResource::read(value.bytes()?)?),
                (4, value) => response.type_url = value.text()?,
                (5, value) => response.nonce = value.text()?,
                (6, value) => response.removed.push(value.text()?),
                _ => {}
            }
        }
        Ok(response)
    }
}

impl<'a> XdsResource<'a> {
    /// Reads an `envoy.service.discovery.v3.Resource`.
    fn read(message: &'a [u8]) -> Result<Self, InvalidXds> {
        let mut resource = Self::default();
        for field in ProtobufFields::new(message) {
            match field? {
                (1, value) => resource.version = value.text()?,
                (2, value) => resource.take_any(value.bytes()?)?,
                (3, value) => resource.name = value.text()?,
                _ => {}
            }
        }
        Ok(resource)
    }

    /// Reads a `google.protobuf.Any`.
    fn take_any(&mut self, any: &'a [u8]) -> Result<(), InvalidXds> {
        self.message = Some(&[]);
        for field in ProtobufFields::new(any) {
            match field? {
                (1, value) => self.type_url = value.text()?,
                (2, value) => self.message = Some(value.bytes()?),
                _ => {}
            }
        }
        Ok(())
    }

    fn unwrapped(self) -> Result<Self, InvalidXds> {
        match self.message {
            Some(message) if self.type_url == WRAPPED => Self::read(message),
            _ => Ok(self),
        }
    }
}

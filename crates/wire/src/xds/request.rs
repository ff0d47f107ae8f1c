//! What a client sends: what it subscribes to, and whether it has taken a response.

use alloc::vec::Vec;

use crate::protobuf::{write_bytes, write_message, write_number};

/// `google.rpc.Code.INVALID_ARGUMENT`
const INVALID_ARGUMENT: u64 = 3;

/// A request of the state of the world. Empty texts are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscoveryRequest<'a> {
    /// The encoded node, in the first request of a stream.
    pub node: Option<&'a [u8]>,
    pub type_url: &'a str,
    /// The version that the client has.
    pub version: &'a str,
    /// The response that this answers.
    pub nonce: &'a str,
    /// Why that response is rejected.
    pub error: Option<&'a str>,
}

impl DiscoveryRequest<'_> {
    /// Writes the request for resources with these names; without names, for all.
    pub fn write<'n>(&self, names: impl IntoIterator<Item = &'n str>, out: &mut Vec<u8>) {
        write_text(1, self.version, out);
        self.node.iter().for_each(|node| write_bytes(2, node, out));
        names.into_iter().for_each(|name| write_bytes(3, name.as_bytes(), out));
        write_text(4, self.type_url, out);
        write_text(5, self.nonce, out);
        write_error(6, self.error, out);
    }
}

/// A request of changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeltaDiscoveryRequest<'a> {
    /// The encoded node, in the first request of a stream.
    pub node: Option<&'a [u8]>,
    pub type_url: &'a str,
    /// The response that this answers.
    pub nonce: &'a str,
    /// Why that response is rejected.
    pub error: Option<&'a str>,
    pub subscribe: &'a [&'a str],
    pub unsubscribe: &'a [&'a str],
}

impl DeltaDiscoveryRequest<'_> {
    /// Writes the request; `known` are names and versions of resources that the client has from
    /// an earlier stream.
    pub fn write<'n>(
        &self,
        known: impl IntoIterator<Item = (&'n str, &'n str)>,
        out: &mut Vec<u8>,
    ) {
        self.node.iter().for_each(|node| write_bytes(1, node, out));
        write_text(2, self.type_url, out);
        self.subscribe.iter().for_each(|name| write_bytes(3, name.as_bytes(), out));
        self.unsubscribe.iter().for_each(|name| write_bytes(4, name.as_bytes(), out));
        for (name, version) in known {
            write_message(5, out, |out| {
                write_bytes(1, name.as_bytes(), out);
                write_bytes(2, version.as_bytes(), out);
            });
        }
        write_text(6, self.nonce, out);
        write_error(7, self.error, out);
    }
}

pub(super) fn write_text(number: u32, text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        write_bytes(number, text.as_bytes(), out);
    }
}

/// A `google.rpc.Status`.
fn write_error(number: u32, error: Option<&str>, out: &mut Vec<u8>) {
    if let Some(error) = error {
        write_message(number, out, |out| {
            write_number(1, INVALID_ARGUMENT, out);
            write_text(2, error, out);
        });
    }
}

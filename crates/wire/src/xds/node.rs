//! `envoy.config.core.v3.Node`: as whom a client asks.

use alloc::vec::Vec;

use super::request::write_text;
use crate::protobuf::{write_bytes, write_message};

/// Empty texts are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct XdsNode<'a> {
    pub id: &'a str,
    pub cluster: &'a str,
    /// An encoded `google.protobuf.Struct`.
    pub metadata: &'a [u8],
    /// Region, zone and part of the zone.
    pub locality: [&'a str; 3],
    pub agent: &'a str,
    pub agent_version: &'a str,
}

impl XdsNode<'_> {
    pub fn write(&self, out: &mut Vec<u8>) {
        write_text(1, self.id, out);
        write_text(2, self.cluster, out);
        if !self.metadata.is_empty() {
            write_bytes(3, self.metadata, out);
        }
        if self.locality.iter().any(|text| !text.is_empty()) {
            write_message(4, out, |out| {
                (1..).zip(self.locality).for_each(|(number, text)| write_text(number, text, out));
            });
        }
        write_text(6, self.agent, out);
        write_text(7, self.agent_version, out);
    }
}

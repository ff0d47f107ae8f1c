//! Names that a certificate is for: hosts and addresses.

use alloc::string::String;
use core::fmt;
use core::net::IpAddr;

use super::X509;
use crate::der::tag;
use crate::der_writer::DerWriter;

/// `dNSName` and `iPAddress` of `GeneralName`.
const DNS_NAME: u8 = tag::primitive(2);
const IP_ADDRESS: u8 = tag::primitive(7);

/// A name in the extension `subjectAltName`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SubjectName {
    /// A host, in ASCII and lower case; its first label may be `*`.
    Dns(String),
    Ip(IpAddr),
}

impl SubjectName {
    /// The name as its users write it: an address, or else a host.
    pub fn of(text: &str) -> Self {
        match text.parse() {
            Ok(address) => Self::Ip(address),
            Err(_) => Self::Dns(text.to_ascii_lowercase()),
        }
    }

    /// Whether it is for all hosts of a domain.
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Dns(host) if host.starts_with("*."))
    }

    pub(super) fn write(&self, out: &mut DerWriter) {
        match self {
            Self::Dns(host) => out.element(DNS_NAME, host.as_bytes()),
            Self::Ip(IpAddr::V4(ip)) => out.element(IP_ADDRESS, &ip.octets()),
            Self::Ip(IpAddr::V6(ip)) => out.element(IP_ADDRESS, &ip.octets()),
        }
    }
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(host) => f.write_str(host),
            Self::Ip(address) => address.fmt(f),
        }
    }
}

impl X509<'_> {
    /// Whether this very name is among its own: a `*` is only the same `*`.
    pub fn has_subject_name(&self, name: &SubjectName) -> bool {
        match name {
            SubjectName::Dns(host) => {
                self.host_names().any(|own| own.eq_ignore_ascii_case(host.as_bytes()))
            }
            SubjectName::Ip(IpAddr::V4(ip)) => self.has_address(&ip.octets()),
            SubjectName::Ip(IpAddr::V6(ip)) => self.has_address(&ip.octets()),
        }
    }

    fn has_address(&self, octets: &[u8]) -> bool {
        self.alternative_names().any(|name| name.tag == IP_ADDRESS && name.contents == octets)
    }
}

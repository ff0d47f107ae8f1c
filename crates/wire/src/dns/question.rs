//! A question and its query.

use alloc::vec::Vec;

use super::{CLASS_IN, DomainName, HEADER_BYTES, NAME_BYTES_MAX};

/// The most bytes of a query.
pub const QUERY_BYTES_MAX: usize = HEADER_BYTES + NAME_BYTES_MAX + 4;

/// "Recursion desired": the name server is to do the whole lookup.
const RECURSION_DESIRED: u16 = 0x0100;

/// The types of record that are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordType {
    /// IPv4 addresses.
    A = 1,
    /// The names of a zone's servers.
    Ns = 2,
    /// The name that this one is an alias of, which is in the answer's `alias`.
    Cname = 5,
    /// The name of an address.
    Ptr = 12,
    /// Texts.
    Txt = 16,
    /// IPv6 addresses (RFC 3596).
    Aaaa = 28,
    /// The host and port of a service (RFC 2782).
    Srv = 33,
}

impl RecordType {
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Ns => "NS",
            Self::Cname => "CNAME",
            Self::Ptr => "PTR",
            Self::Txt => "TXT",
            Self::Aaaa => "AAAA",
            Self::Srv => "SRV",
        }
    }
}

/// One question, of class IN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DnsQuestion {
    pub name: DomainName,
    /// The type of the requested records.
    pub kind: RecordType,
}

impl DnsQuestion {
    /// Appends the query for this question.
    pub fn write(&self, id: u16, out: &mut Vec<u8>) {
        for word in [id, RECURSION_DESIRED, 1, 0, 0, 0] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        self.name.write(out);
        out.extend_from_slice(&(self.kind as u16).to_be_bytes());
        out.extend_from_slice(&CLASS_IN.to_be_bytes());
    }
}

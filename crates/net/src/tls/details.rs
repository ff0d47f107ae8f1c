//! What the two ends of a session agreed on, for variables and checks.

use std::sync::Arc;

use rustls::{CommonState, HandshakeKind, ProtocolVersion};
use wire::client_hello::{self, ClientHello};
use wire::tls::{TlsGroup, TlsSuite};

/// What a client offered, and which server it named.
#[derive(Clone, Debug, Default)]
pub struct OfferedByClient {
    /// The name, as it was sent.
    pub server_name: Option<Box<[u8]>>,
    /// Numbers of cipher suites, two bytes each.
    pub cipher_suites: Box<[u8]>,
    /// Numbers of groups.
    pub groups: Box<[u8]>,
    /// Numbers of signature schemes.
    pub signature_schemes: Box<[u8]>,
}

/// What was agreed on.
#[derive(Clone, Debug, Default)]
pub struct TlsDetails {
    /// What the client offered.
    pub offered: OfferedByClient,
    /// `TLSv1.2`, `TLSv1.3`.
    pub version: &'static str,
    /// IANA's number of the cipher suite.
    pub cipher_suite: u16,
    /// IANA's number of the group that keys were exchanged with; 0: none.
    pub group: u16,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// The application protocol (ALPN).
    pub protocol: Option<Box<[u8]>>,
    /// The peer's certificates in DER, its own first.
    pub peer_certificates: Arc<[Box<[u8]>]>,
}

impl OfferedByClient {
    /// A copy of what the message says.
    pub(crate) fn of(hello: &ClientHello<'_>) -> Self {
        Self {
            server_name: hello.server_name.map(Box::from),
            cipher_suites: hello.cipher_suites.into(),
            groups: hello.groups.into(),
            signature_schemes: hello.signature_schemes.into(),
        }
    }
}

impl TlsDetails {
    pub(crate) fn new(agreed: &CommonState, offered: OfferedByClient) -> Self {
        let certificates = agreed.peer_certificates().unwrap_or_default();
        let group = agreed.negotiated_key_exchange_group().map_or(0, |group| group.name().into());
        Self {
            offered,
            version: match agreed.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
                _ => "TLSv1.2",
            },
            cipher_suite: agreed.negotiated_cipher_suite().map_or(0, |suite| suite.suite().into()),
            group,
            is_resumed: agreed.handshake_kind() == Some(HandshakeKind::Resumed),
            protocol: agreed.alpn_protocol().map(Box::from),
            peer_certificates: certificates.iter().map(|der| Box::from(der.as_ref())).collect(),
        }
    }

    /// Whether the application protocol is this one.
    pub fn has_protocol(&self, name: &[u8]) -> bool {
        self.protocol.as_deref() == Some(name)
    }

    /// Writes the cipher suite in OpenSSL's words.
    pub fn write_cipher(&self, out: &mut Vec<u8>) {
        write_suite(self.cipher_suite, out);
    }

    /// Writes the cipher suites that the client offered.
    pub fn write_ciphers(&self, out: &mut Vec<u8>) {
        write_list(&self.offered.cipher_suites, out, write_suite);
    }

    /// Writes the group that keys were exchanged with.
    pub fn write_group(&self, out: &mut Vec<u8>) {
        if self.group != 0 {
            write_group(self.group, out);
        }
    }

    /// Writes the groups that the client offered.
    pub fn write_groups(&self, out: &mut Vec<u8>) {
        write_list(&self.offered.groups, out, write_group);
    }

    /// Writes the numbers of the signature schemes that the client offered.
    pub fn write_signature_schemes(&self, out: &mut Vec<u8>) {
        write_list(&self.offered.signature_schemes, out, write_number);
    }
}

fn write_list(list: &[u8], out: &mut Vec<u8>, write: fn(u16, &mut Vec<u8>)) {
    for (index, number) in client_hello::numbers(list).enumerate() {
        if index > 0 {
            out.push(b':');
        }
        write(number, out);
    }
}

fn write_suite(code: u16, out: &mut Vec<u8>) {
    match TlsSuite::from_code(code) {
        Some(suite) => out.extend_from_slice(suite.name().as_bytes()),
        None => write_number(code, out),
    }
}

fn write_group(code: u16, out: &mut Vec<u8>) {
    match TlsGroup::from_code(code) {
        Some(group) => out.extend_from_slice(group.name().as_bytes()),
        None => write_number(code, out),
    }
}

fn write_number(code: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("0x{code:04x}").as_bytes());
}

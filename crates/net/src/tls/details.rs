//! Details of a session's handshake, for variables and checks.

use std::sync::atomic::{AtomicBool, Ordering};

use rustls::{CommonState, HandshakeKind, ProtocolVersion, SignatureScheme};
use wire::client_hello::{self, ClientHello};
use wire::host::Host;
use wire::tls::{TlsGroup, TlsSuite};

use super::client_trust::ClientCertificate;

/// The client's offer, and the server name that it sent.
#[derive(Clone, Debug, Default)]
pub struct OfferedByClient {
    /// The server name, as it was sent.
    pub server_name: Option<Box<[u8]>>,
    /// IANA's numbers of cipher suites, two bytes each.
    pub cipher_suites: Box<[u8]>,
    /// IANA's numbers of groups, two bytes each.
    pub groups: Box<[u8]>,
    /// IANA's numbers of signature schemes, two bytes each.
    pub signature_schemes: Box<[u8]>,
}

/// The result of a handshake.
#[derive(Debug, Default)]
pub struct TlsDetails {
    pub offered: OfferedByClient,
    /// `TLSv1.2`, `TLSv1.3`.
    pub version: &'static str,
    /// IANA's number of the cipher suite.
    pub cipher_suite: u16,
    /// IANA's number of the key exchange group; 0: none.
    pub group: u16,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    pub session_id: SessionId,
    /// IANA's number of the server's signature scheme; 0: the server did not sign.
    pub signature_scheme: u16,
    /// Whether the handshake is not over: the client's data may be a replay.
    pub(crate) is_early: AtomicBool,
    /// The application protocol (ALPN).
    pub protocol: Option<Box<[u8]>>,
    /// The client's certificate, if one was requested and presented.
    pub client_certificate: Option<Box<ClientCertificate>>,
}

/// A session's identifier of up to 32 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionId {
    length: u8,
    bytes: [u8; SESSION_ID_MAX],
}

/// RFC 5246 section 7.4.1.2.
const SESSION_ID_MAX: usize = 32;

impl SessionId {
    /// A copy; empty if the id is too long.
    pub(crate) fn of(id: &[u8]) -> Self {
        let mut copy = Self::default();
        if let Some(place) = copy.bytes.get_mut(..id.len()) {
            place.copy_from_slice(id);
            copy.length = id.len() as u8;
        }
        copy
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl OfferedByClient {
    /// A copy of the message's offer.
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
            session_id: SessionId::default(),
            signature_scheme: 0,
            is_early: AtomicBool::new(false),
            protocol: agreed.alpn_protocol().map(Box::from),
            client_certificate: None,
        }
    }

    /// Details of a client that has only sent its first message. A server name that is not a valid
    /// host is left out, since file names are made of it.
    pub fn of_hello(hello: Option<&ClientHello<'_>>) -> Self {
        let mut offered = hello.map(OfferedByClient::of).unwrap_or_default();
        offered.server_name = offered.server_name.filter(|name| Host::parse(name).is_some());
        Self { offered, ..Self::default() }
    }

    /// Whether the handshake is not over: the client's data may be a replay.
    pub fn is_early(&self) -> bool {
        self.is_early.load(Ordering::Relaxed)
    }

    pub(super) fn is_tls13(&self) -> bool {
        self.version == "TLSv1.3"
    }

    /// The client's signature schemes that the version and the cipher suite permit.
    pub(super) fn usable_schemes(&self) -> Vec<SignatureScheme> {
        let offered = client_hello::numbers(&self.offered.signature_schemes);
        let has_rsa = TlsSuite::from_code(self.cipher_suite).is_some_and(TlsSuite::has_rsa);
        let is_usable = |scheme: &SignatureScheme| match scheme {
            SignatureScheme::RSA_PKCS1_SHA256
            | SignatureScheme::RSA_PKCS1_SHA384
            | SignatureScheme::RSA_PKCS1_SHA512 => !self.is_tls13() && has_rsa,
            SignatureScheme::RSA_PSS_SHA256
            | SignatureScheme::RSA_PSS_SHA384
            | SignatureScheme::RSA_PSS_SHA512 => self.is_tls13() || has_rsa,
            _ => self.is_tls13() || !has_rsa,
        };
        offered.map(SignatureScheme::from).filter(is_usable).collect()
    }

    /// Writes the scheme of the server's handshake signature.
    pub fn write_signature_scheme(&self, out: &mut Vec<u8>) {
        if self.signature_scheme != 0 {
            write_scheme(self.signature_scheme, out);
        }
    }

    /// Writes the scheme of the client's handshake signature.
    pub fn write_client_signature_scheme(&self, out: &mut Vec<u8>) {
        let scheme = self.client_certificate.as_ref().map_or(0, |shown| shown.signature_scheme);
        if scheme != 0 {
            write_scheme(scheme, out);
        }
    }

    /// Writes the session's identifier in hexadecimal.
    pub fn write_session_id(&self, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in self.session_id.as_bytes() {
            out.push(DIGITS[usize::from(byte >> 4)]);
            out.push(DIGITS[usize::from(byte & 15)]);
        }
    }

    /// Whether this is the application protocol.
    pub fn has_protocol(&self, name: &[u8]) -> bool {
        self.protocol.as_deref() == Some(name)
    }

    /// Writes OpenSSL's name of the cipher suite.
    pub fn write_cipher(&self, out: &mut Vec<u8>) {
        write_suite(self.cipher_suite, out);
    }

    /// Writes the client's cipher suites.
    pub fn write_ciphers(&self, out: &mut Vec<u8>) {
        write_list(&self.offered.cipher_suites, out, write_suite);
    }

    /// Writes the key exchange group.
    pub fn write_group(&self, out: &mut Vec<u8>) {
        if self.group != 0 {
            write_group(self.group, out);
        }
    }

    /// Writes the client's groups.
    pub fn write_groups(&self, out: &mut Vec<u8>) {
        write_list(&self.offered.groups, out, write_group);
    }

    /// Writes the numbers of the client's signature schemes.
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

/// Writes IANA's name, which is also OpenSSL's.
fn write_scheme(code: u16, out: &mut Vec<u8>) {
    let name = match SignatureScheme::from(code) {
        SignatureScheme::RSA_PKCS1_SHA256 => "rsa_pkcs1_sha256",
        SignatureScheme::RSA_PKCS1_SHA384 => "rsa_pkcs1_sha384",
        SignatureScheme::RSA_PKCS1_SHA512 => "rsa_pkcs1_sha512",
        SignatureScheme::RSA_PSS_SHA256 => "rsa_pss_rsae_sha256",
        SignatureScheme::RSA_PSS_SHA384 => "rsa_pss_rsae_sha384",
        SignatureScheme::RSA_PSS_SHA512 => "rsa_pss_rsae_sha512",
        SignatureScheme::ECDSA_NISTP256_SHA256 => "ecdsa_secp256r1_sha256",
        SignatureScheme::ECDSA_NISTP384_SHA384 => "ecdsa_secp384r1_sha384",
        SignatureScheme::ECDSA_NISTP521_SHA512 => "ecdsa_secp521r1_sha512",
        SignatureScheme::ED25519 => "ed25519",
        _ => return write_number(code, out),
    };
    out.extend_from_slice(name.as_bytes());
}

fn write_number(code: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("0x{code:04x}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_name_that_is_not_a_valid_host_is_left_out() {
        for (name, is_valid) in [("a.test", true), ("../a", false), ("a/b", false), ("a..b", false)]
        {
            let mut hello = ClientHello::default();
            hello.server_name = Some(name.as_bytes());
            let known = TlsDetails::of_hello(Some(&hello));
            assert_eq!(known.offered.server_name.is_some(), is_valid, "{name}");
        }
    }
}

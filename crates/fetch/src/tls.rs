//! TLS with the peers of requests that Weir itself has.

use std::net::IpAddr;
use std::sync::Arc;

use net::accept::Transport;
use net::tls::{
    ChainRules, ClientTls, ClientTlsPlan, ClientTransport, Credential, KeyError, ServerTrust,
    TlsServerName, TrustedCertificates, TrustedRoots,
};
use wire::tls::{TlsGroup, TlsSuite};

/// Bytes of plaintext in a record.
const RECORD_MAX: usize = 16 * 1024;

/// The most certificates between a server's and an authority's.
const CHAIN_DEPTH_MAX: usize = 9;

/// Groups to exchange keys with, best first.
const GROUPS: [TlsGroup; 4] =
    [TlsGroup::X25519, TlsGroup::X25519MlKem768, TlsGroup::Secp256r1, TlsGroup::Secp384r1];

/// The files with a system's certificate authorities, on Debian, Fedora, Alpine and openSUSE.
pub const SYSTEM_AUTHORITIES: [&[u8]; 4] = [
    b"/etc/ssl/certs/ca-certificates.crt",
    b"/etc/pki/tls/certs/ca-bundle.crt",
    b"/etc/ssl/cert.pem",
    b"/etc/ssl/ca-bundle.pem",
];

/// Trust in the authorities of a PEM file, for a server of that name, which may be an address.
/// OpenSSL's rules are for names; those for addresses do not accept an authority as a server.
pub fn trust_in(authorities: &[u8], name: &str) -> Result<ServerTrust, KeyError> {
    if name.parse::<IpAddr>().is_ok() {
        return Ok(ServerTrust::Roots(TrustedRoots::read(authorities)?));
    }
    let trusted = TrustedCertificates::read(authorities)?;
    Ok(ServerTrust::Chain(ChainRules { trusted, revoked: None, depth_max: CHAIN_DEPTH_MAX }))
}

/// TLS with the server of that name, which may be an address. `credential` is presented if the
/// server requests a certificate. The error is a reason.
///
/// Only requests with the same transport share connections, so make it once for each origin.
pub fn tls_transport(
    name: &str,
    trust: ServerTrust,
    credential: Option<Credential>,
) -> Result<Arc<dyn Transport>, String> {
    transport(name, trust, credential, &[b"http/1.1"])
}

/// The same for the connections of a [`GrpcCaller`](crate::GrpcCaller).
pub fn grpc_tls_transport(
    name: &str,
    trust: ServerTrust,
    credential: Option<Credential>,
) -> Result<Arc<dyn Transport>, String> {
    transport(name, trust, credential, &[b"h2"])
}

/// The same without an application protocol (ALPN), for connections that are not HTTP.
pub fn bare_tls_transport(
    name: &str,
    trust: ServerTrust,
    credential: Option<Credential>,
) -> Result<Arc<dyn Transport>, String> {
    transport(name, trust, credential, &[])
}

fn transport(
    name: &str,
    trust: ServerTrust,
    credential: Option<Credential>,
    protocols: &[&[u8]],
) -> Result<Arc<dyn Transport>, String> {
    let name =
        TlsServerName::parse(name).ok_or_else(|| format!("\"{name}\" is no name of a server"))?;
    let tls = ClientTls::new(ClientTlsPlan {
        trust,
        credential,
        has_tls12: true,
        has_tls13: true,
        suites: [&TlsSuite::TLS13[..], &TlsSuite::TLS12].concat(),
        groups: GROUPS.to_vec(),
        record_max: RECORD_MAX,
        protocols: protocols.iter().map(|protocol| (*protocol).into()).collect(),
        sends_name: true,
        ignores_cut: false,
        resumes: true,
    })?;
    Ok(Arc::new(ClientTransport { tls, name }))
}

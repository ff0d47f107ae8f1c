//! TLS with the peers of a [`Fetcher`](crate::Fetcher).

use std::sync::Arc;

use net::accept::Transport;
use net::tls::{ClientTls, ClientTlsPlan, ClientTransport, Credential, ServerTrust, TlsServerName};
use wire::tls::{TlsGroup, TlsSuite};

/// Bytes of plaintext in a record.
const RECORD_MAX: usize = 16 * 1024;

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

/// TLS with the server of that name, which may be an address. `credential` is presented if the
/// server requests a certificate. The error is a reason.
///
/// Only requests with the same transport share connections, so make it once for each origin.
pub fn tls_transport(
    name: &str,
    trust: ServerTrust,
    credential: Option<Credential>,
) -> Result<Arc<dyn Transport>, String> {
    transport(name, trust, credential, b"http/1.1")
}

/// The same for the connections of a [`GrpcCaller`](crate::GrpcCaller).
pub fn grpc_tls_transport(
    name: &str,
    trust: ServerTrust,
    credential: Option<Credential>,
) -> Result<Arc<dyn Transport>, String> {
    transport(name, trust, credential, b"h2")
}

fn transport(
    name: &str,
    trust: ServerTrust,
    credential: Option<Credential>,
    protocol: &[u8],
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
        protocols: vec![protocol.into()],
        sends_name: true,
        ignores_cut: false,
        resumes: true,
    })?;
    Ok(Arc::new(ClientTransport { tls, name }))
}

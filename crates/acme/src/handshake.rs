//! The answer to tls-alpn-01 (RFC 8737): a handshake with the protocol `acme-tls/1`, in which a
//! certificate proves that this server has the name. Nothing follows it.

use std::io;

use net::tls::{Credential, ResumptionPlan, ServerTls, ServerTlsPlan};
use net::{Stream, Timer, accept};
use wire::client_hello::ClientHello;
use wire::tls::{TlsGroup, TlsSuite};

use crate::challenges::PublishedChallenges;

/// The application protocol (ALPN).
const PROTOCOL: &[u8] = b"acme-tls/1";
/// Bytes of plaintext in a record, of which there are none.
const RECORD_MAX: usize = 16 * 1024;

/// Answers a handshake that asks for a published answer; then the connection is over. `received`
/// are all bytes so far, with `hello` at their beginning. False: it is another handshake, of which
/// nothing was read.
pub async fn answer_handshake(
    stream: &mut Stream,
    hello: &[u8],
    received: &[u8],
    timer: &Timer,
) -> bool {
    let challenges = PublishedChallenges::of_process();
    if !challenges.answers_handshakes() {
        return false;
    }
    let Some(hello) = ClientHello::parse(hello) else { return false };
    let Some(name) = hello.server_name.filter(|_| hello.protocols().eq([PROTOCOL])) else {
        return false;
    };
    let name = name.to_vec();
    let made = net::offload(move || PublishedChallenges::of_process().tls_answer(&name));
    let Some(Some(credential)) = timer.limit(made).await else { return false };
    let Ok(session) =
        tls_of(credential).and_then(|tls| tls.session(Some(&hello), false, received, None))
    else {
        return false;
    };
    // Whether it was good enough, the authority says.
    let _ = accept::secure(stream, session, timer).await;
    true
}

fn tls_of(credential: Credential) -> io::Result<ServerTls> {
    let plan = ServerTlsPlan {
        credentials: vec![credential],
        has_tls12: true,
        has_tls13: true,
        suites: [&TlsSuite::TLS13[..], &TlsSuite::TLS12].concat(),
        groups: vec![TlsGroup::X25519, TlsGroup::Secp256r1, TlsGroup::Secp384r1],
        record_max: RECORD_MAX,
        protocols: vec![PROTOCOL.into()],
        resumption: ResumptionPlan::default(),
        ..ServerTlsPlan::default()
    };
    ServerTls::new(plan).map_err(io::Error::other)
}

//! Requests over TLS.

use std::cell::Cell;

use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY, RSA_CERTIFICATE, RSA_KEY};
use net::tls::{
    ChainRules, ClientTrust, Credential, ServerTls, ServerTlsPlan, ServerTrust, TrustedCertificates,
};
use wire::tls::{TlsGroup, TlsSuite};

use super::*;
use crate::tls_transport;

const REPLY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";

fn credential(certificate: &str, key: &str) -> Credential {
    Credential::read(certificate.as_bytes(), key.as_bytes(), &[]).expect("a certificate")
}

fn rules(certificate: &str) -> ChainRules {
    let trusted = TrustedCertificates::read(certificate.as_bytes()).expect("a certificate");
    ChainRules { trusted, revoked: None, depth_max: 1 }
}

/// A server named `localhost`, which requests a certificate of clients.
fn server() -> ServerTls {
    let clients = ClientTrust::new(rules(RSA_CERTIFICATE), None, false).expect("short names");
    let plan = ServerTlsPlan {
        credentials: vec![credential(ECDSA_CERTIFICATE, ECDSA_KEY)],
        has_tls12: true,
        has_tls13: true,
        suites: TlsSuite::TLS13.to_vec(),
        groups: vec![TlsGroup::X25519],
        record_max: 1 << 14,
        protocols: vec![b"http/1.1"[..].into()],
        clients: Some(std::sync::Arc::new(clients)),
        ..ServerTlsPlan::default()
    };
    ServerTls::new(plan).expect("a sound plan")
}

/// A request to a server of that name, with the certificate of `root` trusted.
fn to(
    name: &'static str,
    root: &'static str,
    shown: Option<Credential>,
) -> impl FnOnce(FetchOrigin) -> FetchRequest {
    move |origin| {
        let transport = tls_transport(name, ServerTrust::Chain(rules(root)), shown);
        get(FetchOrigin { transport: Some(transport.expect("a name")), ..origin })
    }
}

/// The result of a request to that server, which replies `REPLY`.
fn fetched_by(request: impl FnOnce(FetchOrigin) -> FetchRequest) -> Result<Vec<u8>, String> {
    let fetched = fetched_at_once(request, async |mut peer| {
        if peer.secure(server().session(None, false, &[], None).expect("a session")).await {
            peer.answer(REPLY).await;
            peer.close();
        }
    });
    fetched.map(|response| response.body)
}

#[test]
fn a_server_must_have_a_certificate_for_its_name() {
    assert_eq!(fetched_by(to("localhost", ECDSA_CERTIFICATE, None)), Ok(b"body".to_vec()));
    let refused = |reason: &str| {
        let message = format!("the certificate was refused ({reason})");
        Err(format!("{message} while securing the connection to PEER"))
    };
    let other_name = fetched_by(to("other.test", ECDSA_CERTIFICATE, None));
    assert_eq!(other_name, refused("hostname mismatch"));
    let other_root = fetched_by(to("localhost", RSA_CERTIFICATE, None));
    assert_eq!(other_root, refused("self-signed certificate"));
    assert!(tls_transport("a b", ServerTrust::Any, None).is_err());
}

#[test]
fn the_certificate_is_sent_on_request() {
    let shown = credential(RSA_CERTIFICATE, RSA_KEY);
    let request = to("localhost", ECDSA_CERTIFICATE, Some(shown));
    let fetched = fetched_at_once(request, async |mut peer| {
        assert!(peer.secure(server().session(None, false, &[], None).expect("a session")).await);
        let details = peer.stream().tls().expect("TLS");
        assert!(details.client_certificate.is_some() && details.has_protocol(b"http/1.1"));
        peer.answer(REPLY).await;
    });
    assert_eq!(fetched.expect("a reply").body, b"body");
}

#[test]
fn a_reply_without_length_must_end_with_the_session() {
    let request = || to("localhost", ECDSA_CERTIFICATE, None);
    let whole = fetched_at_once(request(), async |mut peer| {
        peer.secure(server().session(None, false, &[], None).expect("a session")).await;
        peer.answer("HTTP/1.1 200 OK\r\n\r\nbody").await;
        peer.close();
    });
    assert_eq!(whole.expect("a reply").body, b"body");
    let cut = fetched_at_once(request(), async |mut peer| {
        peer.secure(server().session(None, false, &[], None).expect("a session")).await;
        peer.answer("HTTP/1.1 200 OK\r\n\r\nbod").await;
    });
    let early = "the connection was closed early while reading the reply of PEER";
    assert_eq!(cut.expect_err("cut off"), early);
}

#[test]
fn a_handshake_times_out() {
    let request = to("localhost", ECDSA_CERTIFICATE, None);
    let (fetched, took_ms) = fetched_in(&LIMITS, request, async |mut peer| peer.closed().await);
    let message = "no connection within 1000 ms while securing the connection to PEER";
    assert_eq!((fetched.expect_err("no session"), took_ms / 1000), (message.into(), 1));
}

#[test]
fn a_peer_without_tls_is_an_error() {
    let request = to("localhost", ECDSA_CERTIFICATE, None);
    let fetched = fetched_at_once(request, async |mut peer| {
        peer.say("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        peer.closed().await;
    });
    let error = fetched.expect_err("no session");
    assert!(error.ends_with("while securing the connection to PEER"), "{error}");
}

#[test]
fn only_requests_with_the_same_transport_share_a_connection() {
    let connections = net::run(async {
        let peer = Peer::new();
        let (origin, accepted) = (peer.origin(), Rc::new(Cell::new(0)));
        let counted = accepted.clone();
        net::spawn(async move {
            loop {
                let mut connection = peer.accept().await;
                counted.set(counted.get() + 1);
                net::spawn(async move {
                    let session = server().session(None, false, &[], None).expect("a session");
                    assert!(connection.secure(session).await);
                    while !connection.answer(REPLY).await.is_empty() {}
                });
            }
        });
        let settings =
            FetchSettings { idle_connections_max: 4, idle_ms: 60_000, ..FetchSettings::default() };
        let (fetcher, mut connections) = (Fetcher::new(settings), Vec::new());
        let [one, other] =
            [(); 2].map(|()| to("localhost", ECDSA_CERTIFICATE, None)(origin.clone()));
        for request in [&one, &one, &other, &one, &get(origin)] {
            let _ = fetcher.send(request, &FetchLimits { silence_ms: 100, ..LIMITS }).await;
            connections.push(accepted.get());
        }
        connections
    });
    assert_eq!(connections.expect("a worker"), [1, 1, 2, 2, 3]);
}

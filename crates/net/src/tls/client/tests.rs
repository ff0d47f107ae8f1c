use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use wire::tls::{TlsGroup, TlsSuite};

use super::*;
use crate::Stream;
use crate::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY};
use crate::tls::{
    CertificateFault, ChainFault, ChainRules, H2, ServerTls, ServerTlsPlan, TlsDetails,
    TrustedCertificates, TrustedRoots,
};

fn server() -> ServerTls {
    let (certificate, key) = (ECDSA_CERTIFICATE.as_bytes(), ECDSA_KEY.as_bytes());
    let plan = ServerTlsPlan {
        credentials: vec![Credential::read(certificate, key, &[]).unwrap()],
        has_tls12: true,
        has_tls13: true,
        suites: [&TlsSuite::TLS13[..], &TlsSuite::TLS12].concat(),
        groups: vec![TlsGroup::X25519, TlsGroup::Secp256r1],
        record_max: 1 << 14,
        protocols: vec![H2.into(), b"http/1.1"[..].into()],
        ..ServerTlsPlan::default()
    };
    ServerTls::new(plan).unwrap()
}

fn plan() -> ClientTlsPlan {
    ClientTlsPlan {
        has_tls12: true,
        has_tls13: true,
        suites: [&TlsSuite::TLS13[..], &TlsSuite::TLS12].concat(),
        groups: vec![TlsGroup::X25519],
        record_max: 1 << 14,
        protocols: vec![b"http/1.1"[..].into()],
        sends_name: true,
        ..ClientTlsPlan::default()
    }
}

/// Does a handshake; the client sends a line that the server echoes.
async fn connect(plan: ClientTlsPlan) -> io::Result<Arc<TlsDetails>> {
    connect_to("localhost", plan).await
}

async fn connect_to(name: &str, plan: ClientTlsPlan) -> io::Result<Arc<TlsDetails>> {
    let (here, there) = UnixStream::pair().unwrap();
    here.set_nonblocking(true).unwrap();
    there.set_nonblocking(true).unwrap();
    let (mut client, mut accepted) = (Stream::new(here.into()), Stream::new(there.into()));
    let name = TlsServerName::parse(name).unwrap();
    client.secure(ClientTls::new(plan).unwrap().session(&name)?);
    accepted.secure(server().session(None, false, &[], None)?);
    crate::spawn(async move {
        if poll_fn(|cx| accepted.poll_handshake(cx)).await.is_ok() {
            let mut line = Vec::with_capacity(100);
            poll_fn(|cx| accepted.poll_read(cx, &mut line)).await.unwrap();
            poll_fn(|cx| accepted.poll_write(cx, &[IoSlice::new(&line)])).await.unwrap();
        }
    });
    poll_fn(|cx| client.poll_handshake(cx)).await?;
    poll_fn(|cx| client.poll_write(cx, &[IoSlice::new(b"a line")])).await?;
    let mut line = Vec::with_capacity(100);
    poll_fn(|cx| client.poll_read(cx, &mut line)).await?;
    assert_eq!(line, b"a line");
    Ok(client.tls().unwrap().clone())
}

#[test]
fn client_and_server_negotiate_common_settings() {
    crate::run(async {
        let details = connect(plan()).await.unwrap();
        assert_eq!((details.version, details.group), ("TLSv1.3", TlsGroup::X25519.code()));
        assert!(details.has_protocol(b"http/1.1") && !details.is_resumed);
        let older = ClientTlsPlan {
            has_tls13: false,
            suites: vec![TlsSuite::EcdheEcdsaAes128GcmSha256],
            groups: vec![TlsGroup::Secp256r1],
            ..plan()
        };
        let details = connect(older).await.unwrap();
        assert_eq!((details.version, details.group), ("TLSv1.2", TlsGroup::Secp256r1.code()));
        assert_eq!(details.cipher_suite, TlsSuite::EcdheEcdsaAes128GcmSha256.code());
    })
    .unwrap();
}

#[test]
fn no_common_cipher_suite_is_an_error() {
    crate::run(async {
        let rsa = vec![TlsSuite::EcdheRsaAes128GcmSha256];
        let rsa = ClientTlsPlan { has_tls13: false, suites: rsa, ..plan() };
        let error = connect(rsa).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    })
    .unwrap();
}

#[test]
fn a_certificate_without_a_trusted_root_is_refused() {
    crate::run(async {
        let other = crate::testing::tls::RSA_CERTIFICATE.as_bytes();
        let trust = ServerTrust::Roots(TrustedRoots::read(other).unwrap());
        let error = connect(ClientTlsPlan { trust, ..plan() }).await.unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
    })
    .unwrap();
}

#[test]
fn the_fault_of_a_certificate_is_reported() {
    crate::run(async {
        use crate::testing::tls::RSA_CERTIFICATE;
        let trusting = |text: &str| {
            let trusted = TrustedCertificates::read(text.as_bytes()).unwrap();
            let rules = ChainRules { trusted, revoked: None, depth_max: 1 };
            ClientTlsPlan { trust: ServerTrust::Chain(rules), ..plan() }
        };
        let fault = |error: io::Error| CertificateFault::of(&error).expect("a fault");
        assert!(connect_to("localhost", trusting(ECDSA_CERTIFICATE)).await.is_ok());
        let error = connect_to("other.test", trusting(ECDSA_CERTIFICATE)).await.unwrap_err();
        assert_eq!(fault(error), CertificateFault::OtherName);
        let error = connect_to("localhost", trusting(RSA_CERTIFICATE)).await.unwrap_err();
        assert_eq!(fault(error), CertificateFault::Chain(ChainFault::SelfSigned));
    })
    .unwrap();
}

#[test]
fn server_names_are_parsed() {
    for name in ["localhost", "a.example", "127.0.0.1", "::1"] {
        assert!(TlsServerName::parse(name).is_some(), "{name}");
    }
    assert!(TlsServerName::parse("a b").is_none());
}

//! Every source over TLS: whom it trusts, and how it shows who it is.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use testing::Peer;
use wire::xds::CLUSTER;

use super::Source;
use super::consul::ConsulSource;
use super::docker::DockerSource;
use super::etcd::EtcdSource;
use super::kubernetes::{KubernetesServices, KubernetesSource};
use super::testing::lists;
use super::xds::XdsSource;
use super::xds::testing::{FakeControlPlane, state_of};
use crate::http::{HttpClient, HttpPlace, TlsIdentity};
use crate::kubernetes::ApiServerPlace;
use crate::wanted::GroupKey;

/// `ca.pem` has signed `server.pem`, for `localhost`, and `client.pem`, but nothing of `other.pem`.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/testdata").join(name)
}

/// A TLS server in front of a plain one, which ends TLS and passes on the rest.
fn secured(plain: SocketAddr, wants_certificate: bool) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Arc::new(settings(wants_certificate));
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let session = ServerConnection::new(settings.clone()).unwrap();
            let front = TlsFront {
                session: Arc::new(session.into()),
                client,
                server: TcpStream::connect(plain).unwrap(),
            };
            thread::spawn(move || front.run());
        }
    });
    address
}

fn settings(wants_certificate: bool) -> ServerConfig {
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
    let builder = match wants_certificate {
        true => {
            let verifier = WebPkiClientVerifier::builder(roots.into()).build().unwrap();
            ServerConfig::builder().with_client_cert_verifier(verifier)
        }
        false => ServerConfig::builder().with_no_client_auth(),
    };
    let mut settings = builder.with_single_cert(chain, key).unwrap();
    settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    settings
}

struct TlsFront {
    session: Arc<Mutex<ServerConnection>>,
    client: TcpStream,
    server: TcpStream,
}

impl TlsFront {
    fn run(self) {
        let back = Self {
            session: self.session.clone(),
            client: self.client.try_clone().unwrap(),
            server: self.server.try_clone().unwrap(),
        };
        let passing = thread::spawn(move || back.to_client());
        self.to_server();
        let _ = self.server.shutdown(Shutdown::Both);
        passing.join().unwrap();
        let _ = self.client.shutdown(Shutdown::Both);
    }

    /// Ends with the client, or its mistake.
    fn to_server(&self) -> Option<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = (&self.client).read(&mut buffer).ok().filter(|count| *count > 0)?;
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                let mut session = self.session.lock().unwrap();
                session.read_tls(&mut rest).ok()?;
                let processed = session.process_new_packets();
                self.flush(&mut session)?;
                let mut plain = vec![0; processed.ok()?.plaintext_bytes_to_read()];
                session.reader().read_exact(&mut plain).ok()?;
                (&self.server).write_all(&plain).ok()?;
            }
        }
    }

    fn to_client(&self) -> Option<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = (&self.server).read(&mut buffer).ok()?;
            let mut session = self.session.lock().unwrap();
            match count {
                0 => session.send_close_notify(),
                _ => session.writer().write_all(&buffer[..count]).ok()?,
            }
            self.flush(&mut session)?;
            if count == 0 {
                return self.client.shutdown(Shutdown::Write).ok();
            }
        }
    }

    fn flush(&self, session: &mut ServerConnection) -> Option<()> {
        while session.wants_write() {
            session.write_tls(&mut &self.client).ok()?;
        }
        Some(())
    }
}

type MakeSource = fn(HttpPlace) -> Box<dyn Source>;

fn consul(place: HttpPlace) -> Box<dyn Source> {
    Box::new(ConsulSource {
        client: HttpClient::new(place),
        path: ConsulSource::path("app", None),
        group: GroupKey::parse("app").unwrap(),
        token: None,
    })
}

fn docker(place: HttpPlace) -> Box<dyn Source> {
    Box::new(DockerSource::new(HttpClient::new(place), false))
}

fn etcd(place: HttpPlace) -> Box<dyn Source> {
    Box::new(EtcdSource::new(HttpClient::new(place), "/w/", None))
}

fn kubernetes(place: HttpPlace) -> Box<dyn Source> {
    let services = KubernetesServices::parse("shop/web").unwrap();
    Box::new(KubernetesSource::new(ApiServerPlace::new(place, None), services))
}

fn xds(place: HttpPlace) -> Box<dyn Source> {
    Box::new(XdsSource::new(place, Default::default(), false, Vec::new(), None))
}

/// What all sources but xDS ask for, with nothing in it.
fn answer(request: &str) -> String {
    let body = match request.split([' ', '?']).nth(1).unwrap_or_default() {
        "/version" => "{}",
        "/v1.24/events" => return "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n".to_owned(),
        "/v3/kv/range" => r#"{"header":{"revision":"1"}}"#,
        path if path.starts_with("/apis/") => r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#,
        _ => "[]",
    };
    let length = body.len();
    format!("HTTP/1.1 200 OK\nX-Consul-Index: 1\nContent-Length: {length}\n\n{body}")
}

/// Whether a source reads its lists over TLS, and why not.
struct TlsTrial {
    make: MakeSource,
    address: SocketAddr,
}

impl TlsTrial {
    fn run(&self, host: &str, roots: &str, identity: Option<TlsIdentity>) -> Result<(), String> {
        let url = format!("https://{host}:{}", self.address.port());
        let place = HttpPlace::parse(&url, &file(roots)).unwrap().with_identity(identity).unwrap();
        let (lists, why) = lists(&mut *(self.make)(place), 1);
        if lists.len() == 1 { Ok(()) } else { Err(why) }
    }
}

#[test]
fn every_source_checks_certificates_and_shows_its_own() {
    let plane = FakeControlPlane::playing(|mut stream| {
        stream.request()?;
        stream.head()?;
        stream.send(&state_of(CLUSTER, "1", &[]))?;
        stream.idle()
    });
    let peer = Peer::answering(answer);
    let sources: [(MakeSource, SocketAddr); 5] = [
        (consul, peer.address),
        (docker, peer.address),
        (etcd, peer.address),
        (kubernetes, peer.address),
        (xds, plane.address),
    ];
    let identity = TlsIdentity { certificate: file("client.pem"), key: file("client.key") };
    for (make, plain) in sources {
        let open = TlsTrial { make, address: secured(plain, false) };
        assert_eq!(open.run("localhost", "ca.pem", None), Ok(()));
        let untrusted = open.run("localhost", "other.pem", None).unwrap_err();
        assert!(untrusted.contains("UnknownIssuer"), "{untrusted}");
        let misnamed = open.run("127.0.0.1", "ca.pem", None).unwrap_err();
        assert!(misnamed.contains("not valid for name"), "{misnamed}");
        let closed = TlsTrial { make, address: secured(plain, true) };
        assert_eq!(closed.run("localhost", "ca.pem", Some(identity.clone())), Ok(()));
        let unknown = closed.run("localhost", "ca.pem", None).unwrap_err();
        assert!(unknown.contains("CertificateRequired"), "{unknown}");
    }
}

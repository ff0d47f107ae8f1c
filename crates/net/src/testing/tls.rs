//! A TLS client over any blocking stream, and certificates for servers.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::CertificateCompressionAlgorithm;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, ResolvesClientCert, Resumption,
    Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::compress::{CertDecompressor, DecompressionFailed};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    ClientConfig, ClientConnection, NamedGroup, SignatureScheme, StreamOwned,
    SupportedProtocolVersion, version,
};

use crate::tls::record::{ContentType, HEADER, OVERHEAD_MAX, RecordKey};
use crate::tls::{Credential, PrivateKey, ServerVerifier, read_certificates};

/// A certificate for `localhost` with an ECDSA key; its common name says so.
pub const ECDSA_CERTIFICATE: &str = include_str!("tls/ecdsa.pem");
/// The key of [`ECDSA_CERTIFICATE`].
pub const ECDSA_KEY: &str = include_str!("tls/ecdsa.key");
/// A certificate for `localhost` with an RSA key.
pub const RSA_CERTIFICATE: &str = include_str!("tls/rsa.pem");
/// The key of [`RSA_CERTIFICATE`].
pub const RSA_KEY: &str = include_str!("tls/rsa.key");

/// The first certificate of a PEM file, as DER.
pub fn der(pem: &str) -> Vec<u8> {
    read_certificates(pem.as_bytes()).expect("a certificate")[0].to_vec()
}

/// A section of a PEM file.
pub fn pem(label: &str, der: &[u8]) -> String {
    let mut text = Vec::new();
    wire::pem::encode(label, der, &mut text);
    String::from_utf8(text).expect("PEM is ASCII")
}

/// The contents of the first section of a PEM file.
pub fn pem_contents(text: &str) -> Vec<u8> {
    let section = wire::pem::PemSections::new(text.as_bytes()).next();
    section.expect("a section").expect("sound PEM").contents.to_vec()
}

/// The client's end of an established TLS 1.3 connection, which sends arbitrary records.
pub struct RawRecords<S> {
    seal: RecordKey,
    open: RecordKey,
    socket: S,
}

/// Configuration of a client.
#[derive(Clone)]
pub struct TlsClient {
    config: ClientConfig,
}

/// The client's end of a connection.
pub struct TlsClientStream<S: Read + Write>(StreamOwned<ClientConnection, S>);

impl TlsClient {
    /// A client that accepts every certificate.
    pub fn new() -> Self {
        Self::with_versions(&[&version::TLS12, &version::TLS13])
    }

    /// A client that speaks only TLS 1.2.
    pub fn tls12() -> Self {
        Self::with_versions(&[&version::TLS12])
    }

    fn with_versions(versions: &[&'static SupportedProtocolVersion]) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Arc::new(ServerVerifier::of_any(provider.clone()));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("the versions exist")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.enable_secret_extraction = true;
        Self { config }
    }

    /// Offers these application protocols.
    pub fn offering(mut self, protocols: &[&[u8]]) -> Self {
        self.config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        self
    }

    /// Presents this certificate when a server requests one.
    pub fn showing(mut self, certificate: &str, key: &str) -> Self {
        let credential = Credential::read(certificate.as_bytes(), key.as_bytes(), &[]);
        let credential = CertifiedKey::clone(&credential.expect("a sound certificate").key);
        self.config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(credential));
        self
    }

    /// Presents these bytes as certificates, the client's own first, and signs with this key.
    pub fn showing_any(mut self, chain: &[Vec<u8>], key: &str) -> Self {
        let key = PrivateKey::read(key.as_bytes(), &[]).expect("a key");
        let chain = chain.iter().map(|der| der.clone().into()).collect();
        let shown = CertifiedKey::new(chain, key.signing_key());
        self.config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(shown));
        self
    }

    /// Presents the certificate `stolen`, but signs with the key `own`.
    pub fn pretending(mut self, stolen: (&str, &str), own: (&str, &str)) -> Self {
        let read = |(certificate, key): (&str, &str)| {
            Credential::read(certificate.as_bytes(), key.as_bytes(), &[]).expect("a certificate")
        };
        let (Credential { key: stolen, .. }, Credential { key: own, .. }) =
            (read(stolen), read(own));
        let shown = CertifiedKey::new(stolen.cert.clone(), own.key.clone());
        self.config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(shown));
        self
    }

    /// Presents no certificate.
    pub fn showing_nothing(mut self) -> Self {
        self.config.client_auth_cert_resolver = Arc::new(NoCertificate);
        self
    }

    /// Offers sessions of one server name to servers of any name.
    pub fn confusing_names(mut self) -> Self {
        let store = ConfusedSessions(Arc::new(ClientSessionMemoryCache::new(16)));
        self.config.resumption = Resumption::store(Arc::new(store));
        self
    }

    /// Sends early data if possible.
    pub fn with_early_data(mut self) -> Self {
        self.config.enable_early_data = true;
        self
    }

    /// Accepts compressed certificates, and counts them.
    pub fn decompressing(mut self, decompressed: &'static AtomicUsize) -> Self {
        let decompressor = Box::leak(Box::new(CountingDecompressor(decompressed)));
        self.config.cert_decompressors = vec![decompressor];
        self
    }

    /// Begins a connection. The handshake is done by the first read or write.
    pub fn connect<S: Read + Write>(&self, name: &str, stream: S) -> TlsClientStream<S> {
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let connection = ClientConnection::new(Arc::new(self.config.clone()), name);
        TlsClientStream(StreamOwned::new(connection.expect("a sound configuration"), stream))
    }
}

impl Default for TlsClient {
    fn default() -> Self {
        Self::new()
    }
}

/// Has no certificate.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// Stores all sessions under one name.
#[derive(Debug)]
struct ConfusedSessions(Arc<ClientSessionMemoryCache>);

impl ConfusedSessions {
    fn name() -> ServerName<'static> {
        ServerName::from(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
    }
}

impl ClientSessionStore for ConfusedSessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(Self::name(), group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.kx_hint(&Self::name())
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.0.set_tls12_session(Self::name(), session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(&Self::name())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.0.remove_tls12_session(&Self::name());
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(Self::name(), ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&Self::name())
    }
}

/// Counts decompressed certificates.
#[derive(Debug)]
struct CountingDecompressor(&'static AtomicUsize);

impl CertDecompressor for CountingDecompressor {
    fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        let length = output.len();
        match zlib_rs::decompress_slice(output, input, zlib_rs::InflateConfig::default()) {
            (certificate, zlib_rs::ReturnCode::Ok) if certificate.len() == length => {
                self.0.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(DecompressionFailed),
        }
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Zlib
    }
}

impl<S: Read + Write> TlsClientStream<S> {
    /// Sends early data. False: the session does not permit it.
    pub fn write_early(&mut self, bytes: &[u8]) -> bool {
        self.0.conn.early_data().is_some_and(|mut early| early.write_all(bytes).is_ok())
    }

    /// Whether the server accepted the early data.
    pub fn is_early_data_accepted(&self) -> bool {
        self.0.conn.is_early_data_accepted()
    }

    pub fn certificate(&self) -> Vec<u8> {
        let chain = self.0.conn.peer_certificates().unwrap_or_default();
        chain.first().map(|der| der.to_vec()).unwrap_or_default()
    }

    pub fn protocol(&self) -> Option<&[u8]> {
        self.0.conn.alpn_protocol()
    }

    /// Changes the client's sending key, and requests the same from the server.
    pub fn refresh_keys(&mut self) {
        self.0.conn.refresh_traffic_keys().expect("the handshake is over");
    }

    /// Sends close_notify.
    pub fn close(&mut self) -> io::Result<()> {
        self.0.conn.send_close_notify();
        self.0.flush()
    }

    /// Gives up the session but keeps its keys. All of the server's records must have been read.
    pub fn into_records(self) -> RawRecords<S> {
        let (connection, socket) = self.0.into_parts();
        let secrets = connection.dangerous_extract_secrets().expect("the handshake is over");
        let key = |secrets| RecordKey::new(secrets, true).expect("a suite of TLS 1.3");
        RawRecords { seal: key(secrets.tx), open: key(secrets.rx), socket }
    }

    /// The underlying stream.
    pub fn below(&mut self) -> &mut S {
        &mut self.0.sock
    }
}

impl<S: Read + Write> RawRecords<S> {
    /// Type of handshake messages.
    pub const HANDSHAKE: u8 = 22;
    /// Type of application data.
    pub const DATA: u8 = 23;

    pub fn send(&mut self, kind: u8, text: &[u8]) -> io::Result<()> {
        let mut record = vec![0; text.len() + OVERHEAD_MAX];
        let sealed = self.seal.seal(ContentType(kind), &[text], &mut record);
        record.truncate(sealed.expect("text that fits"));
        self.socket.write_all(&record)
    }

    /// Reads a record: its type and contents; `None`: the server has closed the connection.
    pub fn receive(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        let mut record = vec![0; HEADER];
        if self.socket.read(&mut record[..1])? == 0 {
            return Ok(None);
        }
        self.socket.read_exact(&mut record[1..])?;
        let payload = u16::from_be_bytes([record[3], record[4]]);
        record.resize(HEADER + usize::from(payload), 0);
        self.socket.read_exact(&mut record[HEADER..])?;
        let (kind, text) = self.open.open(&mut record).expect("a record of the server");
        Ok(Some((kind.0, record[text].to_vec())))
    }
}

impl<S: Read + Write> Read for TlsClientStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<S: Read + Write> Write for TlsClientStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

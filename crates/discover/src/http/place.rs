//! Where an HTTP server is: `http://HOST:PORT/BASE`, `https://…`, `unix:/PATH`, or a path.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// How long connecting to one address may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long a write may take.
const WRITE_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct HttpPlace {
    at: PlaceKind,
    /// `Host`.
    pub host: String,
    /// What every path begins with.
    pub base: String,
}

#[derive(Clone, Debug)]
enum PlaceKind {
    Unix(PathBuf),
    Tcp(String),
    Tls(String, TlsFiles),
}

/// The files of TLS. They are read for each connection, because they are replaced now and then.
#[derive(Clone, Debug)]
struct TlsFiles {
    /// The certificates that are trusted.
    roots: PathBuf,
    identity: Option<TlsIdentity>,
    /// Whether the protocol is HTTP/2.
    speaks_http2: bool,
}

/// The certificate with which a client shows who it is, and its key.
#[derive(Clone, Debug)]
pub struct TlsIdentity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl HttpPlace {
    /// `roots`: a file with the certificates that are trusted.
    pub fn parse(text: &str, roots: &Path) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").or(text.starts_with('/').then_some(text)) {
            let at = PlaceKind::Unix(path.trim_start_matches("//").into());
            return Ok(Self { at, host: "localhost".to_owned(), base: String::new() });
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid(text))?;
        let (host, base) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let default_port = if scheme == "https" { 443 } else { 80 };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let is_bad = |byte: u8| byte <= b' ' || byte == b'@' || byte == 127;
        if host.is_empty() || rest.bytes().any(is_bad) {
            return Err(invalid(text));
        }
        let address = if has_port { host.to_owned() } else { format!("{host}:{default_port}") };
        let at = match scheme {
            "http" => PlaceKind::Tcp(address),
            "https" => {
                let roots = roots.to_owned();
                let files = TlsFiles { roots, identity: None, speaks_http2: false };
                files.read()?;
                PlaceKind::Tls(address, files)
            }
            _ => return Err(invalid(text)),
        };
        Ok(Self { at, host: host.to_owned(), base: base.trim_end_matches('/').to_owned() })
    }

    /// The same place, to which a client shows this certificate.
    pub fn with_identity(mut self, identity: Option<TlsIdentity>) -> Result<Self, String> {
        if let PlaceKind::Tls(_, files) = &mut self.at {
            files.identity = identity;
            files.read()?;
        }
        Ok(self)
    }

    /// The same place, for HTTP/2.
    pub fn for_http2(mut self) -> Self {
        if let PlaceKind::Tls(_, files) = &mut self.at {
            files.speaks_http2 = true;
        }
        self
    }

    pub fn is_secure(&self) -> bool {
        matches!(self.at, PlaceKind::Tls(..))
    }

    pub fn is_socket(&self) -> bool {
        matches!(self.at, PlaceKind::Unix(_))
    }

    pub fn connect(&self) -> io::Result<HttpStream> {
        match &self.at {
            PlaceKind::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(WRITE_MAX))?;
                Ok(HttpStream::Unix(stream))
            }
            PlaceKind::Tcp(address) => Ok(HttpStream::Tcp(connect(address)?)),
            PlaceKind::Tls(address, files) => {
                let host = address.rsplit_once(':').map_or(&**address, |(host, _)| host);
                let host = host.trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(host).map_err(io::Error::other)?;
                let settings = Arc::new(files.read().map_err(io::Error::other)?);
                let session = ClientConnection::new(settings, name).map_err(io::Error::other)?;
                Ok(HttpStream::Tls(Box::new(StreamOwned::new(session, connect(address)?))))
            }
        }
    }
}

fn invalid(text: &str) -> String {
    format!("\"{text}\" is neither a URL nor a socket (http://HOST:PORT, unix:/PATH)")
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{address} has no address"));
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(WRITE_MAX))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl TlsFiles {
    fn read(&self) -> Result<ClientConfig, String> {
        let settings = ClientConfig::builder().with_root_certificates(read_roots(&self.roots)?);
        let mut settings = match &self.identity {
            None => settings.with_no_client_auth(),
            Some(TlsIdentity { certificate, key }) => {
                let chain = certificates(certificate)?;
                let read = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error))?;
                let made = settings.with_client_auth_cert(chain, read);
                made.map_err(|error| failed(certificate, error))?
            }
        };
        if self.speaks_http2 {
            settings.alpn_protocols = vec![b"h2".to_vec()];
        }
        Ok(settings)
    }
}

fn read_roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        // A root certificate that rustls refuses is skipped, so it makes no server trusted.
        let _ = roots.add(certificate);
    }
    (!roots.is_empty()).then_some(roots).ok_or_else(|| failed(file, "no certificate can be used"))
}

/// The certificates of a file, of which there is at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read.map_err(|error| failed(file, error))? {
        none if none.is_empty() => Err(failed(file, "there is no certificate in it")),
        certificates => Ok(certificates),
    }
}

fn failed(file: &Path, why: impl std::fmt::Display) -> String {
    format!("{}: {why}", file.display())
}

/// A connection of any kind.
pub enum HttpStream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl HttpStream {
    /// How long each read may take.
    pub fn set_silence(&self, most: Duration) -> io::Result<()> {
        // Zero would mean no limit.
        let most = Some(most.max(Duration::from_millis(1)));
        match self {
            Self::Unix(stream) => stream.set_read_timeout(most),
            Self::Tcp(stream) => stream.set_read_timeout(most),
            Self::Tls(stream) => stream.sock.set_read_timeout(most),
        }
    }
}

impl Read for HttpStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(out),
            Self::Tcp(stream) => stream.read(out),
            Self::Tls(stream) => stream.read(out),
        }
    }
}

impl Write for HttpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.flush(),
            Self::Tcp(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_urls_and_sockets() {
        let parse = |text: &str| HttpPlace::parse(text, Path::new("/none"));
        let place = parse("http://10.0.0.1:8500/api/").unwrap();
        assert_eq!((&*place.host, &*place.base), ("10.0.0.1:8500", "/api"));
        let PlaceKind::Tcp(address) = parse("http://[::1]").unwrap().at else { panic!("TCP") };
        assert_eq!(address, "[::1]:80");
        for socket in ["unix:/run/a.sock", "/run/a.sock", "unix:///run/a.sock"] {
            let PlaceKind::Unix(path) = parse(socket).unwrap().at else { panic!("{socket}") };
            assert_eq!(path, Path::new("/run/a.sock"));
        }
        for wrong in ["", "10.0.0.1:80", "ftp://a", "http://", "http://a b/", "http://u@a"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("https://a.test").unwrap_err().contains("/none"));
    }
}

//! Where an HTTP server is: `http://HOST:PORT/BASE`, `https://…`, `unix:/PATH`, or a path.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
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
    Tls(String, TlsRoots),
}

/// Whom to trust.
#[derive(Clone)]
struct TlsRoots(Arc<ClientConfig>);

impl std::fmt::Debug for TlsRoots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsRoots")
    }
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
            "https" => PlaceKind::Tls(address, TlsRoots::read(roots)?),
            _ => return Err(invalid(text)),
        };
        Ok(Self { at, host: host.to_owned(), base: base.trim_end_matches('/').to_owned() })
    }

    pub fn is_socket(&self) -> bool {
        matches!(self.at, PlaceKind::Unix(_))
    }

    pub(super) fn connect(&self) -> io::Result<HttpStream> {
        match &self.at {
            PlaceKind::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(WRITE_MAX))?;
                Ok(HttpStream::Unix(stream))
            }
            PlaceKind::Tcp(address) => Ok(HttpStream::Tcp(connect(address)?)),
            PlaceKind::Tls(address, roots) => {
                let host = address.rsplit_once(':').map_or(&**address, |(host, _)| host);
                let host = host.trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(host).map_err(io::Error::other)?;
                let session = ClientConnection::new(roots.0.clone(), name);
                let session = session.map_err(io::Error::other)?;
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

impl TlsRoots {
    fn read(file: &Path) -> Result<Self, String> {
        let failed = |why: String| format!("{}: {why}", file.display());
        let mut roots = RootCertStore::empty();
        let certificates =
            CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| failed(error.to_string()))?;
            // An authority that cannot be used is one that nobody is trusted by.
            let _ = roots.add(certificate);
        }
        if roots.is_empty() {
            return Err(failed("there is no certificate in it".to_owned()));
        }
        let settings = ClientConfig::builder().with_root_certificates(roots);
        Ok(Self(Arc::new(settings.with_no_client_auth())))
    }
}

/// A connection of any kind.
pub(super) enum HttpStream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl HttpStream {
    /// How long each read may take.
    pub(super) fn set_silence(&self, most: Duration) -> io::Result<()> {
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

//! Where an HTTP server is: `http://HOST:PORT/BASE`, `https://…`, `unix:/PATH`, or a path.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// How long connecting to one address may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);

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

    /// Connects, and gives the stream the same deadline. The handshake of TLS comes with the first
    /// write.
    pub fn connect(&self, until: Instant) -> io::Result<HttpStream> {
        let (address, files) = match &self.at {
            PlaceKind::Unix(path) => {
                let socket = Socket::Unix(UnixStream::connect(path)?);
                return Ok(HttpStream::Plain(DeadlineSocket { socket, until }));
            }
            PlaceKind::Tcp(address) => (address, None),
            PlaceKind::Tls(address, files) => (address, Some(files)),
        };
        let session = files.map(|files| files.begin(address)).transpose()?;
        let socket = Socket::Tcp(connect(address, until)?);
        let socket = DeadlineSocket { socket, until };
        Ok(match session {
            None => HttpStream::Plain(socket),
            Some(session) => HttpStream::Tls(Box::new(StreamOwned::new(session, socket))),
        })
    }
}

fn invalid(text: &str) -> String {
    format!("\"{text}\" is neither a URL nor a socket (http://HOST:PORT, unix:/PATH)")
}

fn connect(address: &str, until: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{address} has no address"));
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(until)?.min(CONNECT_MAX)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The time until a deadline, which is not zero: to a socket that would mean no limit.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    (!left.is_zero()).then_some(left).ok_or_else(|| io::ErrorKind::TimedOut.into())
}

impl TlsFiles {
    fn begin(&self, address: &str) -> io::Result<ClientConnection> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let settings = Arc::new(self.read().map_err(io::Error::other)?);
        ClientConnection::new(settings, name.map_err(io::Error::other)?).map_err(io::Error::other)
    }

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
    Plain(DeadlineSocket),
    Tls(Box<StreamOwned<ClientConnection, DeadlineSocket>>),
}

impl HttpStream {
    /// When reads and writes end with `TimedOut`. Of TLS, what came before is not lost.
    pub fn set_deadline(&mut self, until: Instant) {
        match self {
            Self::Plain(socket) => socket.until = until,
            Self::Tls(stream) => stream.sock.until = until,
        }
    }
}

impl Read for HttpStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(out),
            Self::Tls(stream) => stream.read(out),
        }
    }
}

impl Write for HttpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// A socket with a deadline, below TLS: a handshake or a record may come byte by byte, so a limit
/// for each read would be none.
pub struct DeadlineSocket {
    socket: Socket,
    until: Instant,
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Read for DeadlineSocket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = Some(left(self.until)?);
        let read = match &mut self.socket {
            Socket::Unix(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(out)),
            Socket::Tcp(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(out)),
        };
        read.map_err(timed_out)
    }
}

impl Write for DeadlineSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = Some(left(self.until)?);
        let wrote = match &mut self.socket {
            Socket::Unix(stream) => {
                stream.set_write_timeout(left).and_then(|()| stream.write(bytes))
            }
            Socket::Tcp(stream) => {
                stream.set_write_timeout(left).and_then(|()| stream.write(bytes))
            }
        };
        wrote.map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What Linux calls a timeout of a socket.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
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

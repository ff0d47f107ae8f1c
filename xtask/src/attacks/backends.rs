//! Replies of backends that mean much work: tiny pieces, complaints, heads without end, and coded
//! bodies.
//!
//! A backend sends one of them without a pause, a client reads it, and another client asks
//! meanwhile. Only how long that one waits is judged.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::bystander::{Bystander, BystanderLatency};
use crate::own_certificate::OwnCertificate;
use crate::packages;
use crate::running::Running;

/// How long a backend sends.
const SENDS: Duration = Duration::from_secs(2);
/// How much it sends in one call, unless the attack says otherwise.
const CALL_BYTES: usize = 64 * 1024;
/// The longest that the other client may wait half of the time, and at all, on a machine that does
/// other things besides.
const WAIT_MAX: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(250)];
/// How long the other client asks alone before.
const ALONE: Duration = Duration::from_millis(300);

/// An endless reply.
struct BackendAttack {
    name: &'static str,
    way: ClientWay,
    location: &'static str,
    head: &'static [u8],
    piece: &'static [u8],
    /// How much the backend sends in one call.
    call_bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientWay {
    Http,
    Https,
    Http2,
    /// Through `stream {}`.
    Stream,
}

const fn attack(
    name: &'static str,
    location: &'static str,
    head: &'static [u8],
    piece: &'static [u8],
) -> BackendAttack {
    BackendAttack { name, way: ClientWay::Http, location, head, piece, call_bytes: CALL_BYTES }
}

/// Chunks of one byte, read in this way.
const fn chunks(name: &'static str, way: ClientWay) -> BackendAttack {
    BackendAttack { way, ..attack(name, PROXY, CHUNKED, CHUNK) }
}

const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
const PROXY: &str =
    "proxy_pass http://BACKEND; proxy_http_version 1.1; proxy_max_temp_file_size 0;";
const FASTCGI: &str = "fastcgi_pass BACKEND; fastcgi_max_temp_file_size 0;";
const SCGI: &str = "scgi_pass BACKEND; scgi_max_temp_file_size 0;";

const UWSGI: &str = "uwsgi_pass BACKEND; uwsgi_max_temp_file_size 0;";
const MEMCACHED: &str = "set $memcached_key k; memcached_pass BACKEND;";
const GUNZIP: &str = "gunzip on; proxy_pass http://BACKEND; proxy_max_temp_file_size 0;";
const GZIPPED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
const CHUNK: &[u8] = b"1\r\na\r\n";

const ATTACKS: &[BackendAttack] = &[
    chunks("chunks of 1 byte", ClientWay::Http),
    chunks("chunks over TLS", ClientWay::Https),
    chunks("chunks over HTTP/2", ClientWay::Http2),
    chunks("chunks through stream", ClientWay::Stream),
    attack(
        "chunks, unbuffered",
        "proxy_pass http://BACKEND; proxy_http_version 1.1; proxy_buffering off;",
        CHUNKED,
        CHUNK,
    ),
    attack(
        "chunks, compressed",
        "gzip on; gzip_types *; proxy_pass http://BACKEND; proxy_http_version 1.1;",
        CHUNKED,
        CHUNK,
    ),
    attack(
        "records of 1 byte",
        FASTCGI,
        b"\x01\x06\0\x01\0\x02\0\0\n\n",
        b"\x01\x06\0\x01\0\x01\0\0a",
    ),
    attack("stderr of 1 byte", FASTCGI, b"", b"\x01\x07\0\x01\0\x01\0\0e"),
    attack("SCGI", SCGI, b"Status: 200\r\n\r\n", b"a"),
    attack("uwsgi", UWSGI, b"Status: 200\r\n\r\n", b"a"),
    attack("uwsgi, a head without end", UWSGI, b"Status: 200\r\n", b"a: b\r\n"),
    BackendAttack {
        call_bytes: 1,
        ..attack("uwsgi, 1 byte a call", UWSGI, b"Status: 200\r\n\r\n", b"a")
    },
    attack("memcached", MEMCACHED, b"VALUE k 0 9000000000\r\n", b"a"),
    attack("memcached, no end of line", MEMCACHED, b"VALUE k 0 1", b" "),
    BackendAttack {
        call_bytes: 1,
        ..attack("memcached, 1 byte a call", MEMCACHED, b"VALUE k 0 9000000000\r\n", b"a")
    },
    attack(
        "a gzip name",
        GUNZIP,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\0\0\0\0\0\x03",
        b"a",
    ),
    attack("gzip members", GUNZIP, GZIPPED, b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0"),
    // A block of one literal and matches with codes of one bit: a byte expands to 1,032.
    attack(
        "a gzip bomb",
        GUNZIP,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03\
          \xec\xc1\x01\x01\0\0\0\x80\x90\xfe\xaf\xee\x08\x0a",
        b"\0",
    ),
];

/// Runs those whose name contains `only`; `complain` is told for how long others had to wait.
pub(super) fn run(
    program: &Path,
    only: &str,
    mut complain: impl FnMut(String),
) -> Result<(), String> {
    println!("reply of a backend         others p50/p99/max");
    let [median_max, max] = WAIT_MAX;
    for attack in ATTACKS.iter().filter(|attack| attack.name.contains(only)) {
        let latency = attack.run(program).map_err(|why| format!("{}: {why}", attack.name))?;
        println!("{:26} {latency}", attack.name);
        if let Err(why) = latency.judge(median_max, max) {
            complain(format!("{}: {why}", attack.name));
        }
    }
    Ok(())
}

impl BackendAttack {
    /// How long another client waited.
    fn run(&'static self, program: &Path) -> Result<BystanderLatency, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|err| err.to_string())?;
        let backend = listener.local_addr().map_err(|err| err.to_string())?;
        let keys = OwnCertificate::new()?;
        let server = self.start(program, &keys, backend)?;
        let thread = thread::spawn(move || self.serve(&listener));
        let other = Bystander::start(&server.file("other.sock"))?;
        thread::sleep(ALONE);
        self.read_all(&server)?;
        let latency = other.stop()?;
        drop(server);
        // A backend that was never asked waits no longer.
        let _ = TcpStream::connect(backend);
        if !thread.join().map_err(|_| "the backend panicked")? {
            return Err("the backend was not asked".to_owned());
        }
        Ok(latency)
    }

    fn start(
        &self,
        program: &Path,
        keys: &OwnCertificate,
        backend: SocketAddr,
    ) -> Result<Running, String> {
        let location = self.location.replace("BACKEND", &backend.to_string());
        let keys = keys.directives();
        let http = format!(
            "error_log DIR/error.log error;
             server {{
                 listen ADDRESS ssl; listen unix:DIR/other.sock; http2 on; {keys}
                 keepalive_requests 1000000;
                 location / {{ default_type text/plain; return 200 hello\\n; }}
                 location /backend {{ {location} }}
             }}"
        );
        let stream =
            format!("stream {{ server {{ listen unix:DIR/stream.sock; proxy_pass {backend}; }} }}");
        Running::start_with(program, 1, &http, &stream)
    }

    /// Reads the reply until it ends or breaks off.
    fn read_all(&self, server: &Running) -> Result<(), String> {
        match self.way {
            ClientWay::Http => read_socket(&server.file("other.sock")),
            ClientWay::Stream => read_socket(&server.file("stream.sock")),
            ClientWay::Https => read_with_curl("--http1.1", server.address),
            ClientWay::Http2 => read_with_curl("--http2", server.address),
        }
    }

    /// Answers one request, for as long as the server takes it. Whether there was one.
    fn serve(&self, listener: &TcpListener) -> bool {
        let Ok((mut server, _)) = listener.accept() else { return false };
        match server.read(&mut [0; 4096]) {
            Ok(1..) => {
                let _ = self.send(&mut server);
                true
            }
            _ => false,
        }
    }

    fn send(&self, server: &mut TcpStream) -> std::io::Result<()> {
        server.set_nodelay(true)?;
        server.set_write_timeout(Some(SENDS))?;
        server.write_all(self.head)?;
        let pieces = self.piece.repeat((self.call_bytes / self.piece.len()).max(1));
        let begun = Instant::now();
        while begun.elapsed() < SENDS {
            server.write_all(&pieces)?;
        }
        Ok(())
    }
}

fn read_socket(socket: &Path) -> Result<(), String> {
    let read = || -> std::io::Result<()> {
        let mut client = UnixStream::connect(socket)?;
        client.set_read_timeout(Some(4 * SENDS))?;
        client.write_all(b"GET /backend HTTP/1.1\r\nHost: one\r\nConnection: close\r\n\r\n")?;
        let mut buffer = vec![0; CALL_BYTES];
        while client.read(&mut buffer)? > 0 {}
        Ok(())
    };
    read().map_err(|err| err.to_string())
}

/// curl may complain of the reply's end.
fn read_with_curl(version: &str, server: SocketAddr) -> Result<(), String> {
    packages::need(&[("curl", "curl")])?;
    let most = (4 * SENDS).as_secs().to_string();
    Command::new("curl")
        .args(["-sk", version, "--max-time", &most, &format!("https://{server}/backend")])
        .stdout(Stdio::null())
        .status()
        .map_err(|err| err.to_string())?;
    Ok(())
}

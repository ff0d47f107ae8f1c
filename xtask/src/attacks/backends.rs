//! Replies of backends that mean much work: tiny pieces, complaints, and coded bodies.
//!
//! A backend sends one of them without a pause, a client reads it, and another client asks
//! meanwhile. Only how long that one waits is judged.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::bystander::Bystander;
use crate::running::Running;

/// How long a backend sends.
const SENDS: Duration = Duration::from_secs(2);
/// How much it sends in one call.
const CALL_BYTES: usize = 64 * 1024;
/// The longest that the other client may wait, on a machine that does other things besides.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// How long the other client asks alone before.
const ALONE: Duration = Duration::from_millis(200);

/// An endless reply.
struct BackendAttack {
    name: &'static str,
    location: &'static str,
    head: &'static [u8],
    piece: &'static [u8],
}

const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
const PROXY: &str =
    "proxy_pass http://BACKEND; proxy_http_version 1.1; proxy_max_temp_file_size 0;";
const FASTCGI: &str = "fastcgi_pass BACKEND; fastcgi_max_temp_file_size 0;";
const SCGI: &str = "scgi_pass BACKEND; scgi_max_temp_file_size 0;";

const ATTACKS: &[BackendAttack] = &[
    BackendAttack {
        name: "chunks of 1 byte",
        location: PROXY,
        head: CHUNKED,
        piece: b"1\r\na\r\n",
    },
    BackendAttack {
        name: "chunks, unbuffered",
        location: "proxy_pass http://BACKEND; proxy_http_version 1.1; proxy_buffering off;",
        head: CHUNKED,
        piece: b"1\r\na\r\n",
    },
    BackendAttack {
        name: "chunks, compressed",
        location: "gzip on; gzip_types *; proxy_pass http://BACKEND; proxy_http_version 1.1;",
        head: CHUNKED,
        piece: b"1\r\na\r\n",
    },
    BackendAttack {
        name: "records of 1 byte",
        location: FASTCGI,
        head: b"\x01\x06\0\x01\0\x02\0\0\n\n",
        piece: b"\x01\x06\0\x01\0\x01\0\0a",
    },
    BackendAttack {
        name: "stderr of 1 byte",
        location: FASTCGI,
        head: b"",
        piece: b"\x01\x07\0\x01\0\x01\0\0e",
    },
    BackendAttack { name: "SCGI", location: SCGI, head: b"Status: 200\r\n\r\n", piece: b"a" },
    BackendAttack {
        name: "a gzip name",
        location: "gunzip on; proxy_pass http://BACKEND; proxy_max_temp_file_size 0;",
        head: b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\0\0\0\0\0\x03",
        piece: b"a",
    },
    BackendAttack {
        name: "gzip members",
        location: "gunzip on; proxy_pass http://BACKEND; proxy_max_temp_file_size 0;",
        head: b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
        piece: b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0",
    },
];

/// Runs those whose name contains `only`; `complain` is told for how long others had to wait.
pub(super) fn run(
    program: &Path,
    only: &str,
    mut complain: impl FnMut(String),
) -> Result<(), String> {
    println!("reply of a backend         others p50/p99/max");
    for attack in ATTACKS.iter().filter(|attack| attack.name.contains(only)) {
        let longest = attack.run(program).map_err(|why| format!("{}: {why}", attack.name))?;
        if longest > WAIT_MAX {
            complain(format!("{}: others waited {} ms", attack.name, longest.as_millis()));
        }
    }
    Ok(())
}

impl BackendAttack {
    /// How long another client waited.
    fn run(&'static self, program: &Path) -> Result<Duration, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|err| err.to_string())?;
        let address = listener.local_addr().map_err(|err| err.to_string())?;
        let location = self.location.replace("BACKEND", &address.to_string());
        let server = Running::start(
            program,
            1,
            &format!(
                "error_log DIR/error.log error;
                 server {{
                     listen ADDRESS; listen unix:DIR/other.sock; keepalive_requests 1000000;
                     location / {{ default_type text/plain; return 200 hello\\n; }}
                     location /backend {{ {location} }}
                 }}"
            ),
        )?;
        let backend = thread::spawn(move || self.serve(&listener));
        let other = Bystander::start(&server.file("other.sock"))?;
        thread::sleep(ALONE);
        read_all(&server.file("other.sock")).map_err(|err| err.to_string())?;
        let latency = other.stop()?;
        drop(server);
        // A backend that was never asked waits no longer.
        let _ = TcpStream::connect(address);
        let _ = backend.join();
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let [median, p99, max] = [latency.median, latency.p99, latency.max].map(ms);
        println!("{:26} {median:.2} / {p99:.2} / {max:.2} ms", self.name);
        Ok(latency.max)
    }

    /// Answers one request, for as long as the server takes it.
    fn serve(&self, listener: &TcpListener) {
        let Ok((mut server, _)) = listener.accept() else { return };
        let _ = self.send(&mut server);
    }

    fn send(&self, server: &mut TcpStream) -> std::io::Result<()> {
        let _ = server.read(&mut [0; 4096])?;
        server.set_write_timeout(Some(SENDS))?;
        server.write_all(self.head)?;
        let pieces = self.piece.repeat(CALL_BYTES / self.piece.len());
        let begun = Instant::now();
        while begun.elapsed() < SENDS {
            server.write_all(&pieces)?;
        }
        Ok(())
    }
}

/// Asks for the reply, and reads it until it ends or breaks off.
fn read_all(socket: &Path) -> std::io::Result<()> {
    let mut client = UnixStream::connect(socket)?;
    client.set_read_timeout(Some(4 * SENDS))?;
    client.write_all(b"GET /backend HTTP/1.1\r\nHost: one\r\nConnection: close\r\n\r\n")?;
    let mut buffer = vec![0; CALL_BYTES];
    while client.read(&mut buffer)? > 0 {}
    Ok(())
}

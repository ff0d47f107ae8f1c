//! Many sessions at once that sit between a client and a backend and carry nothing any more.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use super::holdings::{Holdings, settled_above};
use super::sessions::steady_descriptors;
use crate::stream_server::ServedStream;

/// What each session has carried in either direction before it is idle.
const PIECE: usize = 64;
/// Sessions that were served before the memory is looked at for the first time.
const WARM_UP: usize = 100;

/// Memory of a server for each of many idle sessions; a line about it.
pub(super) fn measure(program: &Path, sessions: usize) -> Result<String, String> {
    let backend = HeldBackend::start().map_err(|err| format!("a backend: {err}"))?;
    let lines =
        format!("server {{ listen LISTEN backlog=4096; proxy_pass 127.0.0.1:{}; }}", backend.port);
    let server = ServedStream::start(program, "", &lines)?;
    for _ in 0..WARM_UP {
        answered(&mut server.connect()?)?;
    }
    backend.clear();
    let descriptors = steady_descriptors(&server)?;
    let before = Holdings::of(&server.server)?;
    let mut clients = Vec::with_capacity(sessions);
    for number in 0..sessions {
        let mut client = server.connect()?;
        answered(&mut client).map_err(|why| format!("session {number}: {why}"))?;
        clients.push(client);
    }
    let during = settled_above(&server.server, descriptors + 2 * sessions)?;
    let each = (during.bytes - before.bytes) / sessions as f64;
    Ok(format!(
        "{sessions} idle sessions take {each:.0} B each, memory {:.1} -> {:.1} MB",
        before.bytes / 1e6,
        during.bytes / 1e6
    ))
}

/// A backend whose connections stay open, played by whoever asks.
struct HeldBackend {
    port: u16,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl HeldBackend {
    fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let connections = Arc::<Mutex<Vec<_>>>::default();
        let accepted = connections.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut piece = [0; PIECE];
                let answered =
                    stream.read_exact(&mut piece).and_then(|()| stream.write_all(&piece));
                if let (Ok(()), Ok(mut accepted)) = (answered, accepted.lock()) {
                    accepted.push(stream);
                }
            }
        });
        Ok(Self { port, connections })
    }

    fn clear(&self) {
        if let Ok(mut connections) = self.connections.lock() {
            connections.clear();
        }
    }
}

impl Drop for HeldBackend {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Has a client send something that comes back.
fn answered(client: &mut TcpStream) -> Result<(), String> {
    let mut piece = [b'x'; PIECE];
    let answered = client.write_all(&piece).and_then(|()| client.read_exact(&mut piece));
    answered.map_err(|err| err.to_string())
}

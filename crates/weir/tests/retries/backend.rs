//! A backend that can be killed: its socket and all its connections are closed at once, in whatever
//! state they are.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use testing::{Peer, PeerConnection, field};

use super::Tally;

/// Between two parts of a reply, for one reply of so many: time to be killed in.
const PAUSE: Duration = Duration::from_millis(2);
const PAUSES: usize = 16;

pub struct Backend {
    pub address: SocketAddr,
    tally: Arc<Tally>,
    running: Option<(Arc<Life>, Peer)>,
}

/// From start to kill.
struct Life {
    /// Locked by whoever counts, so that nothing is counted once a connection has been closed.
    ended: RwLock<bool>,
    tally: Arc<Tally>,
}

impl Backend {
    /// Each has an address of its own, which no outgoing connection takes the port of.
    pub fn start(number: usize, tally: &Arc<Tally>) -> std::io::Result<Backend> {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 1, 1 + number as u8), 0))?;
        let address = listener.local_addr()?;
        let mut backend = Backend { address, tally: tally.clone(), running: None };
        backend.serve(listener);
        Ok(backend)
    }

    fn serve(&mut self, listener: TcpListener) {
        let life = Arc::new(Life { ended: RwLock::new(false), tally: self.tally.clone() });
        let shared = life.clone();
        let peer = Peer::at(listener, move |connection| answer_all(&shared, connection));
        self.running = Some((life, peer));
    }

    /// Ends it: nobody listens, and every connection is closed.
    pub fn kill(&mut self) {
        let Some((life, peer)) = self.running.take() else { return };
        *life.ended.write().unwrap() = true;
        peer.kill();
    }

    /// Starts it again where it was.
    pub fn revive(&mut self) {
        match TcpListener::bind(self.address) {
            Ok(listener) => self.serve(listener),
            Err(error) => {
                self.tally.complain(format!("{} cannot be bound again: {error}", self.address));
            }
        }
    }
}

impl Life {
    /// Does something that the kill comes before or after.
    fn alive(&self, act: impl FnOnce() -> Option<()>) -> Option<()> {
        let ended = self.ended.read().unwrap();
        if *ended { None } else { act() }
    }
}

fn answer_all(life: &Life, mut connection: PeerConnection) -> Option<()> {
    connection.stream().set_nodelay(true).ok()?;
    loop {
        let head = String::from_utf8(connection.until(b"\r\n\r\n")?).ok()?;
        let number = |name| field(&head, name).and_then(|value| value.parse().ok());
        let (request, length) =
            (number("X-Number").unwrap_or(usize::MAX), number("Content-Length"));
        let once = ["POST /once", "LOCK /once", "PATCH /once"];
        let repeats = !once.iter().any(|start| head.starts_with(start));
        life.alive(|| {
            life.tally.came(request, repeats);
            Some(())
        })?;
        connection.exactly(length.unwrap_or(0))?;
        answer(life, &mut connection, request)?;
    }
}

/// Now and then in two parts with a pause between: within the head, or within the body. Once the
/// head is complete, nobody may be asked again.
fn answer(life: &Life, connection: &mut PeerConnection, number: usize) -> Option<()> {
    let body = format!("request {number}\n");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let whole = format!("{head}{body}").into_bytes();
    let first = match (number % PAUSES, number / PAUSES % 2) {
        (0, 0) => number % head.len() + 1,
        (0, _) => head.len() + 2,
        _ => whole.len(),
    };
    let (first, rest) = whole.split_at(first);
    life.alive(|| {
        connection.send_raw(first)?;
        if first.len() >= head.len() {
            life.tally.begin(number);
        }
        Some(())
    })?;
    if rest.is_empty() {
        return Some(());
    }
    thread::sleep(PAUSE);
    life.alive(|| {
        connection.send_raw(rest)?;
        life.tally.begin(number);
        Some(())
    })
}

//! A backend that can be killed: its socket and all its connections are closed at once, in whatever
//! state they are.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::thread;
use std::time::Duration;

use super::Tally;

/// Between two looks at whether the backend is to end.
const LOOK: Duration = Duration::from_millis(1);

/// Between two parts of a reply, for one reply of so many: time to be killed in.
const PAUSE: Duration = Duration::from_millis(2);
const PAUSES: usize = 16;

pub struct Backend {
    pub address: SocketAddr,
    tally: Arc<Tally>,
    life: Option<Arc<Life>>,
}

/// From start to kill.
struct Life {
    /// Locked by whoever counts, so that nothing is counted once a connection has been closed.
    ended: RwLock<bool>,
    next: AtomicU64,
    connections: Mutex<HashMap<u64, TcpStream>>,
    tally: Arc<Tally>,
}

impl Backend {
    /// Each has an address of its own, which no outgoing connection takes the port of.
    pub fn start(number: usize, tally: &Arc<Tally>) -> std::io::Result<Backend> {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 1, 1 + number as u8), 0))?;
        let address = listener.local_addr()?;
        let mut backend = Backend { address, tally: tally.clone(), life: None };
        backend.serve(listener)?;
        Ok(backend)
    }

    fn serve(&mut self, listener: TcpListener) -> std::io::Result<()> {
        listener.set_nonblocking(true)?;
        let life = Arc::new(Life {
            ended: RwLock::new(false),
            next: AtomicU64::new(0),
            connections: Mutex::new(HashMap::new()),
            tally: self.tally.clone(),
        });
        self.life = Some(life.clone());
        thread::spawn(move || accept(&listener, &life));
        Ok(())
    }

    /// Ends it: nobody listens, and every connection is closed.
    pub fn kill(&mut self) {
        let Some(life) = self.life.take() else { return };
        *life.ended.write().unwrap() = true;
        for stream in life.lock().values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // The thread that accepts has its own end of the socket.
        while Arc::strong_count(&life) > 1 {
            thread::sleep(LOOK);
        }
    }

    /// Starts it again where it was.
    pub fn revive(&mut self) {
        let bound = TcpListener::bind(self.address).and_then(|listener| self.serve(listener));
        if let Err(error) = bound {
            self.tally.complain(format!("{} cannot be bound again: {error}", self.address));
        }
    }
}

impl Life {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.connections.lock().unwrap()
    }

    fn has_ended(&self) -> bool {
        *self.ended.read().unwrap()
    }

    /// Does something that the kill comes before or after.
    fn alive(&self, act: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
        let ended = self.ended.read().unwrap();
        if *ended { Err(ErrorKind::ConnectionAborted.into()) } else { act() }
    }
}

fn accept(listener: &TcpListener, life: &Arc<Life>) {
    while !life.has_ended() {
        match listener.accept() {
            Ok((stream, _)) => {
                let life = life.clone();
                thread::spawn(move || {
                    let _ = converse(&life, stream);
                });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(LOOK),
            Err(_) => return,
        }
    }
}

fn converse(life: &Arc<Life>, stream: TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let id = life.next.fetch_add(1, Ordering::Relaxed);
    life.lock().insert(id, stream.try_clone()?);
    let result = answer_all(life, &stream);
    life.lock().remove(&id);
    result
}

fn answer_all(life: &Life, mut stream: &TcpStream) -> std::io::Result<()> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    // Looked at after it has been entered in the list: whoever ends the life later closes it.
    while !life.has_ended() {
        let head = loop {
            if let Some(end) = find(&bytes, b"\r\n\r\n") {
                break end + 4;
            }
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                length => bytes.extend_from_slice(&buffer[..length]),
            }
        };
        let request = Request::of(&bytes[..head]);
        life.alive(|| {
            life.tally.came(request.number, request.repeats);
            Ok(())
        })?;
        while bytes.len() < head + request.length {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                length => bytes.extend_from_slice(&buffer[..length]),
            }
        }
        bytes.drain(..head + request.length);
        answer(life, stream, request.number)?;
    }
    Ok(())
}

/// Now and then in two parts with a pause between: within the head, or within the body. Once the
/// head is complete, nobody may be asked again.
fn answer(life: &Life, mut stream: &TcpStream, number: usize) -> std::io::Result<()> {
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
        stream.write_all(first)?;
        if first.len() >= head.len() {
            life.tally.begin(number);
        }
        Ok(())
    })?;
    if rest.is_empty() {
        return Ok(());
    }
    thread::sleep(PAUSE);
    life.alive(|| {
        stream.write_all(rest)?;
        life.tally.begin(number);
        Ok(())
    })
}

struct Request {
    number: usize,
    repeats: bool,
    length: usize,
}

impl Request {
    fn of(head: &[u8]) -> Self {
        let head = String::from_utf8_lossy(head);
        let field = |name: &str| {
            let value = |line: &str| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok();
            head.lines().find_map(value)
        };
        let once = ["POST /once", "LOCK /once", "PATCH /once"];
        Self {
            number: field("X-Number").unwrap_or(usize::MAX),
            repeats: !once.iter().any(|start| head.starts_with(start)),
            length: field("Content-Length").unwrap_or(0),
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

//! A backend that counts what it has in progress, and answers as many requests as it is let.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use testing::{Peer, PeerConnection, Server, eventually};

pub struct Backend {
    pub address: SocketAddr,
    counts: Arc<(Mutex<Counts>, Condvar)>,
}

#[derive(Default)]
pub struct Counts {
    pub in_progress: usize,
    pub most: usize,
    /// The paths of requests, in the order of their coming.
    pub came: Vec<String>,
    pub connections: usize,
    /// How many more it may answer.
    allowed: usize,
}

impl Backend {
    pub fn start() -> Self {
        let counts = Arc::<(Mutex<Counts>, Condvar)>::default();
        let shared = counts.clone();
        let peer = Peer::playing(move |connection| serve(connection, &shared));
        Self { address: peer.address, counts }
    }

    pub fn allow(&self, more: usize) {
        self.counts.0.lock().unwrap().allowed += more;
        self.counts.1.notify_all();
    }

    pub fn counts<T>(&self, look: impl FnOnce(&Counts) -> T) -> T {
        look(&self.counts.0.lock().unwrap())
    }

    /// The most that were in progress so far.
    pub fn count_most_anew(&self) -> usize {
        let mut counts = self.counts.0.lock().unwrap();
        let now = counts.in_progress;
        std::mem::replace(&mut counts.most, now)
    }

    /// Waits until that many are in progress.
    pub fn await_in_progress(&self, count: usize) {
        eventually(&format!("{count} in progress"), || {
            self.counts(|counts| counts.in_progress == count).then_some(())
        });
    }
}

/// Sends a request, on a connection of its own.
pub fn send(server: &Server, path: &str) -> TcpStream {
    let mut stream = server.connect();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: test\r\n\r\n").unwrap();
    stream
}

/// All that comes until the end of the connection.
pub fn reply(mut stream: impl Read) -> String {
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn serve(mut connection: PeerConnection, (counts, changed): &(Mutex<Counts>, Condvar)) {
    counts.lock().unwrap().connections += 1;
    while let Some(request) = connection.request() {
        let path = request.split(' ').nth(1).unwrap();
        let mut now = counts.lock().unwrap();
        now.in_progress += 1;
        now.most = now.most.max(now.in_progress);
        now.came.push(path.to_owned());
        now = changed.wait_while(now, |counts| counts.allowed == 0).unwrap();
        now.allowed -= 1;
        drop(now);
        thread::sleep(Duration::from_millis(2));
        // Whoever reads the reply may send another request at once.
        counts.lock().unwrap().in_progress -= 1;
        connection.send(&format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{path}", path.len()));
    }
}

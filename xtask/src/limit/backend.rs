//! A backend that gets slower the more it has to do at once, as a database or an application server
//! beyond its best does. It costs no CPU worth the name: it sleeps.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, sleep};
use std::time::Duration;

use crate::acceptor::Acceptor;

/// How long a request takes that is alone.
pub(super) const ALONE: Duration = Duration::from_millis(25);
/// With so many in progress a request takes twice as long. Requests per second are the most there,
/// and half as many with nearly four times the requests.
pub(super) const BEST: usize = 150;

/// A thread that sleeps needs little.
const STACK: usize = 64 * 1024;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndone\n";

/// A running backend.
pub(super) struct Backend {
    acceptor: Acceptor,
    progress: Arc<Progress>,
}

#[derive(Default)]
struct Progress {
    now: AtomicUsize,
    highest: AtomicUsize,
}

impl Backend {
    pub(super) fn start() -> Result<Self> {
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        let acceptor = Acceptor::start(0, move |client| {
            let progress = Arc::clone(&shared);
            let thread = Builder::new().stack_size(STACK);
            // Without a thread the connection is closed, and the server says so.
            let _ = thread.spawn(move || serve(client, &progress));
        })?;
        Ok(Self { acceptor, progress })
    }

    pub(super) fn port(&self) -> u16 {
        self.acceptor.port()
    }

    /// The most requests that it has had at once.
    pub(super) fn highest(&self) -> usize {
        self.progress.highest.load(Ordering::Relaxed)
    }
}

/// How long a request takes that has come as the `n`th of those in progress.
fn time(n: usize) -> Duration {
    ALONE.mul_f64(1.0 + (n as f64 / BEST as f64).powi(2))
}

/// Requests without a body, until the server closes.
fn serve(client: TcpStream, progress: &Progress) -> Result<()> {
    client.set_nodelay(true)?;
    let mut client = BufReader::new(client);
    let mut line = String::new();
    loop {
        line.clear();
        match client.read_line(&mut line)? {
            0 => return Ok(()),
            1 | 2 => {
                progress.take(|n| sleep(time(n)));
                client.get_mut().write_all(REPLY)?;
            }
            _ => {}
        }
    }
}

impl Progress {
    /// A request counts from its last byte until before the first of its reply: never while the
    /// server may already have sent the next one.
    fn take(&self, work: impl FnOnce(usize)) {
        let n = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.highest.fetch_max(n, Ordering::Relaxed);
        work(n);
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::Ipv4Addr;

    #[test]
    fn it_is_at_its_best_where_it_says() {
        let rate = |n: usize| n as f64 / time(n).as_secs_f64();
        let best = rate(BEST);
        assert!((1..600).all(|n| rate(n) <= best));
        assert!(rate(4 * BEST) < best / 2.0);
    }

    #[test]
    fn it_counts_what_it_has_at_once() {
        let backend = Backend::start().expect("a port");
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, backend.port()));
        let mut clients = [(); 3].map(|()| connect().expect("it accepts"));
        for client in &mut clients {
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
        }
        for client in &mut clients {
            let mut reply = vec![0; REPLY.len()];
            client.read_exact(&mut reply).expect("it answers");
            assert_eq!(reply, REPLY);
        }
        assert!((1..=3).contains(&backend.highest()));
        assert_eq!(backend.progress.now.load(Ordering::SeqCst), 0);
    }
}

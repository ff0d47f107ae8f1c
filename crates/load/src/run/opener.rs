//! Opens the connections of a client.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use net::{Address, Connect, Stream, Timer};

use super::failure::RunFailure;
use super::shared::ThreadShared;

const NOT_HTTP2: &str = "the server did not select h2 (ALPN)";

pub(super) struct Opener {
    shared: Rc<ThreadShared>,
    address: Rc<Address>,
    connect: Connect,
}

impl Opener {
    /// For client `number`, counted over all threads.
    pub(super) fn new(shared: Rc<ThreadShared>, address: Rc<Address>, number: u64) -> Self {
        let from = shared.plan.source(number).map(|ip| SocketAddr::new(ip, 0));
        let transport = shared.transport.clone();
        Self { address, connect: Connect { from, transport, ..Connect::default() }, shared }
    }

    /// The same with a receive buffer of this size.
    pub(super) fn with_receive_buffer(self, bytes: usize) -> Self {
        Self { connect: Connect { rcvbuf: Some(bytes), ..self.connect }, ..self }
    }

    /// Whether connections have a TLS handshake.
    pub(super) fn is_secure(&self) -> bool {
        self.connect.transport.is_some()
    }

    /// Begins to open a connection without waiting for it.
    pub(super) fn begin(&self) -> Result<Stream, RunFailure> {
        let begun = self.connect.begin_stream(&self.address);
        begun.map_err(|(_, error)| RunFailure::of_connect(&error))
    }

    /// Opens a connection, with its handshake, before the timer is due.
    pub(super) async fn open(&self, timer: &Timer) -> Result<Stream, RunFailure> {
        let since = Instant::now();
        let begun = self.connect.begin(&self.address);
        let mut connecting = begun.map_err(|(_, error)| RunFailure::of_connect(&error))?;
        let connected = poll_fn(|cx| match connecting.poll(cx) {
            Poll::Ready(connected) => Poll::Ready(connected.map_err(|error| self.failed(&error))),
            Poll::Pending => timer.poll(cx).map(|()| Err(RunFailure::Timeout)),
        });
        let stream = connected.await?;
        stream.set_nodelay();
        if let Some(details) = stream.tls() {
            self.shared.secured(details, since);
            if self.shared.plan.streams.is_some() && !details.has_protocol(b"h2") {
                return Err(self.handshake_failed(NOT_HTTP2.into()));
            }
        }
        Ok(stream)
    }

    fn failed(&self, error: &io::Error) -> RunFailure {
        if !self.is_secure() {
            return RunFailure::of_connect(error);
        }
        match RunFailure::of_secure_connect(error) {
            RunFailure::Handshake => self.handshake_failed(error.to_string()),
            other => other,
        }
    }

    fn handshake_failed(&self, why: String) -> RunFailure {
        self.shared.tally.borrow_mut().tls.first_error.get_or_insert(why);
        RunFailure::Handshake
    }
}

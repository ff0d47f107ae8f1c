//! From an accepted connection to the driver of its protocol: the PROXY protocol's header comes
//! first, then the handshake of the transport, then a driver is picked.
//!
//! All of it counts into the time for the first head. A connection without a header and without a
//! transport goes to its driver at once, with nothing read.

#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::sync::Arc;

use net::accept::{self, ProxyRefusal, Transport};
use net::{Stream, Timer, buffers, clock};
use observe::{Errno, Level};

use crate::client::Client;
use crate::drive::{Preread, WorkerContext};
use crate::h1::{self, ConnectionState, ParkableConnection};
use crate::site::Protocols;

/// Serves a new connection until it is over, or idle.
pub(crate) async fn serve(
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    stream: Stream,
    held: ConnectionState,
) -> Option<ParkableConnection> {
    let (stream, preread) = match Opening::of(&context, &client) {
        None => (stream, Preread::default()),
        // Boxed: a connection that is served later needs no memory for what came before.
        Some(opening) => Box::pin(opening.run(stream)).await?,
    };
    h1::serve(context, client, stream, held, preread).await
}

/// A step, as log lines name it.
struct AcceptStep {
    call: &'static str,
    doing: &'static str,
}

const HEADER: AcceptStep = AcceptStep { call: "recv()", doing: "reading PROXY protocol" };
const HANDSHAKE: AcceptStep = AcceptStep { call: "handshake", doing: "SSL handshaking" };

/// What a connection goes through before its protocol.
struct Opening {
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    has_header: bool,
    transport: Option<Arc<dyn Transport>>,
    timeout_ms: u64,
}

impl Opening {
    /// What the listening socket asks for; `None`: nothing.
    fn of(context: &Rc<WorkerContext>, client: &Rc<Client>) -> Option<Self> {
        let generation = context.generation();
        let listen = generation.listen(client.listen)?;
        let has_header = listen.protocols.has(Protocols::PROXY_PROTOCOL);
        if !has_header && listen.transport.is_none() {
            return None;
        }
        let server = generation.server(listen.names.default);
        Some(Self {
            context: context.clone(),
            client: client.clone(),
            has_header,
            transport: listen.transport.clone(),
            timeout_ms: server.reading.client_header_timeout_ms,
        })
    }

    /// The stream, and what has been read besides. `None`: the connection is over, which has been
    /// logged.
    async fn run(self, mut stream: Stream) -> Option<(Stream, Preread)> {
        let _waiting = self.context.counts.wait();
        let (timer, began_ms) = (Timer::new(), clock::now_ms());
        timer.set(self.timeout_ms);
        let mut bytes = Vec::new();
        if self.has_header {
            match accept::read_proxy_header(&mut stream, &mut bytes, &timer).await {
                Ok(None) => {}
                Ok(Some(header)) => self.client.proxy_protocol.set(Rc::new(header)).ok()?,
                Err(refusal) => {
                    self.log_refusal(refusal, bytes, HEADER);
                    return None;
                }
            }
        }
        if let Some(transport) = &self.transport {
            match accept::secure(&mut stream, &**transport, &mut bytes, &timer).await {
                Ok(()) => self.client.is_secure.set(true),
                Err(refusal) => {
                    self.log_refusal(refusal, bytes, HANDSHAKE);
                    return None;
                }
            }
        }
        if bytes.is_empty() {
            buffers::give_back(std::mem::take(&mut bytes));
        }
        let spent_ms = clock::now_ms() - began_ms;
        let left_ms = Some(self.timeout_ms.saturating_sub(spent_ms));
        Some((stream, Preread { bytes, left_ms }))
    }

    /// Logs why the connection is over.
    fn log_refusal(&self, refusal: ProxyRefusal, received: Vec<u8>, step: AcceptStep) {
        let generation = self.context.generation();
        let Some(listen) = generation.listen(self.client.listen) else { return };
        let outer = generation.server(listen.names.default).outer;
        let log = &*generation.location(outer).core.error_log;
        let say = |level, message: std::fmt::Arguments<'_>| {
            self.client.log(log, level, message, step.doing, &listen.address);
        };
        match refusal {
            ProxyRefusal::Header(error) => {
                let mut message = Vec::new();
                error.write_message(&received, &mut message);
                say(Level::Error, format_args!("{}", observe::Text(&message)));
            }
            ProxyRefusal::Closed => say(Level::Info, format_args!("client closed connection")),
            ProxyRefusal::Connection(error) => {
                say(Level::Info, format_args!("{} failed{}", step.call, Errno(&error)));
            }
            ProxyRefusal::TimedOut => {
                let error = net::timed_out();
                say(Level::Info, format_args!("client timed out{}", Errno(&error)));
            }
        }
        buffers::give_back(received);
    }
}

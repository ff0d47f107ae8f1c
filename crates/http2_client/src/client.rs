//! A connection, as the senders of requests see it.

use std::rc::Rc;

use net::Stream;
use wire::http2::FieldWriter;

use crate::connection::ClientConnection;
use crate::state::ClientShared;
use crate::{ClientStream, Http2ClientLimits};

/// A connection to a server, for many requests at once. It belongs to one worker.
///
/// When the last handle is dropped, the connection is closed as by
/// [`close_when_idle`](Self::close_when_idle).
#[derive(Clone)]
pub struct Http2Client(Rc<ClientHandle>);

/// What all handles of a connection share; dropping it closes the connection.
struct ClientHandle {
    shared: Rc<ClientShared>,
}

impl Http2Client {
    /// Begins a connection on a stream that is connected and secured. A task on this worker owns
    /// it.
    pub fn start(stream: Stream, limits: Http2ClientLimits) -> Self {
        let shared = ClientShared::new(limits);
        net::spawn(ClientConnection::new(stream, shared.clone()).run());
        Self(Rc::new(ClientHandle { shared }))
    }

    /// The number of streams that can be opened now; 0 while the server does not respond.
    pub fn free_streams(&self) -> usize {
        self.0.shared.resting_state().free_streams()
    }

    /// The number of open streams, without those that were sent and received to their ends.
    pub fn open_streams(&self) -> usize {
        self.0.shared.resting_state().open_streams()
    }

    /// When the last stream ended, or when the connection began; `None` while streams are open.
    pub fn idle_since_ms(&self) -> Option<u64> {
        self.0.shared.resting_state().idle_since_ms()
    }

    /// Whether no stream can ever be opened again.
    pub fn is_over(&self) -> bool {
        self.0.shared.resting_state().is_over()
    }

    /// Opens a stream and queues the head of its request, which `head` writes, pseudo-header fields
    /// first. `head` must not use this connection otherwise. `None` if there is no free stream.
    pub fn open(
        &self,
        head: &mut dyn FnMut(&mut FieldWriter<'_>),
        end_stream: bool,
    ) -> Option<ClientStream> {
        let stream = self.0.shared.state().open(head, end_stream)?;
        Some(ClientStream::new(self.0.shared.clone(), stream))
    }

    #[cfg(test)]
    pub(crate) fn is_resting(&self) -> bool {
        self.0.shared.resting_state().is_resting()
    }

    /// Drops memory that the connection does not need while it is idle. Call it now and then.
    pub fn rest(&self) {
        self.0.shared.resting_state().rest();
    }

    /// Opens no more streams, and closes the connection once no stream is open.
    pub fn close_when_idle(&self) {
        self.0.close_when_idle();
    }
}

impl ClientHandle {
    fn close_when_idle(&self) {
        let mut state = self.shared.state();
        state.is_closing = true;
        state.wake_task();
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        self.close_when_idle();
    }
}

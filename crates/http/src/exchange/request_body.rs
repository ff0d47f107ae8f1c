//! The body of a request: announced by the head, read by whoever wants it, kept where it was read.

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::task::{Context, Poll};

use observe::{Errno, Level};
use wire::http1::framing;

use super::{BodyRules, Exchange, Flow};
use crate::files::TempFile;

/// What is known of a request's body, and what has been read of it.
pub struct RequestBody {
    announced: framing::Body,
    state: State,
}

enum State {
    Unread,
    /// Somebody reads it piece by piece.
    Streamed,
    /// Nobody wants it: the connection throws it away. The number is what nginx calls the length of
    /// a chunked body then: of one that has ended, or what it expects to see of it next.
    Discarded(u64),
    Kept(Kept),
    /// Subrequests have it, too.
    Shared(Rc<Kept>),
}

/// Where a body is that was read.
pub enum Kept {
    /// In memory, in one piece.
    Memory(Vec<u8>),
    /// In a temporary file.
    File(TempFile),
}

/// Why a body could not be read.
#[derive(Debug)]
pub enum RequestBodyError {
    /// It is not chunked as it should be.
    Invalid,
    /// The next chunk makes it longer than `client_max_body_size`.
    TooLarge {
        /// Bytes before the chunk.
        received: u64,
        /// Bytes of the chunk, as far as it is known.
        chunk: u64,
    },
    /// `client_body_timeout` has passed without a byte.
    TimedOut,
    /// The client closed the connection.
    Closed,
    /// The connection failed.
    Connection(io::Error),
    /// The temporary file could not be made or written.
    File(&'static str, PathBuf, io::Error),
}

impl Kept {
    fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.slice().len(),
        }
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        Self { announced: framing::Body::None, state: State::Unread }
    }
}

impl RequestBody {
    pub(crate) fn announce(&mut self, announced: framing::Body) {
        *self = Self { announced, state: State::Unread };
    }

    /// Forgets the body; a temporary file goes with it.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn keep(&mut self, kept: Kept) {
        self.state = State::Kept(kept);
    }

    /// Whether the head announces a body, be it of no bytes.
    pub fn is_announced(&self) -> bool {
        self.announced != framing::Body::None
    }

    /// Its length: as announced, or as it was read.
    pub fn length(&self) -> Option<u64> {
        match (&self.state, self.announced) {
            (State::Kept(kept), _) => Some(kept.len()),
            (State::Shared(kept), _) => Some(kept.len()),
            (_, framing::Body::Length(length)) => Some(length),
            (State::Discarded(length), framing::Body::Chunked) => Some(*length),
            (_, framing::Body::None | framing::Body::Chunked) => None,
        }
    }

    /// Its length as a backend is told: of what was thrown away nothing is left.
    pub fn length_left(&self) -> Option<u64> {
        match self.state {
            State::Discarded(_) if self.is_announced() => Some(0),
            _ => self.length(),
        }
    }

    /// Whether nobody has asked for it yet.
    pub fn is_unread(&self) -> bool {
        matches!(self.state, State::Unread)
    }

    /// Whether nobody can ask for it any more.
    pub fn is_discarded(&self) -> bool {
        matches!(self.state, State::Discarded(_))
    }

    /// What was read, once all of it was.
    pub fn kept(&self) -> Option<&Kept> {
        match &self.state {
            State::Kept(kept) => Some(kept),
            State::Shared(kept) => Some(kept),
            State::Unread | State::Streamed | State::Discarded(_) => None,
        }
    }

    /// The body as a subrequest has it: what has been read of it, and never more.
    pub(crate) fn share(&mut self) -> Self {
        if let State::Kept(_) = &self.state
            && let State::Kept(kept) = std::mem::replace(&mut self.state, State::Unread)
        {
            self.state = State::Shared(Rc::new(kept));
        }
        let state = match &self.state {
            State::Shared(kept) => State::Shared(kept.clone()),
            State::Discarded(length) => State::Discarded(*length),
            State::Unread | State::Streamed | State::Kept(_) => State::Streamed,
        };
        Self { announced: self.announced, state }
    }

    /// The same, but nothing of it: for who asks a question that the body has no part in.
    pub(crate) fn without_content(&self) -> Self {
        Self { announced: self.announced, state: State::Streamed }
    }
}

impl Exchange {
    /// Appends the next bytes of the body, as they come, at most as many as `out` has room for; 0
    /// is the end. For who passes the body on unbuffered; else [`Exchange::read_body`].
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<usize, RequestBodyError>> {
        let Some(downstream) = self.downstream.clone().filter(|_| self.request.body.is_announced())
        else {
            return Poll::Ready(Ok(0));
        };
        match self.request.body.state {
            State::Unread => self.request.body.state = State::Streamed,
            State::Streamed => {}
            State::Discarded(_) | State::Kept(_) | State::Shared(_) => return Poll::Ready(Ok(0)),
        }
        let here = &self.location().core.client_body;
        let rules = BodyRules { size_max: here.size_max, timeout_ms: here.timeout_ms };
        let read = downstream.poll_body(cx, out, rules);
        self.request.length = downstream.request_length();
        read
    }
}

impl Exchange {
    /// A reply is on its way, and nobody has asked for the body: it is thrown away. What is wrong
    /// with it is answered instead of the reply, unless that tells of an error already.
    pub(crate) fn discard_body(&mut self) -> Option<Flow> {
        let downstream = self.downstream.clone()?;
        if !self.request.body.is_announced() || !self.request.body.is_unread() {
            return None;
        }
        let discarded = downstream.discard_body();
        let to_come = match discarded {
            Ok(true) => 0,
            _ => self.server().reading.head.large_client_header_buffers.1 as u64,
        };
        self.request.body.state = State::Discarded(to_come);
        let error = discarded.err()?;
        self.keepalive = false;
        (!self.reply.without_continue).then(|| error.settle(self))
    }
}

impl RequestBodyError {
    /// Logs the reason, and says how the exchange goes on.
    pub fn settle(self, x: &mut Exchange) -> Flow {
        if matches!(x.request.body.state, State::Streamed) {
            // Wherever `error_page` leads, nobody can have it any more.
            x.request.body.state = State::Discarded(0);
        }
        match self {
            Self::Invalid => {
                x.log(Level::Error, format_args!("client sent invalid chunked body"));
                Flow::Status(400)
            }
            Self::TooLarge { received, chunk } => {
                let message = "client intended to send too large chunked body";
                x.log(Level::Error, format_args!("{message}: {received}+{chunk} bytes"));
                Flow::Status(413)
            }
            Self::TimedOut => Flow::Drop(408),
            Self::Closed => {
                x.log(Level::Info, format_args!("client prematurely closed connection"));
                Flow::Drop(400)
            }
            Self::Connection(error) => {
                x.log(Level::Info, format_args!("recv() failed{}", Errno(&error)));
                Flow::Drop(400)
            }
            Self::File(call, path, error) => {
                let path = path.display();
                x.log(Level::Crit, format_args!("{call} \"{path}\" failed{}", Errno(&error)));
                Flow::Status(500)
            }
        }
    }
}

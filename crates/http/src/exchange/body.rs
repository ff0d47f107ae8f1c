//! The sources of a reply's body. They are pulled: the next piece is requested once the last one is
//! written, which is all the back pressure there is.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use net::buffers::LentPart;
use observe::Level;

use super::{Fields, RequestBodyError};

#[derive(Default)]
pub enum Body {
    #[default]
    Empty,
    /// Everything, in memory.
    Bytes(Bytes),
    File(FileSlice),
    /// A source that is pulled piece by piece.
    Stream(Box<dyn BodyStream>),
}

/// A source of body pieces. It has no access to the exchange, which it may outlive.
pub trait BodyStream {
    /// The next piece; `None` is the end.
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>>;

    /// Whether to write the pieces so far before pulling the next one, which takes memory of its
    /// own.
    fn is_better_flushed(&self) -> bool {
        false
    }

    /// Reads ahead while the client takes nothing, if that is useful. The task is woken when there
    /// may be more.
    fn fill(&mut self, _: &mut Context<'_>, _: &mut dyn BodyLog) {}
}

/// The error log for a source: its exchange's, even after the end of the exchange.
pub trait BodyLog {
    fn note(&mut self, level: Level, message: fmt::Arguments<'_>);
}

pub enum Chunk {
    Bytes(Bytes),
    /// A range of a file, which the kernel may copy to the socket.
    File(FileSlice),
    /// No bytes: the pieces so far are to be sent to the client now.
    Flush,
    /// No bytes, and the next may take long: finished pieces may be sent to the client.
    Pause,
    /// Fields after the body; the last piece of a source. Filters do not get it.
    Trailers(Fields),
}

/// Why a body ended early. The connection is closed, so that the client notices.
#[derive(Debug)]
pub enum BodyError {
    /// The source failed.
    Io(io::Error),
    /// The source ended early.
    Truncated,
    /// A backend closed its connection early.
    UpstreamClosed,
    /// A backend ended its reply early: nginx's message.
    UpstreamCutShort(Cow<'static, str>),
    /// A backend sent an invalid body: nginx's message.
    Upstream(Cow<'static, str>),
    /// A backend sent nothing for too long.
    UpstreamTimedOut,
    /// The connection to a backend failed.
    UpstreamRead(io::Error),
    /// This call failed on a temporary file.
    TempFile(&'static str, PathBuf, io::Error),
    /// The body does not match its `Content-Encoding`, or cannot be encoded: nginx's message.
    Coding(Cow<'static, str>),
    /// A subrequest that is a part of it was dropped.
    Subrequest,
    /// The client did not send the rest of the request while the reply was sent.
    Request(Box<RequestBodyError>),
}

impl BodyError {
    /// Whether a backend cut its reply short.
    pub(crate) fn is_of_backend(&self) -> bool {
        use BodyError::{
            Upstream, UpstreamClosed, UpstreamCutShort, UpstreamRead, UpstreamTimedOut,
        };
        matches!(
            self,
            UpstreamClosed | UpstreamCutShort(_) | Upstream(_) | UpstreamTimedOut | UpstreamRead(_)
        )
    }

    /// Whether to discard unsent data. For a client of HTTP/1.0, a head alone is an empty reply.
    pub(crate) fn discards_unsent(&self) -> bool {
        matches!(self, Self::Upstream(_) | Self::TempFile(..) | Self::Coding(_))
    }
}

/// Bytes that stay in memory until they are written.
#[derive(Clone)]
pub enum Bytes {
    /// Part of the program.
    Static(&'static [u8]),
    /// Part of the configuration.
    Shared(Arc<[u8]>),
    /// A part of a cached file in this worker's memory.
    Kept(Rc<[u8]>, u32, u32),
    /// Owned by this exchange.
    Owned(Vec<u8>),
    /// In the worker's buffer that they were received in.
    Lent(LentPart),
}

/// A range of an open file.
#[derive(Clone)]
pub struct FileSlice {
    pub file: Rc<File>,
    pub start: u64,
    /// After the last byte.
    pub end: u64,
}

impl Bytes {
    pub fn len(&self) -> usize {
        self.as_ref().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of them, copied only if they cannot be shared.
    pub fn part(&self, range: Range<usize>) -> Self {
        match self {
            Self::Static(bytes) => Self::Static(&bytes[range]),
            Self::Kept(bytes, start, _) => {
                Self::Kept(bytes.clone(), start + range.start as u32, start + range.end as u32)
            }
            Self::Shared(bytes) => Self::Owned(bytes[range].to_vec()),
            Self::Owned(bytes) => Self::Owned(bytes[range].to_vec()),
            Self::Lent(bytes) => Self::Owned(bytes.as_ref()[range].to_vec()),
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Static(bytes) => bytes,
            Self::Shared(bytes) => bytes,
            Self::Kept(bytes, start, end) => &bytes[*start as usize..*end as usize],
            Self::Owned(bytes) => bytes,
            Self::Lent(bytes) => bytes.as_ref(),
        }
    }
}

impl FileSlice {
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// A part of the range; `range` counts from its start.
    pub fn part(&self, range: Range<u64>) -> Self {
        let (start, end) = (self.start + range.start, self.start + range.end);
        Self { file: self.file.clone(), start, end }
    }
}

impl Body {
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// The next piece; `None` is the end.
    pub(super) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        match self {
            Self::Stream(source) => source.poll_chunk(cx, log),
            whole => Poll::Ready(Ok(match whole.take() {
                Self::Bytes(bytes) => Some(Chunk::Bytes(bytes)),
                Self::File(slice) => Some(Chunk::File(slice)),
                Self::Empty | Self::Stream(_) => None,
            })),
        }
    }
}

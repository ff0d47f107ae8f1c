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

/// A reply's body.
#[derive(Default)]
pub enum Body {
    /// Nothing.
    #[default]
    Empty,
    /// Everything, in memory.
    Bytes(Bytes),
    /// A range of a file.
    File(FileSlice),
    /// A source that is asked piece by piece.
    Stream(Box<dyn BodyStream>),
}

/// A source of body pieces. It knows no exchange, since it may outlive it.
pub trait BodyStream {
    /// The next piece; `None` is the end.
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        log: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>>;

    /// Whether what was given is better written before the next piece is asked for, since that
    /// takes memory of its own.
    fn is_better_flushed(&self) -> bool {
        false
    }

    /// While the client takes nothing: reads ahead what there is, if that is of use. The task is
    /// woken when there may be more.
    fn fill(&mut self, _: &mut Context<'_>, _: &mut dyn BodyLog) {}
}

/// The error log as a source has it: its exchange's, whether that goes on or not.
pub trait BodyLog {
    /// Writes a message.
    fn note(&mut self, level: Level, message: fmt::Arguments<'_>);
}

/// A piece of a body.
pub enum Chunk {
    /// Bytes.
    Bytes(Bytes),
    /// A range of a file, which the socket may take without our touching it.
    File(FileSlice),
    /// Nothing new, but what was given so far is to reach the client now.
    Flush,
    /// Nothing new, and nobody knows when there will be: what is ready may go to the client.
    Pause,
    /// Fields after the body; a source's last piece. Filters are not given it.
    Trailers(Fields),
}

/// Why a body ended before its end. The connection is closed, so that the client notices.
#[derive(Debug)]
pub enum BodyError {
    /// The source failed.
    Io(io::Error),
    /// The source ended early.
    Truncated,
    /// A backend closed its connection early.
    UpstreamClosed,
    /// A backend said that its reply ends here, too early: nginx's words for it.
    UpstreamCutShort(Cow<'static, str>),
    /// What a backend sent is no body: nginx's words for it.
    Upstream(Cow<'static, str>),
    /// A backend was silent for too long.
    UpstreamTimedOut,
    /// The connection to a backend failed.
    UpstreamRead(io::Error),
    /// This call failed on a temporary file.
    TempFile(&'static str, PathBuf, io::Error),
    /// The body is not what its `Content-Encoding` says, or cannot be encoded: nginx's words.
    Coding(Cow<'static, str>),
    /// A subrequest that gives a part of it was dropped.
    Subrequest,
    /// The request, which goes on beside its reply, does not come from the client any more.
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

    /// Whether what is not sent yet is not worth sending. A head alone, to a client of HTTP/1.0,
    /// is an empty reply.
    pub(crate) fn spoils(&self) -> bool {
        matches!(self, Self::Upstream(_) | Self::TempFile(..) | Self::Coding(_))
    }
}

/// Bytes that somebody keeps until they are written.
#[derive(Clone)]
pub enum Bytes {
    /// The program's own.
    Static(&'static [u8]),
    /// The configuration's.
    Shared(Arc<[u8]>),
    /// A part of what this worker keeps in memory: a cached file.
    Kept(Rc<[u8]>, u32, u32),
    /// This exchange's.
    Owned(Vec<u8>),
    /// As they were received, in a buffer of the worker's.
    Lent(LentPart),
}

/// A range of an open file.
#[derive(Clone)]
pub struct FileSlice {
    /// The file.
    pub file: Rc<File>,
    /// The first byte.
    pub start: u64,
    /// After the last byte.
    pub end: u64,
}

impl Bytes {
    /// How many bytes.
    pub fn len(&self) -> usize {
        self.as_ref().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them, copied only where nobody else could keep them.
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
    /// How many bytes.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// A range of the range, counted from its start.
    pub fn part(&self, range: Range<u64>) -> Self {
        let (start, end) = (self.start + range.start, self.start + range.end);
        Self { file: self.file.clone(), start, end }
    }
}

impl Body {
    /// Takes the body out.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Whether the body is empty.
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

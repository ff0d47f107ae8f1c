//! The body of a request: announced by the head, read on demand, kept in memory or in a file.

use std::rc::Rc;

use super::Fields;
use crate::files::TempFile;

/// A request's body, as far as it is announced and read.
pub struct RequestBody {
    announced: Announced,
    pub(super) state: BodyState,
}

/// The length of a body as its head announces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announced {
    #[default]
    None,
    Length(u64),
    /// Chunks, whose last one ends the body.
    Unknown,
}

/// The use of the body so far.
pub(super) enum BodyState {
    Unread,
    /// It is read piece by piece.
    Streamed,
    /// It is discarded by the connection. The number is nginx's length of a chunked body in this
    /// state: its size if it has ended, otherwise the bytes expected next.
    Discarded(u64),
    /// It was read. Subrequests share it, and so do requests to backends while they are sent.
    Kept(Rc<StoredBody>),
}

pub struct StoredBody {
    pub(crate) content: StoredContent,
    /// The fields that followed it.
    pub(crate) trailers: Option<Rc<Fields>>,
}

pub enum StoredContent {
    /// In memory, in one piece.
    Memory(Vec<u8>),
    File(TempFile),
}

impl StoredBody {
    pub(crate) fn in_memory(bytes: Vec<u8>) -> Self {
        Self { content: StoredContent::Memory(bytes), trailers: None }
    }

    pub(crate) fn len(&self) -> u64 {
        match &self.content {
            StoredContent::Memory(bytes) => bytes.len() as u64,
            StoredContent::File(file) => file.slice().len(),
        }
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        Self { announced: Announced::None, state: BodyState::Unread }
    }
}

impl RequestBody {
    pub(crate) fn announce(&mut self, announced: Announced) {
        *self = Self { announced, state: BodyState::Unread };
    }

    /// Drops the body and its temporary file.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn keep(&mut self, kept: StoredBody) {
        self.state = BodyState::Kept(Rc::new(kept));
    }

    /// Whether the head announces a body, even an empty one.
    pub fn is_announced(&self) -> bool {
        self.announced != Announced::None
    }

    /// Its length: as announced, or as it was read.
    pub fn length(&self) -> Option<u64> {
        match (&self.state, self.announced) {
            (BodyState::Kept(kept), _) => Some(kept.len()),
            (_, Announced::Length(length)) => Some(length),
            (BodyState::Discarded(length), Announced::Unknown) => Some(*length),
            (_, Announced::None | Announced::Unknown) => None,
        }
    }

    /// The length to announce to a backend: 0 after the body was discarded.
    pub fn length_left(&self) -> Option<u64> {
        match self.state {
            BodyState::Discarded(_) if self.is_announced() => Some(0),
            _ => self.length(),
        }
    }

    /// Whether it can still be read.
    pub fn is_unread(&self) -> bool {
        matches!(self.state, BodyState::Unread)
    }

    /// Whether it can no longer be read.
    pub fn is_discarded(&self) -> bool {
        matches!(self.state, BodyState::Discarded(_))
    }

    /// The body, once it was read completely.
    pub fn kept(&self) -> Option<&Rc<StoredBody>> {
        match &self.state {
            BodyState::Kept(kept) => Some(kept),
            BodyState::Unread | BodyState::Streamed | BodyState::Discarded(_) => None,
        }
    }

    /// The body for a subrequest: the part that has been read, and never more.
    pub(crate) fn share(&self) -> Self {
        let state = match &self.state {
            BodyState::Kept(kept) => BodyState::Kept(kept.clone()),
            BodyState::Discarded(length) => BodyState::Discarded(*length),
            BodyState::Unread | BodyState::Streamed => BodyState::Streamed,
        };
        Self { announced: self.announced, state }
    }

    /// The body for a subrequest that does not need it: empty.
    pub(crate) fn without_content(&self) -> Self {
        Self { announced: self.announced, state: BodyState::Streamed }
    }
}

//! The body of a request: announced by the head, read by whoever wants it, kept where it was read.

use std::rc::Rc;

use crate::files::TempFile;

/// What is known of a request's body, and what has been read of it.
pub struct RequestBody {
    announced: Announced,
    pub(super) state: BodyState,
}

/// What the head says of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announced {
    /// There is none.
    #[default]
    None,
    /// So many bytes.
    Length(u64),
    /// Its end will show.
    Unknown,
}

/// How far somebody has asked for it.
pub(super) enum BodyState {
    Unread,
    /// Somebody reads it piece by piece.
    Streamed,
    /// Nobody wants it: the connection throws it away. The number is what nginx calls the length of
    /// a chunked body then: of one that has ended, or what it expects to see of it next.
    Discarded(u64),
    /// It was read. Subrequests have it as well, and requests to backends while they are sent.
    Kept(Rc<StoredBody>),
}

/// Where a body is that was read.
pub enum StoredBody {
    /// In memory, in one piece.
    Memory(Vec<u8>),
    /// In a temporary file.
    File(TempFile),
}

impl StoredBody {
    /// How many bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.slice().len(),
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

    /// Forgets the body; a temporary file goes with it.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn keep(&mut self, kept: StoredBody) {
        self.state = BodyState::Kept(Rc::new(kept));
    }

    /// Whether the head announces a body, be it of no bytes.
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

    /// Its length as a backend is told: of what was thrown away nothing is left.
    pub fn length_left(&self) -> Option<u64> {
        match self.state {
            BodyState::Discarded(_) if self.is_announced() => Some(0),
            _ => self.length(),
        }
    }

    /// Whether nobody has asked for it yet.
    pub fn is_unread(&self) -> bool {
        matches!(self.state, BodyState::Unread)
    }

    /// Whether nobody can ask for it any more.
    pub fn is_discarded(&self) -> bool {
        matches!(self.state, BodyState::Discarded(_))
    }

    /// What was read, once all of it was.
    pub fn kept(&self) -> Option<&Rc<StoredBody>> {
        match &self.state {
            BodyState::Kept(kept) => Some(kept),
            BodyState::Unread | BodyState::Streamed | BodyState::Discarded(_) => None,
        }
    }

    /// The body as a subrequest has it: what has been read of it, and never more.
    pub(crate) fn share(&self) -> Self {
        let state = match &self.state {
            BodyState::Kept(kept) => BodyState::Kept(kept.clone()),
            BodyState::Discarded(length) => BodyState::Discarded(*length),
            BodyState::Unread | BodyState::Streamed => BodyState::Streamed,
        };
        Self { announced: self.announced, state }
    }

    /// The same, but nothing of it: for who asks a question that the body has no part in.
    pub(crate) fn without_content(&self) -> Self {
        Self { announced: self.announced, state: BodyState::Streamed }
    }
}

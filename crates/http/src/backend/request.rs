//! The body of a request to a backend.

use std::rc::Rc;

use super::Conf;
use super::carrier::{RequestSource, StreamedSource};
use crate::exchange::{Exchange, Flow, StoredBody};

pub(crate) enum BackendRequestBody {
    None,
    /// The client's body, which has been read, or a body of Weir's own.
    Stored(Rc<StoredBody>),
    /// The client's body as it arrives; with its beginning if that has to be sent again.
    Streamed(Option<Box<StreamedSource>>),
}

impl BackendRequestBody {
    /// The client's body if the family passes it on. It is read first, unless the family's settings
    /// and `can_stream` allow streaming.
    pub(crate) async fn of_client(
        x: &mut Exchange,
        family: &Conf,
        can_stream: bool,
    ) -> Result<Self, Flow> {
        if x.request.body.is_announced() && x.request.body.is_unread() {
            let streams = can_stream && family.passes_body() && !family.reads_body_first();
            match streams {
                true if is_read_at_once(x) => x.read_arrived_body().await?,
                true => return Ok(Self::Streamed(None)),
                false => x.read_body().await?,
            }
        }
        let kept = x.request.body.kept().filter(|_| family.passes_body());
        Ok(kept.map_or(Self::None, |kept| Self::Stored(kept.clone())))
    }

    /// A body that replaces the client's.
    pub(crate) fn made(bytes: Vec<u8>) -> Self {
        Self::Stored(Rc::new(StoredBody::in_memory(bytes)))
    }

    /// The source for the next server.
    pub(super) fn source(&mut self, x: &mut Exchange) -> RequestSource {
        match self {
            Self::Streamed(again) => match again.take() {
                Some(streamed) => RequestSource::Streamed(streamed),
                None => x.arriving_body().map_or(RequestSource::Empty, RequestSource::streamed),
            },
            stored => stored.stored_source(),
        }
    }

    /// The source for a request without a client.
    pub(super) fn stored_source(&self) -> RequestSource {
        match self {
            Self::Stored(body) => RequestSource::stored(body),
            Self::None | Self::Streamed(_) => RequestSource::Empty,
        }
    }
}

/// Whether the whole body of the client has arrived and fits into memory.
fn is_read_at_once(x: &Exchange) -> bool {
    let Some(downstream) = &x.downstream else { return true };
    let rules = &x.location().core.client_body;
    let version = x.request.head.version;
    let has_room = |length| length <= rules.memory_max(version, Some(length)) as u64;
    downstream.whole_body().is_some_and(has_room)
}

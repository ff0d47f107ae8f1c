//! The source of the body of a request to a backend: memory, a file, or the client.

use std::rc::Rc;
use std::task::{Context, Poll};

use net::buffers;

use crate::exchange::{
    ArrivingBody, Fields, FileSlice, RequestBodyError, StoredBody, StoredContent,
};

/// The source of a request's body.
pub(crate) enum RequestSource {
    Empty,
    Memory(Rc<StoredBody>),
    /// A file, and the part of it that a carrier has not taken.
    File(Rc<StoredBody>, FileSlice),
    /// The client, as the body arrives.
    Streamed(Box<StreamedSource>),
}

/// A body that arrives from the client.
pub(crate) struct StreamedSource {
    body: ArrivingBody,
    bytes: Vec<u8>,
    /// Whether `bytes` ends the body.
    is_last: bool,
    /// What was received before `bytes`, to send all of it again; `None`: it is gone.
    earlier: Option<Vec<u8>>,
}

/// How much of a body that is still arriving is kept to be sent again.
const EARLIER_MAX: usize = 4096;

impl RequestSource {
    /// The source of a complete body.
    pub(crate) fn stored(body: &Rc<StoredBody>) -> Self {
        match &body.content {
            StoredContent::Memory(_) => Self::Memory(body.clone()),
            StoredContent::File(file) => Self::File(body.clone(), file.slice()),
        }
    }

    /// The source of a body that is still arriving.
    pub(crate) fn streamed(body: ArrivingBody) -> Self {
        Self::Streamed(Box::new(StreamedSource {
            body,
            bytes: Vec::new(),
            is_last: false,
            earlier: None,
        }))
    }

    /// The part in memory.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Memory(body) => match &body.content {
                StoredContent::Memory(bytes) => bytes,
                StoredContent::File(_) => &[],
            },
            Self::Streamed(streamed) => &streamed.bytes,
            Self::Empty | Self::File(..) => &[],
        }
    }

    /// The fields that follow the body, once all of it has been taken.
    pub(super) fn trailers(&self) -> Option<Rc<Fields>> {
        match self {
            Self::Memory(body) | Self::File(body, _) => body.trailers.clone(),
            Self::Streamed(streamed) => streamed.body.trailers(),
            Self::Empty => None,
        }
    }
}

impl StreamedSource {
    /// The bytes received last.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether those bytes end the body.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Keeps the beginning of the body, in case it has to be sent again.
    pub(super) fn keep_earlier(&mut self) {
        if self.bytes.is_empty() {
            self.earlier = Some(Vec::new());
        }
    }

    /// Goes back to the beginning of the body. Returns whether all of it was kept.
    pub(super) fn rewind(&mut self) -> bool {
        let Some(mut earlier) = self.earlier.take() else { return false };
        if !earlier.is_empty() {
            earlier.append(&mut self.bytes);
            buffers::give_back(std::mem::replace(&mut self.bytes, earlier));
        }
        true
    }

    /// Makes room for the next bytes, which are to replace those received last.
    fn clear(&mut self) {
        if let Some(earlier) = &mut self.earlier {
            if earlier.len() + self.bytes.len() > EARLIER_MAX {
                self.earlier = None;
            } else {
                earlier.extend_from_slice(&self.bytes);
            }
        }
        self.bytes.clear();
    }

    /// Called when the reply begins.
    pub(super) fn continue_beside_reply(&mut self) {
        self.body.continue_beside_reply();
        self.earlier = None;
    }

    /// Replaces the bytes by those that have arrived from the client: all of them, so that few
    /// pieces are sent. Keeps no buffer while nothing has arrived.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RequestBodyError>> {
        self.clear();
        if self.bytes.capacity() == 0 {
            self.bytes = match self.body.length() {
                Some(length) if length >= buffers::LARGE_SIZE as u64 => buffers::lend_large(),
                _ => buffers::lend(),
            };
        }
        let mut read = Poll::Pending;
        while self.bytes.len() < self.bytes.capacity() {
            match self.body.poll_read(cx, &mut self.bytes) {
                Poll::Ready(Ok(1..)) => read = Poll::Ready(Ok(())),
                Poll::Ready(Ok(0)) => {
                    self.is_last = true;
                    read = Poll::Ready(Ok(()));
                    break;
                }
                Poll::Ready(Err(error)) => {
                    read = Poll::Ready(Err(error));
                    break;
                }
                Poll::Pending => break,
            }
        }
        if self.bytes.is_empty() {
            buffers::give_back(std::mem::take(&mut self.bytes));
        }
        read
    }
}

impl Drop for StreamedSource {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.bytes));
    }
}

//! The body of a request to a backend: from memory, from a file, or as it comes from the client.

use std::rc::Rc;
use std::task::{Context, Poll};

use net::buffers;

use crate::exchange::{ArrivingBody, FileSlice, RequestBodyError, StoredBody};

/// Where the body of one request comes from.
pub(crate) enum RequestSource {
    /// There is none.
    Empty,
    /// From memory.
    Memory(Rc<StoredBody>),
    /// From a file; what a carrier has taken of it is no longer in the slice.
    File(FileSlice),
    /// From the client, as it comes.
    Streamed(Box<StreamedSource>),
}

/// Bytes received from the client that are not sent yet.
pub(crate) struct StreamedSource {
    body: ArrivingBody,
    bytes: Vec<u8>,
    /// Whether nothing comes after them.
    is_last: bool,
}

impl RequestSource {
    /// A body that has been read, or was made.
    pub(crate) fn stored(body: &Rc<StoredBody>) -> Self {
        match &**body {
            StoredBody::Memory(_) => Self::Memory(body.clone()),
            StoredBody::File(file) => Self::File(file.slice()),
        }
    }

    /// A body that is still to come.
    pub(crate) fn streamed(body: ArrivingBody) -> Self {
        Self::Streamed(Box::new(StreamedSource { body, bytes: Vec::new(), is_last: false }))
    }

    /// The part of it that is in memory.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Memory(body) => match &**body {
                StoredBody::Memory(bytes) => bytes,
                StoredBody::File(_) => &[],
            },
            Self::Streamed(streamed) => &streamed.bytes,
            Self::Empty | Self::File(_) => &[],
        }
    }
}

impl StreamedSource {
    /// The bytes received last.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether nothing comes after that.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }

    /// The reply is on its way.
    pub(super) fn go_on_beside_reply(&mut self) {
        self.body.go_on_beside_reply();
    }

    /// Replaces the bytes by what has arrived from the client: all of it, so that few pieces are
    /// sent. While nothing has arrived, no buffer is kept.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RequestBodyError>> {
        self.bytes.clear();
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

//! One stream: received data that was not taken, the state of both directions, and wakers.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use net::clock;
use wire::http2::{FieldBlock, StreamKey};

use crate::StreamFailure;

/// How much memory of a body's buffer is kept while no byte is unread.
const BODY_KEPT_MAX: usize = 16 * 1024;

/// The head of a reply, or an interim reply.
#[derive(Clone, Debug)]
pub struct ClientHead {
    pub status: u16,
    /// Its fields, of which the first is `:status`.
    pub fields: FieldBlock,
    /// Whether another head follows.
    pub is_interim: bool,
    /// Whether the reply has neither body nor trailers.
    pub end_stream: bool,
}

/// One stream. Shared by the connection, until the stream has ended, and its user.
pub(crate) struct ClientStreamState {
    pub(crate) key: StreamKey,
    heads: VecDeque<ClientHead>,
    pub(crate) interim_replies: usize,
    /// Whether the head of the reply was received, perhaps after interim replies.
    pub(crate) has_reply: bool,
    /// The received part of the body, from which `body_read` bytes were taken.
    body: Vec<u8>,
    body_read: usize,
    pub(crate) trailers: Option<FieldBlock>,
    /// How much the stream's window exceeds the first one.
    pub(crate) widened: u32,
    /// Whether all was taken at some time since the window was opened last.
    pub(crate) was_empty: bool,
    /// Whether the reply is complete.
    pub(crate) is_received: bool,
    /// Whether the request is complete.
    pub(crate) is_sent: bool,
    /// Why nothing more is sent or, unless the reply is complete, received.
    pub(crate) failure: Option<StreamFailure>,
    reader: Option<Waker>,
    sender: Option<Waker>,
    pub(crate) waits_for: SendWait,
    /// The round of output in which it last sent data.
    pub(crate) served: u64,
    pub(crate) opened_ms: u64,
    /// The offset of the request's head in the connection's output.
    pub(crate) head_at: u64,
    /// How often the connection was read before the stream was opened.
    pub(crate) opened_reads: u64,
}

/// What the sender of a body waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendWait {
    Nothing,
    /// Room in the output.
    Room,
    /// A window, of the stream or of the connection.
    Window,
}

impl ClientStreamState {
    pub(crate) fn new(key: StreamKey, is_sent: bool) -> Self {
        Self {
            key,
            heads: VecDeque::new(),
            interim_replies: 0,
            has_reply: false,
            body: Vec::new(),
            body_read: 0,
            trailers: None,
            widened: 0,
            was_empty: false,
            is_received: false,
            is_sent,
            failure: None,
            reader: None,
            sender: None,
            waits_for: SendWait::Nothing,
            served: 0,
            opened_ms: clock::now_ms(),
            head_at: 0,
            opened_reads: 0,
        }
    }

    /// Whether nothing more can happen on the connection.
    pub(crate) fn is_over(&self) -> bool {
        self.failure.is_some() || self.is_received && self.is_sent
    }

    /// Adds a head for [`take_head`](Self::take_head).
    pub(crate) fn add_head(&mut self, head: ClientHead) {
        match head.is_interim {
            true => self.interim_replies += 1,
            false => self.has_reply = true,
        }
        self.is_received |= head.end_stream;
        self.heads.push_back(head);
        self.wake_reader();
    }

    pub(crate) fn take_head(&mut self) -> Option<ClientHead> {
        self.heads.pop_front()
    }

    /// Adds received data of the body.
    pub(crate) fn add_data(&mut self, data: &[u8], is_last: bool) {
        // Removes the bytes that were taken, once they are half of the buffer.
        if self.body_read > self.body.len() / 2 {
            self.body.drain(..self.body_read);
            self.body_read = 0;
        }
        self.body.extend_from_slice(data);
        self.is_received = is_last;
        self.wake_reader();
    }

    /// Appends up to `most` bytes of the body.
    pub(crate) fn take_data(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let count = self.unread().min(most);
        out.extend_from_slice(&self.body[self.body_read..self.body_read + count]);
        self.body_read += count;
        if self.unread() == 0 {
            self.was_empty = true;
            self.drop_data();
        }
        count
    }

    /// The number of bytes of the body that were received and not taken.
    pub(crate) fn unread(&self) -> usize {
        self.body.len() - self.body_read
    }

    fn drop_data(&mut self) {
        self.body.clear();
        self.body_read = 0;
        if self.body.capacity() > BODY_KEPT_MAX {
            self.body = Vec::new();
        }
    }

    /// Ends both directions.
    pub(crate) fn fail(&mut self, failure: StreamFailure) {
        self.failure.get_or_insert(failure);
        self.wake_reader();
        self.wake_sender();
    }

    /// Why nothing more is received.
    pub(crate) fn receive_failure(&self) -> Option<StreamFailure> {
        self.failure.as_ref().filter(|_| !self.is_received).cloned()
    }

    /// Registers the task that polls for heads or for the body.
    pub(crate) fn await_input(&mut self, cx: &Context<'_>) {
        register(&mut self.reader, cx);
    }

    /// Registers the task that sends the body.
    pub(crate) fn await_output(&mut self, cx: &Context<'_>, waits_for: SendWait) {
        self.waits_for = waits_for;
        register(&mut self.sender, cx);
    }

    pub(crate) fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    pub(crate) fn wake_sender(&mut self) {
        self.waits_for = SendWait::Nothing;
        self.sender.take().into_iter().for_each(Waker::wake);
    }
}

fn register(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *place = Some(cx.waker().clone()),
    }
}

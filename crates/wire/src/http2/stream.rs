//! The streams of a connection: their states and windows, found by number or by key.
//!
//! ```text
//!                   remote (what the peer sends)      local (what we send)
//! opened by peer    ExpectBody | Ended                ExpectHead
//! opened by us      ExpectHead                        ExpectBody | Ended
//!
//! ExpectHead --head--> ExpectBody --END_STREAM--> Ended
//! ```
//!
//! A stream that was reset, by either end, stays until the driver releases it.

use alloc::vec::Vec;

/// Streams that have ended whose end is remembered, so that what is still on its way for them is
/// not mistaken for an error of the peer.
const ENDED_MAX: usize = 64;

/// Lists by which streams are found.
const BUCKETS: usize = 64;

const NONE: u32 = u32::MAX;

/// A stream as a driver names it: a small number, which a later stream has again, and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// Its place among the open streams.
    pub slot: u32,
    /// Its number on the connection.
    pub id: u32,
}

/// How far one direction of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamHalf {
    ExpectHead,
    ExpectBody,
    Ended,
}

/// An open stream.
#[derive(Clone, Debug)]
pub(super) struct StreamState {
    pub(super) id: u32,
    next: u32,
    pub(super) remote: StreamHalf,
    pub(super) local: StreamHalf,
    /// Who has reset it, if somebody has.
    pub(super) reset: Option<StreamEnd>,
    /// What the peer sent makes no message. The rest of it is thrown away.
    pub(super) is_malformed: bool,
    /// Negative after the peer has made initial windows smaller.
    pub(super) send_window: i64,
    pub(super) receive_window: i64,
    /// Bytes of data that the peer's head has announced and not sent yet.
    pub(super) announced: Option<u64>,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// Both ends were done with it, or the peer has reset it.
    Closed,
    /// We reset it: the peer may have sent more before it knew.
    ResetByUs,
}

/// The streams of a connection.
#[derive(Debug)]
pub(super) struct StreamTable {
    slots: Vec<StreamState>,
    free: Vec<u32>,
    buckets: [u32; BUCKETS],
    open: usize,
    ended: [(u32, StreamEnd); ENDED_MAX],
    ended_next: usize,
}

impl StreamTable {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            buckets: [NONE; BUCKETS],
            open: 0,
            ended: [(0, StreamEnd::Closed); ENDED_MAX],
            ended_next: 0,
        }
    }

    /// How many are open.
    pub(super) fn len(&self) -> usize {
        self.open
    }

    pub(super) fn open(&mut self, mut stream: StreamState) -> StreamKey {
        let id = stream.id;
        let bucket = &mut self.buckets[bucket_of(id)];
        stream.next = *bucket;
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        *bucket = slot;
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = stream,
            None => self.slots.push(stream),
        }
        self.open += 1;
        StreamKey { slot, id }
    }

    /// The stream with that number.
    pub(super) fn find(&self, id: u32) -> Option<StreamKey> {
        let mut slot = self.buckets[bucket_of(id)];
        while slot != NONE {
            let stream = &self.slots[slot as usize];
            if stream.id == id {
                return Some(StreamKey { slot, id });
            }
            slot = stream.next;
        }
        None
    }

    /// The stream that a key is for, unless it was released.
    pub(super) fn get(&mut self, key: StreamKey) -> Option<&mut StreamState> {
        self.slots.get_mut(key.slot as usize).filter(|stream| stream.id == key.id)
    }

    /// The same, to look at.
    pub(super) fn peek(&self, key: StreamKey) -> Option<&StreamState> {
        self.slots.get(key.slot as usize).filter(|stream| stream.id == key.id)
    }

    /// Forgets a stream, but for how it ended.
    pub(super) fn remove(&mut self, key: StreamKey, end: StreamEnd) {
        let StreamKey { slot, id } = key;
        if self.peek(key).is_none() {
            return;
        }
        let next = self.slots[slot as usize].next;
        let bucket = bucket_of(id);
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while self.slots[before as usize].next != slot {
                before = self.slots[before as usize].next;
            }
            self.slots[before as usize].next = next;
        }
        self.slots[slot as usize].id = 0;
        self.free.push(slot);
        self.open -= 1;
        self.note_end(id, end);
    }

    /// Remembers how a stream ended.
    pub(super) fn note_end(&mut self, id: u32, end: StreamEnd) {
        self.ended[self.ended_next] = (id, end);
        self.ended_next = (self.ended_next + 1) % ENDED_MAX;
    }

    /// The peer has seen that we reset a stream.
    pub(super) fn forget_reset(&mut self, id: u32) {
        if let Some(ended) = self.ended.iter_mut().find(|ended| ended.0 == id) {
            ended.1 = StreamEnd::Closed;
        }
    }

    /// How a stream ended, if it did so lately.
    pub(super) fn end_of(&self, id: u32) -> Option<StreamEnd> {
        self.ended.iter().find(|ended| ended.0 == id).map(|ended| ended.1)
    }

    /// The open streams.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamKey, &mut StreamState)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter(|(_, stream)| stream.id != 0)
            .map(|(slot, stream)| (StreamKey { slot: slot as u32, id: stream.id }, stream))
    }
}

impl StreamState {
    pub(super) fn new(id: u32, remote: StreamHalf, local: StreamHalf, windows: (i64, i64)) -> Self {
        let (send_window, receive_window) = windows;
        Self {
            id,
            next: NONE,
            remote,
            local,
            reset: None,
            is_malformed: false,
            send_window,
            receive_window,
            announced: None,
        }
    }

    /// It is reset: nothing more comes or goes.
    pub(super) fn end_by(&mut self, end: StreamEnd) {
        self.reset = Some(end);
        (self.remote, self.local) = (StreamHalf::Ended, StreamHalf::Ended);
    }
}

fn bucket_of(id: u32) -> usize {
    (id >> 1) as usize % BUCKETS
}

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
//! A stream that either end has reset stays in the table until the driver releases it.

use alloc::vec::Vec;

/// How many ended streams are remembered, so that frames the peer sent before it learned of the
/// end are not treated as its error.
const ENDED_MAX: usize = 64;

/// The number of hash buckets for streams.
const BUCKETS: usize = 64;

const NONE: u32 = u32::MAX;

/// Identifies a stream: a small index, which later streams reuse, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// Its index in the table of streams.
    pub slot: u32,
    /// Its number on the connection.
    pub id: u32,
}

/// The state of one direction of a stream.
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
    /// Set once either end has reset it.
    pub(super) reset: Option<StreamEnd>,
    /// The peer's message is malformed; the rest of it is discarded.
    pub(super) is_malformed: bool,
    /// Negative after the peer has reduced the initial window.
    pub(super) send_window: i64,
    pub(super) receive_window: i64,
    /// What is left of the announced length of the body.
    pub(super) announced: Option<u64>,
    /// Our request is HEAD, so its reply has no content.
    pub(super) asks_for_head: bool,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// Both directions ended, or the peer reset it.
    Closed,
    /// This end reset it. The peer may have sent more before it learned of that.
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

    /// The state of a stream, unless it was released.
    pub(super) fn get(&mut self, key: StreamKey) -> Option<&mut StreamState> {
        self.slots.get_mut(key.slot as usize).filter(|stream| stream.id == key.id)
    }

    /// Like [`get`](Self::get), for reading.
    pub(super) fn peek(&self, key: StreamKey) -> Option<&StreamState> {
        self.slots.get(key.slot as usize).filter(|stream| stream.id == key.id)
    }

    /// Removes a stream and remembers how it ended.
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

    /// Records that the peer has learned of the reset.
    pub(super) fn forget_reset(&mut self, id: u32) {
        if let Some(ended) = self.ended.iter_mut().find(|ended| ended.0 == id) {
            ended.1 = StreamEnd::Closed;
        }
    }

    /// How a stream ended, if that was recently.
    pub(super) fn end_of(&self, id: u32) -> Option<StreamEnd> {
        self.ended.iter().find(|ended| ended.0 == id).map(|ended| ended.1)
    }

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
            asks_for_head: false,
        }
    }

    /// Marks both directions as ended by a reset.
    pub(super) fn end_by(&mut self, end: StreamEnd) {
        self.reset = Some(end);
        (self.remote, self.local) = (StreamHalf::Ended, StreamHalf::Ended);
    }
}

fn bucket_of(id: u32) -> usize {
    (id >> 1) as usize % BUCKETS
}

//! One end of a connection.
//!
//! ```text
//! Preface -> Head -> Prefix -> Data | Block | Fixed | Settings | Skip -> Head
//!                       (pad length, priority)
//! ```

mod block;
mod frames;
mod header_block;
mod late;
mod payload;
mod rest;
mod send;

use alloc::vec::Vec;
use core::ops::Range;

pub use header_block::PartialBlock;
pub use rest::RestingEndpoint;
pub use send::FieldWriter;

use super::counts::{Http2Count, Http2Counts};
use super::frame::{self, FRAME_HEAD_BYTES, FRAME_PAYLOAD_DEFAULT, FrameHead};
use super::limits::FloodBudgets;
use super::reply::Http2Reply;
use super::settings::{
    ENABLE_PUSH, ENCODER_TABLE_MAX, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
};
use super::stream::{StreamEnd, StreamHalf, StreamState, StreamTable};
use super::{
    FieldBlock, Http2Code, Http2Config, Http2Error, Http2Role, PREFACE, PeerSettings, StreamKey,
    WINDOW_DEFAULT, WINDOW_MAX,
};
use crate::hpack::{Decoder, Encoder, TABLE_BYTES_DEFAULT};
use header_block::HeaderBlock;

/// An event that the driver has to handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Http2Event {
    /// The head of a message: of a new stream's request, which is unchecked, or of a valid reply
    /// ([`Http2Endpoint::reply`]). Its fields are in [`Http2Endpoint::fields`] until the next call
    /// of `receive`.
    Head {
        stream: StreamKey,
        /// Whether there is no body.
        end_stream: bool,
    },
    /// An interim reply, whose fields are in [`Http2Endpoint::fields`].
    Interim { stream: StreamKey },
    /// Part of the input is data of a body.
    Data {
        stream: StreamKey,
        /// The data's range in the input. It may be empty at the end of the body.
        range: Range<usize>,
        /// Whether it is the end of the body.
        end_stream: bool,
    },
    /// The body has ended with these fields, which are in [`Http2Endpoint::fields`].
    Trailers { stream: StreamKey },
    /// The peer's message is malformed: the head of a reply, or the part after a head. No more
    /// events follow for it, but a request can still be answered.
    Malformed {
        stream: StreamKey,
        /// The fault, to be read after "client " or "server ".
        what: &'static str,
    },
    /// The peer has reset a stream.
    Reset { stream: StreamKey, code: Http2Code },
    /// A stream was reset because of what the peer sent on it.
    Provoked {
        stream: StreamKey,
        /// The code sent to the peer.
        code: Http2Code,
    },
    /// A window was opened, of this stream or of the connection.
    Writable {
        /// The stream; `None` is the connection.
        stream: Option<StreamKey>,
    },
    /// The peer has acknowledged our settings.
    SettingsAcked,
    /// An answer to our PING.
    Pong {
        /// The bytes that we sent.
        opaque: [u8; 8],
    },
    /// The peer will not process streams after this one.
    GoAway {
        /// The last stream that it may have processed.
        last_stream: u32,
        code: Http2Code,
    },
}

/// The result of [`Http2Endpoint::receive`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The number of input bytes consumed.
    pub consumed: usize,
    /// The next event; `None` if all input was consumed and more is needed.
    pub event: Option<Http2Event>,
}

/// One end of a connection.
pub struct Http2Endpoint {
    role: Http2Role,
    config: Http2Config,
    peer: PeerSettings,
    /// The parameters read so far of an incomplete SETTINGS frame.
    peer_next: PeerSettings,
    expect: Expect,
    frame: FrameHead,
    /// Bytes of the payload that have not been received, without padding.
    left: u32,
    padding: u32,
    /// The stream of a DATA frame, unless its data is discarded.
    target: Option<StreamKey>,
    /// The bytes received so far of something of fixed size.
    gathered: [u8; FRAME_HEAD_BYTES],
    gathered_len: usize,
    block: HeaderBlock,
    fields: FieldBlock,
    fields_length: u32,
    /// The values of the last head or interim reply, at a client.
    reply: Http2Reply,
    decoder: Decoder,
    encoder: Encoder,
    streams: StreamTable,
    send_window: i64,
    receive_window: i64,
    /// The last stream that the peer has opened.
    last_peer_stream: u32,
    /// The next stream that we open.
    pub(super) next_own_stream: u32,
    /// The last stream that is served, as sent in GOAWAY.
    last_served: Option<u32>,
    /// Whether the peer was asked to open no more streams, although they would be served.
    has_announced_end: bool,
    has_peer_gone_away: bool,
    is_acknowledged: bool,
    /// Whether the peer has sent settings.
    has_peer_settings: bool,
    /// The number of outstanding answers to PING.
    awaited_pongs: u32,
    /// Bytes that the peer may have sent before it learned of resets or of GOAWAY.
    late_bytes: u32,
    /// Ended streams that the peer may have reset before it learned of their end.
    late_resets: u32,
    budgets: FloodBudgets,
    counts: Http2Counts,
    /// The cost of decoding since the driver took it last.
    work: usize,
    output: Vec<u8>,
    output_start: usize,
    /// An upper bound of the bytes of answers that the peer has not read.
    answer_bytes: u32,
}

/// The expected next bytes of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// The client preface, with the number of bytes received.
    Preface(u8),
    Head,
    /// The length of the padding, and the priority.
    Prefix(u8),
    Data,
    Block,
    Fixed(u8),
    Settings,
    Skip,
}

/// The result of one step of `receive`.
enum Step {
    Event(Http2Event),
    Again,
    /// More input is needed.
    Starved,
}

impl Http2Endpoint {
    /// One end of a new connection. Its preface and settings are in the output.
    pub fn new(role: Http2Role, config: Http2Config) -> Self {
        let mut endpoint = Self::silent(role, config);
        endpoint.introduce();
        endpoint
    }

    /// One end of a connection with empty output.
    fn silent(role: Http2Role, config: Http2Config) -> Self {
        Self {
            role,
            config,
            peer: PeerSettings::default(),
            peer_next: PeerSettings::default(),
            expect: Expect::Head,
            frame: FrameHead::default(),
            left: 0,
            padding: 0,
            target: None,
            gathered: [0; FRAME_HEAD_BYTES],
            gathered_len: 0,
            block: HeaderBlock::default(),
            fields: FieldBlock::default(),
            fields_length: 0,
            reply: Http2Reply::default(),
            decoder: Decoder::new(TABLE_BYTES_DEFAULT),
            encoder: Encoder::new(ENCODER_TABLE_MAX),
            streams: StreamTable::new(),
            send_window: WINDOW_DEFAULT.into(),
            receive_window: WINDOW_DEFAULT.into(),
            last_peer_stream: 0,
            next_own_stream: 1,
            last_served: None,
            has_announced_end: false,
            has_peer_gone_away: false,
            is_acknowledged: false,
            has_peer_settings: false,
            awaited_pongs: 0,
            late_bytes: 0,
            late_resets: 0,
            budgets: FloodBudgets::new(&config.limits),
            counts: Http2Counts::default(),
            work: 0,
            output: Vec::new(),
            output_start: 0,
            answer_bytes: 0,
        }
    }

    /// Writes the client's preface, the settings, and the largest possible window for the
    /// connection: the windows of streams limit how much data is stored.
    fn introduce(&mut self) {
        let Http2Config { max_concurrent_streams, stream_window, max_frame_size, .. } = self.config;
        let window = (INITIAL_WINDOW_SIZE, stream_window);
        let frame_size =
            (max_frame_size != FRAME_PAYLOAD_DEFAULT).then_some((MAX_FRAME_SIZE, max_frame_size));
        let list_size = self.config.max_header_list_size.map(|most| (MAX_HEADER_LIST_SIZE, most));
        let first = match self.role {
            Http2Role::Server => {
                self.expect = Expect::Preface(0);
                (MAX_CONCURRENT_STREAMS, max_concurrent_streams)
            }
            Http2Role::Client => {
                self.output.extend_from_slice(PREFACE);
                (ENABLE_PUSH, 0)
            }
        };
        let settings = [Some(first), Some(window), frame_size, list_size];
        frame::write_settings(&mut self.output, settings.into_iter().flatten());
        frame::write_window_update(&mut self.output, 0, WINDOW_MAX - WINDOW_DEFAULT);
        self.receive_window = WINDOW_MAX.into();
    }

    /// Reads input up to the next event. After an error the connection is over: the driver sends
    /// the remaining output and closes it.
    pub fn receive(&mut self, input: &[u8]) -> Result<Received, Http2Error> {
        let mut at = 0;
        loop {
            match self.step(input, &mut at) {
                Ok(Step::Again) => {}
                Ok(Step::Starved) => return Ok(Received { consumed: at, event: None }),
                Ok(Step::Event(event)) => {
                    return Ok(Received { consumed: at, event: Some(event) });
                }
                Err(error) => {
                    self.go_away(error.code);
                    return Err(error);
                }
            }
        }
    }

    fn step(&mut self, input: &[u8], at: &mut usize) -> Result<Step, Http2Error> {
        match self.expect {
            Expect::Preface(matched) => self.take_preface(matched, input, at),
            Expect::Head => {
                if !self.gather(FRAME_HEAD_BYTES, input, at) {
                    return Ok(Step::Starved);
                }
                self.frame = FrameHead::parse(&self.gathered);
                self.begin_frame()
            }
            Expect::Prefix(bytes) => {
                if !self.gather(bytes.into(), input, at) {
                    return Ok(Step::Starved);
                }
                self.end_prefix()
            }
            Expect::Data => Ok(self.take_data(input, at)),
            Expect::Block => self.take_block(input, at),
            Expect::Fixed(bytes) => {
                if !self.gather(bytes.into(), input, at) {
                    return Ok(Step::Starved);
                }
                self.left -= u32::from(bytes);
                self.expect = Expect::Skip;
                self.take_fixed()
            }
            Expect::Settings => self.take_settings(input, at),
            Expect::Skip => Ok(self.skip(input, at)),
        }
    }

    fn take_preface(
        &mut self,
        matched: u8,
        input: &[u8],
        at: &mut usize,
    ) -> Result<Step, Http2Error> {
        let wanted = &PREFACE[matched.into()..];
        let count = wanted.len().min(input.len() - *at);
        if wanted[..count] != input[*at..*at + count] {
            return Err(Http2Error::protocol("sent invalid connection preface"));
        }
        *at += count;
        if count == wanted.len() {
            self.expect = Expect::Head;
            return Ok(Step::Again);
        }
        self.expect = Expect::Preface(matched + count as u8);
        Ok(Step::Starved)
    }

    /// Collects `bytes` bytes. Returns whether they are complete.
    fn gather(&mut self, bytes: usize, input: &[u8], at: &mut usize) -> bool {
        let count = (bytes - self.gathered_len).min(input.len() - *at);
        let taken = &input[*at..*at + count];
        self.gathered[self.gathered_len..self.gathered_len + count].copy_from_slice(taken);
        *at += count;
        self.gathered_len += count;
        let complete = self.gathered_len == bytes;
        if complete {
            self.gathered_len = 0;
        }
        complete
    }

    fn skip(&mut self, input: &[u8], at: &mut usize) -> Step {
        let rest = u64::from(self.left) + u64::from(self.padding);
        let count = rest.min((input.len() - *at) as u64) as u32;
        *at += count as usize;
        let of_payload = count.min(self.left);
        self.left -= of_payload;
        self.padding -= count - of_payload;
        if self.left + self.padding > 0 {
            return Step::Starved;
        }
        self.expect = Expect::Head;
        Step::Again
    }

    /// The fields of the last head, interim reply or trailers.
    pub fn fields(&self) -> &FieldBlock {
        &self.fields
    }

    /// The values of the last head or interim reply, at a client.
    pub fn reply(&self) -> Http2Reply {
        self.reply
    }

    /// The encoded length of the last header block.
    pub fn fields_length(&self) -> u32 {
        self.fields_length
    }

    /// Whether a frame or a header block has begun and is not complete.
    pub fn is_within_frame(&self) -> bool {
        self.block.is_open || self.gathered_len > 0 || !matches!(self.expect, Expect::Head)
    }

    /// The header block that has begun and is not complete.
    pub fn partial_block(&self) -> Option<PartialBlock> {
        let HeaderBlock { stream, is_discarded, .. } = self.block;
        self.block.is_open.then_some(PartialBlock { stream, is_discarded })
    }

    /// The stream of an incomplete DATA frame.
    pub fn partial_data(&self) -> Option<StreamKey> {
        self.target.filter(|_| self.expect == Expect::Data)
    }

    /// Gives up waiting for the rest of a header block, if there is one: its stream is reset, and
    /// the rest of the block will be decoded and discarded.
    pub fn abandon_block(&mut self) {
        if self.block.is_open && !self.block.is_discarded {
            self.block.is_discarded = true;
            let stream = self.block.stream;
            frame::write_reset(&mut self.output, stream, Http2Code::PROTOCOL_ERROR);
            self.streams.note_end(stream, StreamEnd::ResetByUs);
            self.expect_late(self.config.stream_window.into());
        }
    }

    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether this end has sent GOAWAY.
    pub fn is_going_away(&self) -> bool {
        self.last_served.is_some()
    }

    pub fn peer_settings(&self) -> &PeerSettings {
        &self.peer
    }

    /// Whether the peer has sent settings; until then those are the protocol's defaults.
    pub fn has_peer_settings(&self) -> bool {
        self.has_peer_settings
    }

    /// The peer's actions since the counts were taken last.
    pub fn counts(&self) -> &Http2Counts {
        &self.counts
    }

    /// Takes the counts, which begin again at 0.
    pub fn take_counts(&mut self) -> Http2Counts {
        core::mem::take(&mut self.counts)
    }

    /// The cost of the header blocks decoded since the last call: their bytes, and other work in
    /// terms of bytes.
    pub fn take_work(&mut self) -> usize {
        core::mem::take(&mut self.work)
    }

    /// Counts an event that only the driver sees.
    pub fn count(&mut self, count: Http2Count) {
        self.counts.add(count, 1);
    }

    /// Restores the budgets by their rates for this many seconds.
    pub fn replenish(&mut self, seconds: u32) {
        self.budgets.replenish(seconds);
    }

    /// Sets the announced length of a stream's body; from now on it is enforced. A client's
    /// endpoint does so by itself.
    pub fn announce(&mut self, stream: StreamKey, length: u64) {
        if let Some(state) = self.streams.get(stream) {
            state.announced = Some(length);
        }
    }

    /// Marks a stream whose head is malformed. It can be answered and is then reset.
    pub fn mark_malformed(&mut self, stream: StreamKey) {
        if let Some(state) = self.streams.get(stream) {
            state.remote = StreamHalf::Ended;
            state.is_malformed = true;
            let window = state.receive_window;
            self.expect_late(window);
        }
    }

    /// Opens a stream's window to `window` bytes.
    pub fn raise_window(&mut self, stream: StreamKey, window: u32) {
        let Some(state) = self.streams.get(stream) else { return };
        if state.reset.is_some() || state.remote != StreamHalf::ExpectBody {
            return;
        }
        let increment = i64::from(window.min(WINDOW_MAX)) - state.receive_window;
        if increment > 0 {
            state.receive_window += increment;
            frame::write_window_update(&mut self.output, stream.id, increment as u32);
        }
    }

    /// Whether the announced rest of the body fits into the stream's window.
    pub fn rest_fits(&self, stream: StreamKey) -> bool {
        self.streams.peek(stream).is_some_and(|state| {
            state.announced.is_some_and(|left| i128::from(left) <= state.receive_window.into())
        })
    }

    pub fn receive_window(&self, stream: StreamKey) -> i64 {
        self.streams.peek(stream).map_or(0, |state| state.receive_window)
    }

    fn stream(&mut self, key: StreamKey) -> Option<&mut StreamState> {
        self.streams.get(key)
    }
}

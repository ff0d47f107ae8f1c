//! Header blocks: HEADERS and the CONTINUATION frames that follow it, decoded when complete.

use super::super::counts::Http2Count;
use super::super::frame::{END_HEADERS, END_STREAM, FrameHead};
use super::super::limits::Http2Limit;
use super::super::reply::{self, InvalidReply};
use super::super::request;
use super::super::stream::{StreamEnd, StreamHalf, StreamState};
use super::super::{Http2Code, Http2Error, Http2Role, StreamKey, WINDOW_DEFAULT};
use super::{Expect, Http2Endpoint, Http2Event, Step};
use crate::hpack::{FieldLimits, HpackError};

/// The most memory of a fragmented block that is reused for the next one.
const BLOCK_KEPT_MAX: usize = 4096;

/// The cost of a field besides its bytes, even if it is empty, counted as bytes read.
/// The driver has to go through it several times.
const COST_OF_FIELD: usize = 64;

const TOO_MANY_FIELDS: &str = "sent too many header lines";

impl Http2Endpoint {
    pub(super) fn begin_headers(&mut self) -> Result<Step, Http2Error> {
        let FrameHead { stream: id, .. } = self.frame;
        let is_discarded = match self.role {
            Http2Role::Server => self.begin_request(id)?,
            Http2Role::Client => self.begin_reply(id)?,
        };
        if is_discarded {
            self.take_late()?;
        }
        let block = &mut self.block;
        block.is_open = true;
        block.stream = id;
        block.is_discarded = is_discarded;
        block.ends_stream = self.frame.has(END_STREAM);
        block.continuations = 0;
        block.bytes.clear();
        self.expect_prefix()
    }

    /// HEADERS at a server: a request, trailers, or a frame that the client sent before it learned
    /// that its stream was reset. Returns whether the block is discarded.
    fn begin_request(&mut self, id: u32) -> Result<bool, Http2Error> {
        let incorrect = Http2Error::protocol("sent HEADERS frame with incorrect identifier");
        if id.is_multiple_of(2) {
            return Err(incorrect);
        }
        if self.last_served.is_some_and(|last| id > last) {
            // The client has not read GOAWAY yet. Further frames for the stream are not errors.
            self.last_peer_stream = self.last_peer_stream.max(id);
            return Ok(true);
        }
        if id <= self.last_peer_stream {
            let Some(key) = self.streams.find(id) else {
                return match self.streams.end_of(id) {
                    Some(StreamEnd::ResetByUs) => Ok(true),
                    Some(StreamEnd::Closed) | None => Err(incorrect),
                };
            };
            let Some(state) = self.streams.peek(key) else { return Err(incorrect) };
            return match state.remote {
                _ if state.reset == Some(StreamEnd::Closed) => Err(incorrect),
                _ if state.reset.is_some() || state.is_malformed => Ok(true),
                StreamHalf::ExpectBody => Ok(false),
                StreamHalf::ExpectHead | StreamHalf::Ended => Err(incorrect),
            };
        }
        self.last_peer_stream = id;
        self.counts.add(Http2Count::Streams, 1);
        let body_too_early = !self.is_acknowledged
            && !self.frame.has(END_STREAM)
            && self.config.stream_window < WINDOW_DEFAULT;
        let is_full = self.streams.len() >= self.config.max_concurrent_streams as usize;
        if !is_full && !body_too_early {
            return Ok(false);
        }
        self.counts.add(Http2Count::RefusedStreams, 1);
        self.write_provoked(id, Http2Code::REFUSED_STREAM)?;
        self.streams.note_end(id, StreamEnd::ResetByUs);
        // Before the client knows our settings, it uses the usual window.
        self.expect_late(self.config.stream_window.max(WINDOW_DEFAULT).into());
        Ok(true)
    }

    /// HEADERS at a client: an interim reply, a reply, or trailers. Returns whether the block is
    /// discarded.
    fn begin_reply(&mut self, id: u32) -> Result<bool, Http2Error> {
        if id == 0 || self.is_idle(id) {
            return Err(Http2Error::protocol("sent HEADERS frame with incorrect identifier"));
        }
        let Some(key) = self.streams.find(id) else { return Ok(true) };
        let state = self.streams.peek(key);
        Ok(state.is_none_or(|state| state.reset.is_some() || state.remote == StreamHalf::Ended))
    }

    pub(super) fn begin_continuation(&mut self) -> Result<Step, Http2Error> {
        if !self.block.is_open {
            return Err(Http2Error::protocol("sent unexpected CONTINUATION frame"));
        }
        if self.frame.stream != self.block.stream {
            return Err(Http2Error::protocol("sent CONTINUATION frame with incorrect identifier"));
        }
        self.counts.add(Http2Count::ContinuationFrames, 1);
        self.counts.add(Http2Count::ContinuationBytes, u64::from(self.frame.length));
        self.block.continuations += 1;
        if self.block.continuations > self.config.limits.continuation_frames_max {
            return Err(Http2Limit::ContinuationFrames.into());
        }
        self.expect = Expect::Block;
        Ok(Step::Again)
    }

    /// Takes bytes of a block. Usually a block is a single frame that is entirely in the input.
    pub(super) fn take_block(&mut self, input: &[u8], at: &mut usize) -> Result<Step, Http2Error> {
        let count = (self.left as usize).min(input.len() - *at);
        let piece = &input[*at..*at + count];
        *at += count;
        self.left -= count as u32;
        let frame_ends = self.left == 0;
        let block_ends = frame_ends && self.frame.has(END_HEADERS);
        if !block_ends || !self.block.bytes.is_empty() {
            if self.block.bytes.len() + count > self.config.limits.block_bytes_max as usize {
                return Err(Http2Limit::BlockBytes.into());
            }
            self.block.bytes.extend_from_slice(piece);
        }
        if !frame_ends {
            return Ok(Step::Starved);
        }
        self.expect = Expect::Skip;
        if !block_ends {
            return Ok(Step::Again);
        }
        let mut bytes = core::mem::take(&mut self.block.bytes);
        let decoded = self.decode(if bytes.is_empty() { piece } else { &bytes });
        if bytes.capacity() <= BLOCK_KEPT_MAX {
            bytes.clear();
            self.block.bytes = bytes;
        }
        decoded?;
        self.block.is_open = false;
        self.end_block()
    }

    fn decode(&mut self, block: &[u8]) -> Result<(), Http2Error> {
        let limits = &self.config.limits;
        let bounds = FieldLimits {
            fields_max: limits.fields_max as usize,
            string_bytes_max: limits.field_bytes_max as usize,
            bytes_max: limits.fields_bytes_max as usize,
        };
        let fields = &mut self.fields;
        fields.clear();
        self.fields_length = block.len() as u32;
        let wants = !self.block.is_discarded;
        let mut work = block.len();
        let decoded = self.decoder.decode(block, bounds, |name: &[u8], value: &[u8], _| {
            work += COST_OF_FIELD + name.len() + value.len();
            if wants {
                fields.push(name, value);
            }
        });
        self.work += work;
        match decoded {
            Ok(()) => Ok(()),
            Err(HpackError::StringTooLong) => Err(Http2Limit::FieldBytes.into()),
            Err(HpackError::TooManyFields) => {
                fields.is_cut = true;
                self.counts.add(Http2Count::CutBlocks, 1);
                Ok(())
            }
            Err(HpackError::TooManyBytes | HpackError::Excessive) => {
                Err(Http2Limit::FieldsBytes.into())
            }
            Err(HpackError::Truncated) => {
                Err(Http2Error::size("sent header block with incorrect length"))
            }
            Err(_) => {
                let what = "sent header block that cannot be decoded";
                Err(Http2Error::new(Http2Code::COMPRESSION_ERROR, what))
            }
        }
    }

    fn end_block(&mut self) -> Result<Step, Http2Error> {
        if self.block.is_discarded {
            return Ok(Step::Again);
        }
        let (id, end_stream) = (self.block.stream, self.block.ends_stream);
        let Some(stream) = self.streams.find(id) else {
            return Ok(match self.role {
                Http2Role::Server => self.open_by_peer(id, end_stream),
                Http2Role::Client => Step::Again,
            });
        };
        let state = self.streams.peek(stream).map(|state| (state.remote, state.reset.is_some()));
        Ok(match state {
            Some((StreamHalf::ExpectHead, false)) => self.take_reply_head(stream, end_stream),
            Some((StreamHalf::ExpectBody, false)) => self.take_trailers(stream, end_stream),
            _ => Step::Again,
        })
    }

    fn open_by_peer(&mut self, id: u32, end_stream: bool) -> Step {
        let remote = if end_stream { StreamHalf::Ended } else { StreamHalf::ExpectBody };
        let windows = (self.peer.initial_window_size.into(), self.config.stream_window.into());
        let state = StreamState::new(id, remote, StreamHalf::ExpectHead, windows);
        let stream = self.streams.open(state);
        Step::Event(Http2Event::Head { stream, end_stream })
    }

    /// An interim reply, or the head of a reply. A malformed one ends its stream, not the
    /// connection.
    fn take_reply_head(&mut self, stream: StreamKey, end_stream: bool) -> Step {
        let reply = match reply::parse(&self.fields) {
            Ok(_) if self.fields.is_cut => return self.malform(stream, TOO_MANY_FIELDS),
            Ok(reply) => reply,
            Err(InvalidReply(what)) => return self.malform(stream, what),
        };
        self.reply = reply;
        if reply.is_interim() {
            return match end_stream {
                true => self.malform(stream, "sent interim reply that ends the stream"),
                false => Step::Event(Http2Event::Interim { stream }),
            };
        }
        let Some(state) = self.stream(stream) else { return Step::Again };
        let has_no_content = state.asks_for_head || matches!(reply.status, 204 | 304);
        state.announced = if has_no_content { Some(0) } else { reply.content_length };
        if end_stream && state.announced.is_some_and(|length| length > 0) {
            return self.malform(stream, "prematurely closed stream");
        }
        state.remote = if end_stream { StreamHalf::Ended } else { StreamHalf::ExpectBody };
        Step::Event(Http2Event::Head { stream, end_stream })
    }

    fn take_trailers(&mut self, stream: StreamKey, end_stream: bool) -> Step {
        if !end_stream {
            return self.malform(stream, "sent second HEADERS frame without END_STREAM flag");
        }
        if let Err(what) = request::check_trailers(&self.fields) {
            return self.malform(stream, what);
        }
        if self.fields.is_cut && self.role == Http2Role::Client {
            return self.malform(stream, TOO_MANY_FIELDS);
        }
        let Some(state) = self.stream(stream) else { return Step::Again };
        if state.announced.is_some_and(|left| left > 0) {
            return self.malform(stream, "prematurely closed stream");
        }
        state.remote = StreamHalf::Ended;
        Step::Event(Http2Event::Trailers { stream })
    }
}

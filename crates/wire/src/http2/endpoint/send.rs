//! Sending heads, data and resets, in the order of the calls.

use alloc::vec::Vec;

use super::super::frame::{
    self, CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_HEAD_BYTES, FrameHead, HEADERS,
};
use super::super::stream::{StreamEnd, StreamHalf, StreamState};
use super::super::{Http2Code, Http2Role, StreamKey};
use super::Http2Endpoint;

/// Sent data earns a window update for as many bytes. Go's server sends two, of stream and
/// connection, for each 4 KB that its handler reads.
const WINDOW_UPDATE_BYTES_MIN: usize = 1024;

/// The highest number of a stream.
const LAST_STREAM: u32 = (1 << 31) - 1;

/// Writes the fields of a head or of trailers.
pub struct FieldWriter<'e> {
    endpoint: &'e mut Http2Endpoint,
    stream: StreamKey,
    /// Where the first frame begins in the output.
    start: usize,
}

impl Http2Endpoint {
    /// Opens a stream, as a client. `None` if the peer accepts no more streams, now or at all.
    pub fn open(&mut self) -> Option<StreamKey> {
        if self.free_streams() == 0 {
            return None;
        }
        let id = self.next_own_stream;
        self.next_own_stream += 2;
        let windows = (self.peer.initial_window_size.into(), self.config.stream_window.into());
        let (remote, local) = (StreamHalf::ExpectHead, StreamHalf::ExpectHead);
        Some(self.streams.open(StreamState::new(id, remote, local, windows)))
    }

    /// How many more streams can be opened now.
    pub fn free_streams(&self) -> usize {
        let most = self.peer.max_concurrent_streams as usize;
        if self.is_used_up() { 0 } else { most.saturating_sub(self.streams.len()) }
    }

    /// Whether no more streams can ever be opened: the peer has sent GOAWAY, or there are no
    /// further numbers. A server never opens streams.
    pub fn is_used_up(&self) -> bool {
        let has_numbers = self.next_own_stream <= super::super::WINDOW_MAX;
        self.role == Http2Role::Server || self.has_peer_gone_away || !has_numbers
    }

    /// Begins a head, or trailers. `None` if the stream has ended in this direction.
    pub fn begin_fields(&mut self, stream: StreamKey) -> Option<FieldWriter<'_>> {
        let state = self.streams.peek(stream)?;
        if state.reset.is_some() || state.local == StreamHalf::Ended {
            return None;
        }
        let start = self.output.len();
        self.output.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
        self.encoder.begin(&mut self.output);
        Some(FieldWriter { endpoint: self, stream, start })
    }

    /// How much data the connection's window allows to send.
    pub fn connection_sendable(&self) -> usize {
        self.send_window.max(0) as usize
    }

    /// How much data both windows allow to send on a stream.
    pub fn sendable(&self, stream: StreamKey) -> usize {
        let window = self.streams.peek(stream).map_or(0, |state| match state.local {
            StreamHalf::ExpectBody if state.reset.is_none() => state.send_window,
            _ => 0,
        });
        window.min(self.send_window).max(0) as usize
    }

    /// Sends data, at most as much as is [`sendable`](Self::sendable), in frames of up to
    /// `frame_max` bytes. Returns the number of frames.
    pub fn send_data(
        &mut self,
        stream: StreamKey,
        data: &[u8],
        end_stream: bool,
        frame_max: usize,
    ) -> usize {
        debug_assert!(data.len() <= self.sendable(stream) || data.is_empty());
        let frame_max = frame_max.clamp(1, self.peer.max_frame_size as usize);
        let mut frames = 0;
        let mut rest = data;
        while !rest.is_empty() || (end_stream && frames == 0) {
            let (piece, after) = rest.split_at(rest.len().min(frame_max));
            rest = after;
            let flags = if end_stream && rest.is_empty() { END_STREAM } else { 0 };
            frame::write(&mut self.output, DATA, flags, stream.id, piece);
            frames += 1;
        }
        self.note_data(stream, data.len(), frames as u32, end_stream);
        frames
    }

    fn note_data(&mut self, stream: StreamKey, bytes: usize, frames: u32, end_stream: bool) {
        self.send_window -= bytes as i64;
        // The peer may update windows for data that it receives, and measure delays.
        self.budgets.window_updates.earn(4 + (bytes / WINDOW_UPDATE_BYTES_MIN) as u32);
        self.budgets.pings.earn(frames);
        if let Some(state) = self.stream(stream) {
            state.send_window -= bytes as i64;
            if end_stream {
                state.local = StreamHalf::Ended;
            }
        }
    }

    /// Resets a stream. It stays until it is released.
    pub fn reset(&mut self, stream: StreamKey, code: Http2Code) {
        let Some(state) = self.stream(stream).filter(|state| state.reset.is_none()) else { return };
        state.end_by(StreamEnd::ResetByUs);
        let window = state.receive_window;
        self.expect_late(window);
        frame::write_reset(&mut self.output, stream.id, code);
    }

    /// Removes a stream that the driver is done with. An incomplete stream is reset with `code`; by
    /// a server whose reply is complete, with NO_ERROR.
    pub fn release(&mut self, stream: StreamKey, code: Http2Code) {
        let Some(state) = self.streams.peek(stream) else { return };
        let code = match (state.remote, state.local) {
            _ if state.reset.is_some() => None,
            (_, StreamHalf::ExpectHead | StreamHalf::ExpectBody) => Some(code),
            (_, StreamHalf::Ended) if state.is_malformed => Some(Http2Code::PROTOCOL_ERROR),
            (StreamHalf::Ended, StreamHalf::Ended) => None,
            (_, StreamHalf::Ended) => match self.role {
                Http2Role::Server => Some(Http2Code::NO_ERROR),
                Http2Role::Client => Some(code),
            },
        };
        let end = match (state.reset, code) {
            (Some(end), _) => end,
            (None, Some(code)) => {
                let window = state.receive_window;
                self.expect_late(window);
                frame::write_reset(&mut self.output, stream.id, code);
                StreamEnd::ResetByUs
            }
            (None, None) => {
                self.budgets.peer_resets.earn(1);
                self.budgets.provoked_resets.earn(1);
                self.expect_late_reset();
                StreamEnd::Closed
            }
        };
        self.streams.remove(stream, end);
    }

    /// Sends GOAWAY: no further streams are accepted, and open ones continue.
    pub fn go_away(&mut self, code: Http2Code) {
        if !self.is_going_away() {
            self.last_served = Some(self.last_peer_stream);
            self.expect_late_streams();
            frame::write_go_away(&mut self.output, self.last_peer_stream, code);
        }
    }

    /// Sends GOAWAY that refuses no stream (RFC 9113, section 6.8): the peer is to open no more of
    /// them, and those that it opens before it learns of that are served.
    pub fn announce_end(&mut self) {
        if !self.is_going_away() && !core::mem::replace(&mut self.has_announced_end, true) {
            frame::write_go_away(&mut self.output, LAST_STREAM, Http2Code::NO_ERROR);
        }
    }

    pub fn ping(&mut self, opaque: [u8; 8]) {
        self.awaited_pongs = self.awaited_pongs.saturating_add(1);
        frame::write_ping(&mut self.output, 0, opaque);
    }

    /// The bytes to send.
    pub fn output(&self) -> &[u8] {
        &self.output[self.output_start..]
    }

    /// Removes bytes from the output that were sent.
    pub fn advance_output(&mut self, count: usize) {
        self.output_start += count;
        if self.output_start >= self.output.len() {
            self.output.clear();
            self.output_start = 0;
        }
        self.answer_bytes = self.answer_bytes.saturating_sub(count as u32);
    }

    /// Takes the output's buffer if it is empty.
    pub fn take_buffer(&mut self) -> Option<Vec<u8>> {
        (self.output.is_empty() && self.output.capacity() > 0)
            .then(|| core::mem::take(&mut self.output))
    }

    /// Gives the output a buffer. Returns it if the output has one.
    pub fn give_buffer(&mut self, buffer: Vec<u8>) -> Option<Vec<u8>> {
        if self.output.capacity() > 0 {
            return Some(buffer);
        }
        self.output = buffer;
        None
    }

    /// The free space in the output's buffer.
    pub fn output_room(&self) -> usize {
        self.output.capacity() - self.output.len()
    }

    /// Moves the output into this empty buffer and returns the previous one.
    pub fn change_buffer(&mut self, mut buffer: Vec<u8>) -> Vec<u8> {
        buffer.extend_from_slice(self.output());
        self.output_start = 0;
        core::mem::replace(&mut self.output, buffer)
    }

    pub fn has_buffer(&self) -> bool {
        self.output.capacity() > 0
    }
}

impl FieldWriter<'_> {
    /// Writes the status of a reply, which comes first.
    pub fn status(&mut self, status: u16) {
        self.endpoint.encoder.status(status, &mut self.endpoint.output);
    }

    /// Writes a field, whose name may have capitals.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.endpoint.role == Http2Role::Client {
            self.note_method(name, value);
        }
        self.endpoint.encoder.field(name, value, &mut self.endpoint.output);
    }

    /// A reply to HEAD has no body, whatever its length says.
    fn note_method(&mut self, name: &[u8], value: &[u8]) {
        if name == b":method"
            && value == b"HEAD"
            && let Some(state) = self.endpoint.streams.get(self.stream)
        {
            state.asks_for_head = true;
        }
    }

    /// Completes an interim reply. Returns the length of its frames.
    pub fn finish_interim(self) -> usize {
        self.close(0)
    }

    /// Completes a head or trailers. Returns the length of the frames.
    pub fn finish(self, end_stream: bool) -> usize {
        if let Some(state) = self.endpoint.streams.get(self.stream) {
            state.local = if end_stream { StreamHalf::Ended } else { StreamHalf::ExpectBody };
        }
        self.close(if end_stream { END_STREAM } else { 0 })
    }

    /// Writes the frame headers, now that the length of the block is known.
    fn close(self, flags: u8) -> usize {
        let Self { endpoint, stream, start } = self;
        let frame_max = endpoint.peer.max_frame_size as usize;
        let block_start = start + FRAME_HEAD_BYTES;
        let length = endpoint.output.len() - block_start;
        let head = |length: usize, kind, flags| {
            FrameHead { length: length as u32, kind, flags, stream: stream.id }.bytes()
        };
        if length <= frame_max {
            let bytes = head(length, HEADERS, flags | END_HEADERS);
            endpoint.output[start..block_start].copy_from_slice(&bytes);
            return endpoint.output.len() - start;
        }
        let block = endpoint.output.split_off(block_start);
        endpoint.output.truncate(start);
        let mut pieces = block.chunks(frame_max).enumerate().peekable();
        while let Some((index, piece)) = pieces.next() {
            let kind = if index == 0 { HEADERS } else { CONTINUATION };
            let first = if index == 0 { flags } else { 0 };
            let last = if pieces.peek().is_none() { END_HEADERS } else { 0 };
            endpoint.output.extend_from_slice(&head(piece.len(), kind, first | last));
            endpoint.output.extend_from_slice(piece);
        }
        endpoint.output.len() - start
    }
}

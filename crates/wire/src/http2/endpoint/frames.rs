//! Frames by type: checks of their headers, and the handling of those of fixed size.

use super::super::counts::Http2Count;
use super::super::frame;
use super::super::frame::{
    ACK, CONTINUATION, DATA, FrameHead, GOAWAY, HAS_PRIORITY, HEADERS, PADDED, PING, PRIORITY,
    PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use super::super::limits::Http2Limit;
use super::super::stream::{StreamEnd, StreamHalf};
use super::super::{Http2Code, Http2Error, Http2Role, StreamKey, WINDOW_MAX};
use super::{Expect, Http2Endpoint, Http2Event, Step};

impl Http2Endpoint {
    /// A frame header is complete.
    pub(super) fn begin_frame(&mut self) -> Result<Step, Http2Error> {
        let FrameHead { length, kind, stream, .. } = self.frame;
        (self.left, self.padding) = (length, 0);
        if self.block.is_open && kind != CONTINUATION {
            let what = "sent inappropriate frame while CONTINUATION was expected";
            return Err(Http2Error::protocol(what));
        }
        if length > self.config.max_frame_size {
            let is_http1 = self.role == Http2Role::Client && self.gathered.starts_with(b"HTTP/");
            let what = if is_http1 { "speaks HTTP/1, not HTTP/2" } else { "sent too long frame" };
            return Err(Http2Error::size(what));
        }
        // RFC 9113, section 3.4. Of clients, nginx does not demand it either.
        let awaits_settings = self.role == Http2Role::Client && !self.has_peer_settings;
        if awaits_settings && (kind != SETTINGS || self.frame.has(ACK)) {
            return Err(Http2Error::protocol("sent a frame before SETTINGS"));
        }
        match kind {
            DATA => return self.begin_data(),
            HEADERS => return self.begin_headers(),
            CONTINUATION => return self.begin_continuation(),
            PRIORITY => {
                self.fixed(5, "sent PRIORITY frame with incorrect length")?;
                self.counts.add(Http2Count::Priorities, 1);
                self.budgets.priorities.spend()?;
            }
            RST_STREAM => self.fixed(4, "sent RST_STREAM frame with incorrect length")?,
            SETTINGS => return self.begin_settings(),
            PUSH_PROMISE => return Err(Http2Error::protocol("sent PUSH_PROMISE frame")),
            PING => self.fixed(8, "sent PING frame with incorrect length")?,
            GOAWAY if length < 8 => {
                return Err(Http2Error::size("sent GOAWAY frame with incorrect length"));
            }
            GOAWAY if stream != 0 => {
                return Err(Http2Error::protocol("sent GOAWAY frame with incorrect identifier"));
            }
            GOAWAY => self.expect = Expect::Fixed(8),
            WINDOW_UPDATE => self.fixed(4, "sent WINDOW_UPDATE frame with incorrect length")?,
            _ => {
                self.take_useless()?;
                self.expect = Expect::Skip;
            }
        }
        Ok(Step::Again)
    }

    fn fixed(&mut self, bytes: u8, what: &'static str) -> Result<(), Http2Error> {
        if self.frame.length != u32::from(bytes) {
            return Err(Http2Error::size(what));
        }
        self.expect = Expect::Fixed(bytes);
        Ok(())
    }

    /// Expects the pad length and the priority, if DATA or HEADERS has them.
    pub(super) fn expect_prefix(&mut self) -> Result<Step, Http2Error> {
        let mut bytes = u8::from(self.frame.has(PADDED));
        if self.frame.kind == HEADERS && self.frame.has(HAS_PRIORITY) {
            bytes += 5;
        }
        if self.left < u32::from(bytes) {
            return Err(Http2Error::size("sent frame with incorrect length"));
        }
        if bytes == 0 {
            return self.end_prefix();
        }
        self.expect = Expect::Prefix(bytes);
        Ok(Step::Again)
    }

    /// Pad length and priority are complete.
    pub(super) fn end_prefix(&mut self) -> Result<Step, Http2Error> {
        if let Expect::Prefix(bytes) = self.expect {
            self.left -= u32::from(bytes);
            if self.frame.has(PADDED) {
                self.padding = self.gathered[0].into();
                self.left = self
                    .left
                    .checked_sub(self.padding)
                    .ok_or(Http2Error::protocol("sent padded frame with incorrect length"))?;
            }
            if bytes >= 5 {
                let at = usize::from(bytes) - 5;
                self.check_dependency(at, "sent HEADERS frame with incorrect dependency")?;
            }
        }
        match self.frame.kind {
            DATA => self.begin_payload(),
            _ => {
                self.expect = Expect::Block;
                Ok(Step::Again)
            }
        }
    }

    /// A stream cannot depend on itself.
    fn check_dependency(&self, at: usize, what: &'static str) -> Result<(), Http2Error> {
        let [a, b, c, d] = [0, 1, 2, 3].map(|offset| self.gathered[at + offset]);
        if u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff == self.frame.stream {
            return Err(Http2Error::protocol(what));
        }
        Ok(())
    }

    /// A payload of fixed size is complete.
    pub(super) fn take_fixed(&mut self) -> Result<Step, Http2Error> {
        match self.frame.kind {
            PRIORITY => self.take_priority(),
            RST_STREAM => self.take_reset(),
            PING => self.take_ping(),
            GOAWAY => self.take_go_away(),
            _ => self.take_window_update(),
        }
    }

    fn first_u32(&self) -> u32 {
        let [a, b, c, d, ..] = self.gathered;
        u32::from_be_bytes([a, b, c, d])
    }

    fn take_priority(&mut self) -> Result<Step, Http2Error> {
        if self.frame.stream == 0 {
            return Err(Http2Error::protocol("sent PRIORITY frame with incorrect identifier"));
        }
        self.check_dependency(0, "sent PRIORITY frame with incorrect dependency")?;
        Ok(Step::Again)
    }

    fn take_reset(&mut self) -> Result<Step, Http2Error> {
        let (id, code) = (self.frame.stream, Http2Code(self.first_u32()));
        if id == 0 || self.is_idle(id) {
            return Err(Http2Error::protocol("sent RST_STREAM frame with incorrect identifier"));
        }
        let Some(stream) = self.streams.find(id) else {
            self.take_late_reset()?;
            // The peer knows by now that the stream is closed.
            self.streams.forget_reset(id);
            return Ok(Step::Again);
        };
        let Some(state) = self.streams.get(stream).filter(|state| state.reset.is_none()) else {
            self.take_late_reset()?;
            return Ok(Step::Again);
        };
        (state.reset, state.remote) = (Some(StreamEnd::Closed), StreamHalf::Ended);
        if state.local != StreamHalf::Ended {
            self.counts.add(Http2Count::PeerResets, 1);
            self.take_early_reset()?;
        }
        Ok(Step::Event(Http2Event::Reset { stream, code }))
    }

    fn take_ping(&mut self) -> Result<Step, Http2Error> {
        if self.frame.stream != 0 {
            return Err(Http2Error::protocol("sent PING frame with incorrect identifier"));
        }
        let [opaque @ .., _] = self.gathered;
        if self.frame.has(ACK) {
            match self.awaited_pongs.checked_sub(1) {
                Some(awaited) => self.awaited_pongs = awaited,
                None => self.take_useless()?,
            }
            return Ok(Step::Event(Http2Event::Pong { opaque }));
        }
        self.counts.add(Http2Count::Pings, 1);
        self.budgets.pings.spend()?;
        frame::write_ping(&mut self.output, ACK, opaque);
        self.note_answer(17)?;
        Ok(Step::Again)
    }

    fn take_go_away(&mut self) -> Result<Step, Http2Error> {
        self.take_useless()?;
        let [a, b, c, d, e, f, g, h, _] = self.gathered;
        let last_stream = u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff;
        let code = Http2Code(u32::from_be_bytes([e, f, g, h]));
        self.has_peer_gone_away = true;
        Ok(Step::Event(Http2Event::GoAway { last_stream, code }))
    }

    fn take_window_update(&mut self) -> Result<Step, Http2Error> {
        self.counts.add(Http2Count::WindowUpdates, 1);
        self.budgets.window_updates.spend()?;
        let increment = i64::from(self.first_u32() & WINDOW_MAX);
        if increment == 0 {
            let what = "sent WINDOW_UPDATE frame with incorrect window increment 0";
            return Err(Http2Error::protocol(what));
        }
        let id = self.frame.stream;
        if id == 0 {
            return self.open_connection_window(increment);
        }
        if self.is_idle(id) {
            return Err(Http2Error::protocol("sent WINDOW_UPDATE frame with incorrect identifier"));
        }
        let Some(stream) = self.streams.find(id) else { return Ok(Step::Again) };
        let Some(state) = self.streams.get(stream).filter(|state| state.reset.is_none()) else {
            return Ok(Step::Again);
        };
        let before = state.send_window;
        if before + increment > WINDOW_MAX.into() {
            return self.provoke(stream, Http2Code::FLOW_CONTROL_ERROR);
        }
        state.send_window += increment;
        Ok(match before <= 0 && state.send_window > 0 {
            true => Step::Event(Http2Event::Writable { stream: Some(stream) }),
            false => Step::Again,
        })
    }

    fn open_connection_window(&mut self, increment: i64) -> Result<Step, Http2Error> {
        let before = self.send_window;
        self.send_window += increment;
        if self.send_window > WINDOW_MAX.into() {
            let what = "violated connection flow control: too large window";
            return Err(Http2Error::new(Http2Code::FLOW_CONTROL_ERROR, what));
        }
        Ok(match before <= 0 {
            true => Step::Event(Http2Event::Writable { stream: None }),
            false => Step::Again,
        })
    }

    fn begin_settings(&mut self) -> Result<Step, Http2Error> {
        let FrameHead { length, stream, .. } = self.frame;
        if stream != 0 {
            return Err(Http2Error::protocol("sent SETTINGS frame with incorrect identifier"));
        }
        if self.frame.has(ACK) {
            if length != 0 {
                let what = "sent SETTINGS frame with the ACK flag and nonzero length";
                return Err(Http2Error::size(what));
            }
            self.expect = Expect::Skip;
            if core::mem::replace(&mut self.is_acknowledged, true) {
                self.take_useless()?;
            }
            return Ok(Step::Event(Http2Event::SettingsAcked));
        }
        if !length.is_multiple_of(6) {
            return Err(Http2Error::size("sent SETTINGS frame with incorrect length"));
        }
        self.counts.add(Http2Count::Settings, 1);
        self.budgets.settings.spend()?;
        self.peer_next = self.peer;
        self.expect = Expect::Settings;
        Ok(Step::Again)
    }

    /// Reads parameters; they apply once all are read.
    pub(super) fn take_settings(
        &mut self,
        input: &[u8],
        at: &mut usize,
    ) -> Result<Step, Http2Error> {
        while self.left > 0 {
            if !self.gather(6, input, at) {
                return Ok(Step::Starved);
            }
            self.left -= 6;
            let [a, b, c, d, e, f, ..] = self.gathered;
            self.peer_next.apply(self.role, [a, b, c, d, e, f])?;
        }
        self.expect = Expect::Skip;
        self.apply_settings()
    }

    fn apply_settings(&mut self) -> Result<Step, Http2Error> {
        let before = core::mem::replace(&mut self.peer, self.peer_next);
        self.has_peer_settings = true;
        if before.header_table_size != self.peer.header_table_size {
            self.encoder.set_table_size(self.peer.header_table_size as usize);
        }
        let delta =
            i64::from(self.peer.initial_window_size) - i64::from(before.initial_window_size);
        for (_, state) in self.streams.iter_mut() {
            state.send_window += delta;
            if state.send_window > WINDOW_MAX.into() {
                let what = "violated flow control: too large initial window";
                return Err(Http2Error::new(Http2Code::FLOW_CONTROL_ERROR, what));
            }
        }
        frame::write(&mut self.output, SETTINGS, ACK, 0, &[]);
        self.note_answer(9)?;
        Ok(Step::Event(Http2Event::Writable { stream: None }))
    }

    /// Whether a stream with that number has not been opened yet.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        let is_clients = !id.is_multiple_of(2);
        match self.role {
            Http2Role::Server => !is_clients || id > self.last_peer_stream,
            Http2Role::Client => !is_clients || id >= self.next_own_stream,
        }
    }

    /// Resets a stream because of what the peer sent on it.
    pub(super) fn provoke(&mut self, key: StreamKey, code: Http2Code) -> Result<Step, Http2Error> {
        self.write_provoked(key.id, code)?;
        if let Some(state) = self.stream(key) {
            state.end_by(StreamEnd::ResetByUs);
            let window = state.receive_window;
            self.expect_late(window);
        }
        Ok(Step::Event(Http2Event::Provoked { stream: key, code }))
    }

    pub(super) fn write_provoked(&mut self, id: u32, code: Http2Code) -> Result<(), Http2Error> {
        self.counts.add(Http2Count::ProvokedResets, 1);
        self.budgets.provoked_resets.spend()?;
        frame::write_reset(&mut self.output, id, code);
        self.note_answer(13)
    }

    /// Counts the bytes of an answer; the peer must read answers before it causes many more.
    pub(super) fn note_answer(&mut self, bytes: u32) -> Result<(), Http2Error> {
        self.answer_bytes += bytes;
        if self.answer_bytes > self.config.limits.answer_bytes_max {
            return Err(Http2Limit::AnswerBytes.into());
        }
        Ok(())
    }
}

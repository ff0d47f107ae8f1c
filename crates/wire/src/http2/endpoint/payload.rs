//! DATA frames: flow control, and the announced length of a body.

use super::super::counts::Http2Count;
use super::super::frame::{self, END_STREAM, FrameHead};
use super::super::stream::{StreamEnd, StreamHalf};
use super::super::{Http2Code, Http2Error, StreamKey, WINDOW_MAX};
use super::{Expect, Http2Endpoint, Http2Event, Step};

impl Http2Endpoint {
    pub(super) fn begin_data(&mut self) -> Result<Step, Http2Error> {
        let FrameHead { length, stream: id, .. } = self.frame;
        self.target = None;
        if id == 0 || self.is_idle(id) {
            return Err(Http2Error::protocol("sent DATA frame with incorrect identifier"));
        }
        self.take_connection_window(length)?;
        let Some(key) = self.streams.find(id) else {
            return match self.streams.end_of(id) {
                Some(StreamEnd::Closed) => {
                    self.write_provoked(id, Http2Code::STREAM_CLOSED)?;
                    self.expect_prefix()
                }
                Some(StreamEnd::ResetByUs) | None => self.begin_late_data(),
            };
        };
        let Some(state) = self.streams.get(key) else { return self.expect_prefix() };
        match state.reset {
            Some(StreamEnd::ResetByUs) => return self.begin_late_data(),
            Some(StreamEnd::Closed) => {
                self.write_provoked(id, Http2Code::STREAM_CLOSED)?;
                return self.expect_prefix();
            }
            None => {}
        }
        let fault = match state.remote {
            _ if i64::from(length) > state.receive_window => Some(Http2Code::FLOW_CONTROL_ERROR),
            StreamHalf::ExpectHead => Some(Http2Code::PROTOCOL_ERROR),
            StreamHalf::ExpectBody => None,
            // The message is malformed; the rest of it is discarded.
            StreamHalf::Ended if state.is_malformed => None,
            StreamHalf::Ended => Some(Http2Code::STREAM_CLOSED),
        };
        state.receive_window -= i64::from(length);
        if state.remote == StreamHalf::ExpectBody && fault.is_none() {
            self.target = Some(key);
        }
        match fault {
            None if self.target.is_none() => self.begin_late_data(),
            None => self.expect_prefix(),
            Some(code) => {
                let provoked = self.provoke(key, code)?;
                // The payload follows nevertheless.
                self.expect_prefix()?;
                Ok(provoked)
            }
        }
    }

    fn begin_late_data(&mut self) -> Result<Step, Http2Error> {
        self.take_late()?;
        self.expect_prefix()
    }

    /// Reopens the connection's window when a quarter of it is left. The windows of streams limit
    /// how much data is stored.
    fn take_connection_window(&mut self, length: u32) -> Result<(), Http2Error> {
        self.receive_window -= i64::from(length);
        if self.receive_window < 0 {
            let what = "violated connection flow control";
            return Err(Http2Error::new(Http2Code::FLOW_CONTROL_ERROR, what));
        }
        if self.receive_window < i64::from(WINDOW_MAX / 4) {
            let increment = i64::from(WINDOW_MAX) - self.receive_window;
            frame::write_window_update(&mut self.output, 0, increment as u32);
            self.receive_window = WINDOW_MAX.into();
        }
        Ok(())
    }

    /// The prefix of a DATA frame is complete; its data follows.
    pub(super) fn begin_payload(&mut self) -> Result<Step, Http2Error> {
        let Some(key) = self.target else {
            self.expect = Expect::Skip;
            return Ok(Step::Again);
        };
        let (left, ends) = (u64::from(self.left), self.frame.has(END_STREAM));
        if left == 0 && !ends {
            self.counts.add(Http2Count::EmptyData, 1);
            self.budgets.empty_data.spend()?;
            self.expect = Expect::Skip;
            return Ok(Step::Again);
        }
        if left > 0 {
            self.budgets.empty_data.earn(1);
            self.budgets.pings.earn(1);
        }
        let Some(announced) = self.stream(key).and_then(|state| state.announced.as_mut()) else {
            self.expect = Expect::Data;
            return Ok(Step::Again);
        };
        let what = match announced.checked_sub(left) {
            None => "intended to send body data larger than declared",
            Some(1..) if ends => "prematurely closed stream",
            Some(rest) => {
                *announced = rest;
                self.expect = Expect::Data;
                return Ok(Step::Again);
            }
        };
        self.expect = Expect::Skip;
        Ok(self.malform(key, what))
    }

    /// Discards further frames of the peer on this stream.
    pub(super) fn malform(&mut self, stream: StreamKey, what: &'static str) -> Step {
        if let Some(state) = self.stream(stream) {
            state.remote = StreamHalf::Ended;
            state.is_malformed = true;
            let window = state.receive_window;
            self.expect_late(window);
        }
        self.target = None;
        Step::Event(Http2Event::Malformed { stream, what })
    }

    pub(super) fn take_data(&mut self, input: &[u8], at: &mut usize) -> Step {
        let Some(stream) = self.target else {
            self.expect = Expect::Skip;
            return Step::Again;
        };
        let count = (self.left as usize).min(input.len() - *at);
        if count == 0 && self.left > 0 {
            return Step::Starved;
        }
        let range = *at..*at + count;
        *at += count;
        self.left -= count as u32;
        if self.left > 0 {
            return Step::Event(Http2Event::Data { stream, range, end_stream: false });
        }
        self.expect = Expect::Skip;
        let end_stream = self.frame.has(END_STREAM);
        if end_stream && let Some(state) = self.stream(stream) {
            state.remote = StreamHalf::Ended;
        }
        Step::Event(Http2Event::Data { stream, range, end_stream })
    }
}

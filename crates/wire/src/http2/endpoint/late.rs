//! Frames without effect: those that the peer sent before it learned of a reset or of GOAWAY, and
//! those that nobody asked for.

use super::super::counts::Http2Count;
use super::super::{Http2Error, WINDOW_MAX};
use super::Http2Endpoint;

/// The minimum charge for a late frame.
const LATE_FRAME_BYTES_MIN: u32 = 256;

/// What a peer may send on a stream that was reset, besides data: trailers, and small frames.
const LATE_BLOCK_BYTES: u32 = 4096;

impl Http2Endpoint {
    /// A stream is over whose window the peer may be using up.
    pub(super) fn expect_late(&mut self, window: i64) {
        let window = window.clamp(0, WINDOW_MAX.into()) as u32;
        self.late_bytes = self.late_bytes.saturating_add(window + LATE_BLOCK_BYTES);
    }

    /// The same of all streams that the peer may open before it learns of GOAWAY.
    pub(super) fn expect_late_streams(&mut self) {
        let bytes = self.config.stream_window.saturating_add(LATE_BLOCK_BYTES);
        let bytes = bytes.saturating_mul(self.config.max_concurrent_streams);
        self.late_bytes = self.late_bytes.saturating_add(bytes);
    }

    /// A frame of DATA or HEADERS is discarded. More than can have been under way has no effect.
    pub(super) fn take_late(&mut self) -> Result<(), Http2Error> {
        match self.late_bytes.checked_sub(self.frame.length.max(LATE_FRAME_BYTES_MIN)) {
            Some(left) => self.late_bytes = left,
            None => self.take_useless()?,
        }
        Ok(())
    }

    /// A frame without effect.
    pub(super) fn take_useless(&mut self) -> Result<(), Http2Error> {
        self.counts.add(Http2Count::UnknownFrames, 1);
        Ok(self.budgets.unknown_frames.spend()?)
    }
}

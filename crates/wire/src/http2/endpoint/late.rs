//! Frames without effect: those that the peer sent before it learned of a reset or of GOAWAY, and
//! unsolicited answers; and the cost of resets.

use super::super::counts::Http2Count;
use super::super::{Http2Error, Http2Role, WINDOW_MAX};
use super::Http2Endpoint;

/// The minimum charge for a late frame.
const LATE_FRAME_BYTES_MIN: u32 = 256;

/// Resets of ended streams that the peer may send at once.
const LATE_RESETS_MAX: u32 = 10_000;

/// The allowance for a stream that was reset, besides its data: trailers, and small frames.
const LATE_BLOCK_BYTES: u32 = 4096;

impl Http2Endpoint {
    /// Allows for late frames of an ended stream, whose window the peer may use up.
    pub(super) fn expect_late(&mut self, window: i64) {
        let window = window.clamp(0, WINDOW_MAX.into()) as u32;
        self.late_bytes = self.late_bytes.saturating_add(window + LATE_BLOCK_BYTES);
        self.expect_late_reset();
    }

    /// Allows for a reset of an ended stream: a server that has replied resets the stream if it has
    /// not received the end of the request yet (RFC 9113, section 8.1).
    pub(super) fn expect_late_reset(&mut self) {
        self.late_resets = (self.late_resets + 1).min(LATE_RESETS_MAX);
    }

    /// Allows for late frames of all streams that the peer may open before it learns of GOAWAY.
    pub(super) fn expect_late_streams(&mut self) {
        let bytes = self.config.stream_window.saturating_add(LATE_BLOCK_BYTES);
        let bytes = bytes.saturating_mul(self.config.max_concurrent_streams);
        self.late_bytes = self.late_bytes.saturating_add(bytes);
    }

    /// Discards a frame of DATA or HEADERS. Beyond the allowance, it is a frame without effect.
    pub(super) fn take_late(&mut self) -> Result<(), Http2Error> {
        match self.late_bytes.checked_sub(self.frame.length.max(LATE_FRAME_BYTES_MIN)) {
            Some(left) => self.late_bytes = left,
            None => self.take_useless()?,
        }
        Ok(())
    }

    /// The peer has reset an open stream. A server may do so without limit: each stream is ours,
    /// and it can be reset once. Servers do so after replies that need no more of the request (RFC
    /// 9113, section 8.1).
    pub(super) fn take_early_reset(&mut self) -> Result<(), Http2Error> {
        match self.role {
            Http2Role::Server => Ok(self.budgets.peer_resets.spend()?),
            Http2Role::Client => Ok(()),
        }
    }

    /// The peer has reset an ended stream. A server may have done so before it learned of our
    /// reset.
    pub(super) fn take_late_reset(&mut self) -> Result<(), Http2Error> {
        match (self.role, self.late_resets.checked_sub(1)) {
            (Http2Role::Server, _) => Ok(self.budgets.peer_resets.spend()?),
            (Http2Role::Client, Some(left)) => {
                self.late_resets = left;
                Ok(())
            }
            (Http2Role::Client, None) => self.take_useless(),
        }
    }

    /// Counts a frame without effect.
    pub(super) fn take_useless(&mut self) -> Result<(), Http2Error> {
        self.counts.add(Http2Count::UnknownFrames, 1);
        Ok(self.budgets.unknown_frames.spend()?)
    }
}

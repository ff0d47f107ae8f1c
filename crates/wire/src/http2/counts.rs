//! Counts of a peer's actions, for monitoring the limits.

/// An action of a peer, or a consequence of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Count {
    /// Streams that the peer opened.
    Streams,
    /// Streams refused because too many were open.
    RefusedStreams,
    /// Streams that the peer reset before their end.
    PeerResets,
    /// Streams reset by this end because of what the peer sent.
    ProvokedResets,
    /// SETTINGS frames.
    Settings,
    /// PING frames that request a reply.
    Pings,
    /// PRIORITY frames.
    Priorities,
    /// DATA frames without data that do not end their stream.
    EmptyData,
    /// WINDOW_UPDATE frames.
    WindowUpdates,
    /// Frames without effect, such as those of unknown types.
    UnknownFrames,
    /// CONTINUATION frames.
    ContinuationFrames,
    /// Bytes of CONTINUATION frames.
    ContinuationBytes,
    /// Header blocks with more fields than `fields_max`.
    CutBlocks,
    /// Streams reset because the peer did not let their data be sent. Counted by the driver.
    StalledStreams,
    /// Times that a window stayed closed because the connection held too much unread data. Counted
    /// by the driver.
    HeldWindows,
    /// Times that reading stopped because the peer did not read. Counted by the driver.
    PausedReads,
}

impl Http2Count {
    /// The number of counts.
    pub const COUNT: usize = Self::PausedReads as usize + 1;
}

/// The counts of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2Counts([u64; Http2Count::COUNT]);

impl Http2Counts {
    #[inline]
    pub fn add(&mut self, count: Http2Count, more: u64) {
        self.0[count as usize] += more;
    }

    pub fn get(&self, count: Http2Count) -> u64 {
        self.0[count as usize]
    }

    /// All counts, in the order of [`Http2Count`].
    pub fn all(&self) -> &[u64; Http2Count::COUNT] {
        &self.0
    }
}

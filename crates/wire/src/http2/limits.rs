//! Bounds on the work and the memory that a peer may cause.
//!
//! Each kind of frame that is cheap to send and costs the receiver work has a [`FloodLimit`]: a
//! burst, and a rate at which the budget is restored. The driver has the clock and calls
//! [`Http2Endpoint::replenish`]. Useful work also restores budgets: a stream that ends normally
//! gives back a reset, and data gives back window updates.
//!
//! [`Http2Endpoint::replenish`]: super::Http2Endpoint::replenish

/// How many frames of a kind a peer may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloodLimit {
    pub burst: u32,
    pub per_second: u32,
}

/// The limits of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Http2Limits {
    /// Streams that a client resets before they have ended ("rapid reset", CVE-2023-44487). A
    /// server can only reset streams that we have opened, so there is no limit for servers.
    pub peer_resets: FloodLimit,
    /// Streams that we have to reset because of what the peer sent ("made you reset",
    /// CVE-2025-8671).
    pub provoked_resets: FloodLimit,
    /// SETTINGS frames (CVE-2019-9515).
    pub settings: FloodLimit,
    /// PING frames (CVE-2019-9512).
    pub pings: FloodLimit,
    /// PRIORITY frames (CVE-2019-9513).
    pub priorities: FloodLimit,
    /// DATA frames without data that do not end their stream (CVE-2019-9518).
    pub empty_data: FloodLimit,
    /// WINDOW_UPDATE frames, beyond the number earned by sent data (CVE-2019-9511).
    pub window_updates: FloodLimit,
    /// Frames without effect: of unknown types, unsolicited answers and GOAWAY, and frames on reset
    /// streams beyond those that may have been in flight.
    pub unknown_frames: FloodLimit,
    /// CONTINUATION frames of one header block (CVE-2024-27316).
    pub continuation_frames_max: u32,
    /// Encoded bytes of one header block.
    pub block_bytes_max: u32,
    /// Decoded bytes of names and values of one header block.
    pub fields_bytes_max: u32,
    /// Encoded bytes of one name or value.
    pub field_bytes_max: u32,
    /// Fields of one header block. Further ones are decoded and dropped.
    pub fields_max: u32,
    /// Bytes of answers (acknowledgements, resets) that the peer has not read.
    pub answer_bytes_max: u32,
}

impl Default for Http2Limits {
    fn default() -> Self {
        let limit = |burst, per_second| FloodLimit { burst, per_second };
        Self {
            peer_resets: limit(200, 20),
            provoked_resets: limit(100, 10),
            settings: limit(100, 10),
            pings: limit(200, 20),
            priorities: limit(1000, 100),
            empty_data: limit(100, 10),
            window_updates: limit(1000, 100),
            unknown_frames: limit(100, 10),
            continuation_frames_max: 64,
            block_bytes_max: 64 * 1024,
            fields_bytes_max: 32 * 1024,
            field_bytes_max: 8 * 1024,
            fields_max: 1000,
            answer_bytes_max: 64 * 1024,
        }
    }
}

/// A limit whose excess ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Limit {
    /// [`Http2Limits::peer_resets`]
    PeerResets,
    /// [`Http2Limits::provoked_resets`]
    ProvokedResets,
    /// [`Http2Limits::settings`]
    Settings,
    /// [`Http2Limits::pings`]
    Pings,
    /// [`Http2Limits::priorities`]
    Priorities,
    /// [`Http2Limits::empty_data`]
    EmptyData,
    /// [`Http2Limits::window_updates`]
    WindowUpdates,
    /// [`Http2Limits::unknown_frames`]
    UnknownFrames,
    /// [`Http2Limits::continuation_frames_max`]
    ContinuationFrames,
    /// [`Http2Limits::block_bytes_max`]
    BlockBytes,
    /// [`Http2Limits::fields_bytes_max`]
    FieldsBytes,
    /// [`Http2Limits::field_bytes_max`]
    FieldBytes,
    /// [`Http2Limits::answer_bytes_max`]
    AnswerBytes,
}

impl Http2Limit {
    /// The number of limits.
    pub const COUNT: usize = Self::AnswerBytes as usize + 1;

    /// The peer's excess, to be read after "client " or "server ".
    pub const fn what(self) -> &'static str {
        match self {
            Self::PeerResets => "sent too many RST_STREAM frames",
            Self::ProvokedResets => "provoked too many RST_STREAM frames",
            Self::Settings => "sent too many SETTINGS frames",
            Self::Pings => "sent too many PING frames",
            Self::Priorities => "sent too many PRIORITY frames",
            Self::EmptyData => "sent too many empty DATA frames",
            Self::WindowUpdates => "sent too many WINDOW_UPDATE frames",
            Self::UnknownFrames => "sent too many frames without effect",
            Self::ContinuationFrames => "sent too many CONTINUATION frames",
            Self::BlockBytes | Self::FieldsBytes => "sent too large header",
            Self::FieldBytes => "sent too large header field",
            Self::AnswerBytes => "does not read answers",
        }
    }
}

/// The rest of a [`FloodLimit`].
#[derive(Clone, Copy, Debug)]
pub(super) struct FloodBudget {
    name: Http2Limit,
    limit: FloodLimit,
    left: u32,
}

impl FloodBudget {
    fn new(name: Http2Limit, limit: FloodLimit) -> Self {
        Self { name, limit, left: limit.burst }
    }

    /// Takes one; fails if none is left.
    pub(super) fn spend(&mut self) -> Result<(), Http2Limit> {
        self.left = self.left.checked_sub(1).ok_or(self.name)?;
        Ok(())
    }

    /// Restores frames for useful work.
    pub(super) fn earn(&mut self, count: u32) {
        self.left = self.left.saturating_add(count).min(self.limit.burst);
    }

    fn replenish(&mut self, seconds: u32) {
        self.earn(self.limit.per_second.saturating_mul(seconds));
    }
}

/// The budgets of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct FloodBudgets {
    pub(super) peer_resets: FloodBudget,
    pub(super) provoked_resets: FloodBudget,
    pub(super) settings: FloodBudget,
    pub(super) pings: FloodBudget,
    pub(super) priorities: FloodBudget,
    pub(super) empty_data: FloodBudget,
    pub(super) window_updates: FloodBudget,
    pub(super) unknown_frames: FloodBudget,
}

/// The remaining frames of each budget.
pub(super) type FloodAllowances = [u32; 8];

impl FloodBudgets {
    pub(super) fn new(limits: &Http2Limits) -> Self {
        Self {
            peer_resets: FloodBudget::new(Http2Limit::PeerResets, limits.peer_resets),
            provoked_resets: FloodBudget::new(Http2Limit::ProvokedResets, limits.provoked_resets),
            settings: FloodBudget::new(Http2Limit::Settings, limits.settings),
            pings: FloodBudget::new(Http2Limit::Pings, limits.pings),
            priorities: FloodBudget::new(Http2Limit::Priorities, limits.priorities),
            empty_data: FloodBudget::new(Http2Limit::EmptyData, limits.empty_data),
            window_updates: FloodBudget::new(Http2Limit::WindowUpdates, limits.window_updates),
            unknown_frames: FloodBudget::new(Http2Limit::UnknownFrames, limits.unknown_frames),
        }
    }

    /// Budgets with these remaining frames.
    pub(super) fn with(limits: &Http2Limits, allowances: FloodAllowances) -> Self {
        let mut budgets = Self::new(limits);
        for (budget, left) in budgets.each().into_iter().zip(allowances) {
            budget.left = left.min(budget.limit.burst);
        }
        budgets
    }

    pub(super) fn allowances(mut self) -> FloodAllowances {
        self.each().map(|budget| budget.left)
    }

    pub(super) fn replenish(&mut self, seconds: u32) {
        self.each().into_iter().for_each(|budget| budget.replenish(seconds));
    }

    fn each(&mut self) -> [&mut FloodBudget; 8] {
        [
            &mut self.peer_resets,
            &mut self.provoked_resets,
            &mut self.settings,
            &mut self.pings,
            &mut self.priorities,
            &mut self.empty_data,
            &mut self.window_updates,
            &mut self.unknown_frames,
        ]
    }
}

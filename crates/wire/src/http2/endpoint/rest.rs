//! An idle connection without the memory that its next request needs.

use super::super::counts::Http2Counts;
use super::super::frame::FrameHead;
use super::super::limits::{FloodAllowances, FloodBudgets, Http2Limits};
use super::super::{Http2Config, Http2Role, PeerSettings};
use super::{ENCODER_TABLE_MAX, Expect, Http2Endpoint};
use crate::hpack::{Decoder, Encoder};

/// One end of an idle connection: only the state that the peer relies on.
///
/// The ends of the last streams and the encoder's table are not kept. The next head tells the peer
/// to empty its copy of that table.
pub struct RestingEndpoint {
    role: Http2Role,
    max_concurrent_streams: u32,
    stream_window: u32,
    max_frame_size: u32,
    peer: PeerSettings,
    decoder: Decoder,
    /// Whether the peer's copy of the encoder's table may have entries.
    has_encoded: bool,
    send_window: i64,
    receive_window: i64,
    last_peer_stream: u32,
    next_own_stream: u32,
    has_announced_end: bool,
    has_peer_gone_away: bool,
    is_acknowledged: bool,
    awaited_pongs: u32,
    late_bytes: u32,
    late_resets: u32,
    allowances: FloodAllowances,
}

impl RestingEndpoint {
    /// How many streams a client can open.
    pub fn free_streams(&self) -> usize {
        self.peer.max_concurrent_streams as usize
    }

    /// Whether [`Http2Endpoint::announce_end`] was called.
    pub fn has_announced_end(&self) -> bool {
        self.has_announced_end
    }
}

impl Http2Endpoint {
    /// Whether it has no open streams and no output, is between two frames, and a client's end may
    /// open streams.
    pub fn can_rest(&self) -> bool {
        let is_useful = self.has_peer_settings && !self.is_used_up();
        (self.role == Http2Role::Server || is_useful)
            && self.streams.len() == 0
            && self.output.is_empty()
            && self.expect == Expect::Head
            && !self.is_within_frame()
            && !self.is_going_away()
    }

    /// Drops everything that an idle connection does not need, including the counts. Requires
    /// [`can_rest`](Self::can_rest).
    pub fn rest(self) -> RestingEndpoint {
        debug_assert!(self.can_rest());
        let Self { config, peer, mut decoder, encoder, .. } = self;
        decoder.shrink();
        RestingEndpoint {
            role: self.role,
            max_concurrent_streams: config.max_concurrent_streams,
            stream_window: config.stream_window,
            max_frame_size: config.max_frame_size,
            peer,
            decoder,
            has_encoded: encoder.has_state(),
            send_window: self.send_window,
            receive_window: self.receive_window,
            last_peer_stream: self.last_peer_stream,
            next_own_stream: self.next_own_stream,
            has_announced_end: self.has_announced_end,
            has_peer_gone_away: self.has_peer_gone_away,
            is_acknowledged: self.is_acknowledged,
            awaited_pongs: self.awaited_pongs,
            late_bytes: self.late_bytes,
            late_resets: self.late_resets,
            allowances: self.budgets.allowances(),
        }
    }

    /// Resumes a connection with these limits. The settings remain those that were announced.
    pub fn wake(resting: RestingEndpoint, limits: Http2Limits) -> Self {
        let RestingEndpoint { max_concurrent_streams, stream_window, max_frame_size, .. } = resting;
        let config = Http2Config {
            max_concurrent_streams,
            stream_window,
            max_frame_size,
            limits,
            ..Http2Config::default()
        };
        let mut encoder = Encoder::new(ENCODER_TABLE_MAX);
        encoder.set_table_size(resting.peer.header_table_size as usize);
        if resting.has_encoded {
            encoder.empty_peers_table();
        }
        Self {
            peer: resting.peer,
            peer_next: resting.peer,
            expect: Expect::Head,
            frame: FrameHead::default(),
            decoder: resting.decoder,
            encoder,
            send_window: resting.send_window,
            receive_window: resting.receive_window,
            last_peer_stream: resting.last_peer_stream,
            next_own_stream: resting.next_own_stream,
            has_announced_end: resting.has_announced_end,
            has_peer_gone_away: resting.has_peer_gone_away,
            is_acknowledged: resting.is_acknowledged,
            has_peer_settings: true,
            awaited_pongs: resting.awaited_pongs,
            late_bytes: resting.late_bytes,
            late_resets: resting.late_resets,
            budgets: FloodBudgets::with(&limits, resting.allowances),
            counts: Http2Counts::default(),
            ..Self::silent(resting.role, config)
        }
    }
}

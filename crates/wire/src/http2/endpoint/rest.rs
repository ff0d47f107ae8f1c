//! An idle connection without the memory that its next request needs.

use super::super::counts::Http2Counts;
use super::super::frame::FrameHead;
use super::super::limits::{FloodAllowances, FloodBudgets, Http2Limits};
use super::super::{Http2Config, Http2Role, PeerSettings};
use super::{ENCODER_TABLE_MAX, Expect, Http2Endpoint};
use crate::hpack::{Decoder, Encoder};

/// The server's end of an idle connection: only the state that the peer relies on.
///
/// The ends of the last streams and the encoder's table are not kept. The next head tells the peer
/// to empty its copy of that table.
pub struct RestingEndpoint {
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
    has_peer_gone_away: bool,
    is_acknowledged: bool,
    late_bytes: u32,
    allowances: FloodAllowances,
}

impl Http2Endpoint {
    /// Whether it is a server's end without open streams, without output, and between two frames.
    pub fn can_rest(&self) -> bool {
        self.role == Http2Role::Server
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
            max_concurrent_streams: config.max_concurrent_streams,
            stream_window: config.stream_window,
            max_frame_size: config.max_frame_size,
            peer,
            decoder,
            has_encoded: encoder.has_state(),
            send_window: self.send_window,
            receive_window: self.receive_window,
            last_peer_stream: self.last_peer_stream,
            has_peer_gone_away: self.has_peer_gone_away,
            is_acknowledged: self.is_acknowledged,
            late_bytes: self.late_bytes,
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
            has_peer_gone_away: resting.has_peer_gone_away,
            is_acknowledged: resting.is_acknowledged,
            has_peer_settings: true,
            late_bytes: resting.late_bytes,
            budgets: FloodBudgets::with(&limits, resting.allowances),
            counts: Http2Counts::default(),
            ..Self::silent(Http2Role::Server, config)
        }
    }
}

//! `$http2`, and the totals of what HTTP/2 clients did: `$http2_NAME_count`, and
//! `$http2_NAME_exceeded` for each limit whose excess ends a connection (docs/security.md).

use wire::Version;
use wire::http2::counts::Http2Count;
use wire::http2::limits::Http2Limit;

use crate::exchange::Exchange;
use crate::h2::totals;
use crate::variables::{BuiltIn, number};

macro_rules! variables_with_totals {
    ($($name:literal: $total:expr,)+) => {
        /// `$http2` and the totals of the process.
        pub(crate) const VARIABLES: &[BuiltIn] = &[
            BuiltIn::cached("http2", |x, out| {
                out.extend_from_slice(name_of(x).as_bytes());
                true
            }),
            $(BuiltIn::fresh($name, |_, out| number(out, $total))),+
        ];
    };
}

variables_with_totals! {
    "http2_streams_count": totals::counted(Http2Count::Streams),
    "http2_refused_streams_count": totals::counted(Http2Count::RefusedStreams),
    "http2_client_resets_count": totals::counted(Http2Count::ClientResets),
    "http2_provoked_resets_count": totals::counted(Http2Count::ProvokedResets),
    "http2_settings_count": totals::counted(Http2Count::Settings),
    "http2_pings_count": totals::counted(Http2Count::Pings),
    "http2_priorities_count": totals::counted(Http2Count::Priorities),
    "http2_empty_data_count": totals::counted(Http2Count::EmptyData),
    "http2_window_updates_count": totals::counted(Http2Count::WindowUpdates),
    "http2_unknown_frames_count": totals::counted(Http2Count::UnknownFrames),
    "http2_continuation_frames_count": totals::counted(Http2Count::ContinuationFrames),
    "http2_continuation_bytes_count": totals::counted(Http2Count::ContinuationBytes),
    "http2_cut_blocks_count": totals::counted(Http2Count::CutBlocks),
    "http2_stalled_streams_count": totals::counted(Http2Count::StalledStreams),
    "http2_held_windows_count": totals::counted(Http2Count::HeldWindows),
    "http2_paused_reads_count": totals::counted(Http2Count::PausedReads),
    "http2_client_resets_exceeded": totals::exceeded(Http2Limit::ClientResets),
    "http2_provoked_resets_exceeded": totals::exceeded(Http2Limit::ProvokedResets),
    "http2_settings_exceeded": totals::exceeded(Http2Limit::Settings),
    "http2_pings_exceeded": totals::exceeded(Http2Limit::Pings),
    "http2_priorities_exceeded": totals::exceeded(Http2Limit::Priorities),
    "http2_empty_data_exceeded": totals::exceeded(Http2Limit::EmptyData),
    "http2_window_updates_exceeded": totals::exceeded(Http2Limit::WindowUpdates),
    "http2_unknown_frames_exceeded": totals::exceeded(Http2Limit::UnknownFrames),
    "http2_continuation_frames_exceeded": totals::exceeded(Http2Limit::ContinuationFrames),
    "http2_block_bytes_exceeded": totals::exceeded(Http2Limit::BlockBytes),
    "http2_fields_bytes_exceeded": totals::exceeded(Http2Limit::FieldsBytes),
    "http2_field_bytes_exceeded": totals::exceeded(Http2Limit::FieldBytes),
    "http2_answer_bytes_exceeded": totals::exceeded(Http2Limit::AnswerBytes),
}

/// What ALPN and upgrades call the protocol; empty: it is not HTTP/2.
fn name_of(x: &Exchange) -> &'static str {
    match (x.request.head.version == Version::HTTP_2, x.client.is_secure.get()) {
        (false, _) => "",
        (true, true) => "h2",
        (true, false) => "h2c",
    }
}

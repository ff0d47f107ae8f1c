//! `$http2`, and totals of HTTP/2: `$http2_NAME_count` for events, and `$http2_NAME_exceeded` for
//! each limit whose excess ends a connection (docs/security.md).

use wire::Version;
use wire::http2::counts::Http2Count;
use wire::http2::limits::Http2Limit;

use crate::exchange::Exchange;
use crate::h2::totals;
use crate::variables::{BuiltIn, VariableTable, number};

macro_rules! variables_with_totals {
    ($($name:literal: $total:expr, $docs:literal;)+) => {
        /// `$http2` and the totals of the process.
        pub(crate) const VARIABLES: VariableTable = VariableTable::new("ngx_http_v2_module", &[
            BuiltIn::cached(
                "http2",
                "`h2` or `h2c` (without TLS) for requests over HTTP/2, otherwise empty.",
                |x, out| {
                    out.extend_from_slice(name_of(x).as_bytes());
                    true
                },
            ),
            $(BuiltIn::fresh($name, $docs, |_, out| number(out, $total)).not_in_nginx()),+
        ]);
    };
}

variables_with_totals! {
    "http2_streams_count": totals::counted(Http2Count::Streams),
    "The number of HTTP/2 streams that clients opened.";
    "http2_refused_streams_count": totals::counted(Http2Count::RefusedStreams),
    "The number of HTTP/2 streams that were refused because too many were open.";
    "http2_client_resets_count": totals::counted(Http2Count::PeerResets),
    "The number of HTTP/2 streams that clients reset.";
    "http2_provoked_resets_count": totals::counted(Http2Count::ProvokedResets),
    "The number of HTTP/2 streams that had to be reset because of what the client sent.";
    "http2_settings_count": totals::counted(Http2Count::Settings),
    "The number of SETTINGS frames.";
    "http2_pings_count": totals::counted(Http2Count::Pings),
    "The number of PING frames that ask for a reply.";
    "http2_priorities_count": totals::counted(Http2Count::Priorities),
    "The number of PRIORITY frames.";
    "http2_empty_data_count": totals::counted(Http2Count::EmptyData),
    "The number of DATA frames without data.";
    "http2_window_updates_count": totals::counted(Http2Count::WindowUpdates),
    "The number of WINDOW_UPDATE frames.";
    "http2_unknown_frames_count": totals::counted(Http2Count::UnknownFrames),
    "The number of frames without effect.";
    "http2_continuation_frames_count": totals::counted(Http2Count::ContinuationFrames),
    "The number of CONTINUATION frames.";
    "http2_continuation_bytes_count": totals::counted(Http2Count::ContinuationBytes),
    "The number of bytes of CONTINUATION frames.";
    "http2_cut_blocks_count": totals::counted(Http2Count::CutBlocks),
    "The number of HTTP/2 requests with more fields than `max_headers`.";
    "http2_stalled_streams_count": totals::counted(Http2Count::StalledStreams),
    "The number of HTTP/2 streams that were reset after `send_timeout`.";
    "http2_held_windows_count": totals::counted(Http2Count::HeldWindows),
    "How often a window stayed closed because a connection held too much unread data.";
    "http2_paused_reads_count": totals::counted(Http2Count::PausedReads),
    "How often a connection was not read because its client did not read.";
    "http2_client_resets_exceeded": totals::exceeded(Http2Limit::PeerResets),
    "The number of connections that ended because the client reset too many streams.";
    "http2_provoked_resets_exceeded": totals::exceeded(Http2Limit::ProvokedResets),
    "The number of connections that ended because the client made too many streams be reset.";
    "http2_settings_exceeded": totals::exceeded(Http2Limit::Settings),
    "The number of connections that ended because of too many SETTINGS frames.";
    "http2_pings_exceeded": totals::exceeded(Http2Limit::Pings),
    "The number of connections that ended because of too many PING frames.";
    "http2_priorities_exceeded": totals::exceeded(Http2Limit::Priorities),
    "The number of connections that ended because of too many PRIORITY frames.";
    "http2_empty_data_exceeded": totals::exceeded(Http2Limit::EmptyData),
    "The number of connections that ended because of too many DATA frames without data.";
    "http2_window_updates_exceeded": totals::exceeded(Http2Limit::WindowUpdates),
    "The number of connections that ended because of too many WINDOW_UPDATE frames.";
    "http2_unknown_frames_exceeded": totals::exceeded(Http2Limit::UnknownFrames),
    "The number of connections that ended because of too many frames without effect.";
    "http2_continuation_frames_exceeded": totals::exceeded(Http2Limit::ContinuationFrames),
    "The number of connections that ended because of too many CONTINUATION frames in one header \
     block.";
    "http2_block_bytes_exceeded": totals::exceeded(Http2Limit::BlockBytes),
    "The number of connections that ended because an encoded header block was too long.";
    "http2_fields_bytes_exceeded": totals::exceeded(Http2Limit::FieldsBytes),
    "The number of connections that ended because the fields of one header block were too long.";
    "http2_field_bytes_exceeded": totals::exceeded(Http2Limit::FieldBytes),
    "The number of connections that ended because one field was too long.";
    "http2_answer_bytes_exceeded": totals::exceeded(Http2Limit::AnswerBytes),
    "The number of connections that ended because the client did not read answers.";
}

/// The name of the protocol in ALPN and upgrades; empty for HTTP/1.
fn name_of(x: &Exchange) -> &'static str {
    match (x.request.head.version == Version::HTTP_2, x.client.is_secure.get()) {
        (false, _) => "",
        (true, true) => "h2",
        (true, false) => "h2c",
    }
}

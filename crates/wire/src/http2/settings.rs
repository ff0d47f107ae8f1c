//! SETTINGS: the parameters that each end announces to the other (RFC 9113, section 6.5.2).

use super::frame::{FRAME_PAYLOAD_DEFAULT, FRAME_PAYLOAD_MAX};
use super::limits::Http2Limits;
use super::{Http2Code, Http2Error, WINDOW_DEFAULT, WINDOW_MAX};
use crate::hpack::TABLE_BYTES_DEFAULT;

pub(super) const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const MAX_FRAME_SIZE: u16 = 5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;

/// The largest HPACK table for sending; a peer cannot make us keep more.
pub(super) const ENCODER_TABLE_MAX: usize = 4096;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Role {
    /// It opens streams.
    Client,
    /// It answers on them.
    Server,
}

/// The settings that this end announces, and its limits.
#[derive(Clone, Copy, Debug)]
pub struct Http2Config {
    /// Streams that the peer may have open.
    pub max_concurrent_streams: u32,
    /// The window of a new stream for data from the peer.
    pub stream_window: u32,
    /// The longest payload that we accept. Announced only if it differs from the protocol's
    /// default.
    pub max_frame_size: u32,
    /// The largest head that the peer should send, as RFC 9113 section 6.5.2 counts; `None`: not
    /// announced.
    pub max_header_list_size: Option<u32>,
    /// Limits on what the peer can cause.
    pub limits: Http2Limits,
}

impl Default for Http2Config {
    fn default() -> Self {
        Self {
            max_concurrent_streams: 128,
            stream_window: 65_536,
            max_frame_size: FRAME_PAYLOAD_DEFAULT,
            max_header_list_size: None,
            limits: Http2Limits::default(),
        }
    }
}

/// The settings that the peer has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// Streams that we may have open.
    pub max_concurrent_streams: u32,
    /// The window of a new stream for data to the peer.
    pub initial_window_size: u32,
    /// The longest payload that the peer accepts.
    pub max_frame_size: u32,
    /// The size of the table with which the peer decodes.
    pub header_table_size: u32,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            max_concurrent_streams: u32::MAX,
            initial_window_size: WINDOW_DEFAULT,
            max_frame_size: FRAME_PAYLOAD_DEFAULT,
            header_table_size: TABLE_BYTES_DEFAULT as u32,
        }
    }
}

impl PeerSettings {
    /// Applies a parameter. Unknown ones are ignored, and so is the largest head that the peer
    /// wants, which is only advice: a peer answers a larger one as it likes.
    pub(super) fn apply(&mut self, role: Http2Role, parameter: [u8; 6]) -> Result<(), Http2Error> {
        let [i, d, value @ ..] = parameter;
        let value = u32::from_be_bytes(value);
        match u16::from_be_bytes([i, d]) {
            HEADER_TABLE_SIZE => self.header_table_size = value,
            // A server never enables push (RFC 9113, section 6.5.2).
            ENABLE_PUSH if value > 1 || (value == 1 && role == Http2Role::Client) => {
                let what = "sent SETTINGS frame with incorrect ENABLE_PUSH value";
                return Err(Http2Error::protocol(what));
            }
            MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = value,
            INITIAL_WINDOW_SIZE if value > WINDOW_MAX => {
                let what = "sent SETTINGS frame with incorrect INITIAL_WINDOW_SIZE value";
                return Err(Http2Error::new(Http2Code::FLOW_CONTROL_ERROR, what));
            }
            INITIAL_WINDOW_SIZE => self.initial_window_size = value,
            MAX_FRAME_SIZE if !(FRAME_PAYLOAD_DEFAULT..=FRAME_PAYLOAD_MAX).contains(&value) => {
                let what = "sent SETTINGS frame with incorrect MAX_FRAME_SIZE value";
                return Err(Http2Error::protocol(what));
            }
            MAX_FRAME_SIZE => self.max_frame_size = value,
            _ => {}
        }
        Ok(())
    }
}

//! Frames: their heads, read and written (RFC 9113, sections 4.1 and 6).

use alloc::vec::Vec;

use super::Http2Code;

/// The length of a frame header.
pub const FRAME_HEAD_BYTES: usize = 9;

/// The longest payload that a peer accepts by default.
pub const FRAME_PAYLOAD_DEFAULT: u32 = 1 << 14;

/// The longest payload that a frame can have.
pub const FRAME_PAYLOAD_MAX: u32 = (1 << 24) - 1;

/// Types of frames.
pub const DATA: u8 = 0;
/// Begins a header block.
pub const HEADERS: u8 = 1;
/// Priority of a stream, deprecated.
pub const PRIORITY: u8 = 2;
/// Ends a stream.
pub const RST_STREAM: u8 = 3;
/// Parameters of the sender.
pub const SETTINGS: u8 = 4;
/// Server push.
pub const PUSH_PROMISE: u8 = 5;
/// Requests an echo.
pub const PING: u8 = 6;
/// No further streams.
pub const GOAWAY: u8 = 7;
/// Allows the receiver to send more.
pub const WINDOW_UPDATE: u8 = 8;
/// More of a header block.
pub const CONTINUATION: u8 = 9;

/// Flag of DATA and HEADERS: the last frame of its stream.
pub const END_STREAM: u8 = 0x1;
/// Flag of SETTINGS and PING: an acknowledgement.
pub const ACK: u8 = 0x1;
/// Flag of HEADERS and CONTINUATION: the last frame of its header block.
pub const END_HEADERS: u8 = 0x4;
/// Flag of DATA and HEADERS: padding follows.
pub const PADDED: u8 = 0x8;
/// Flag of HEADERS: the payload begins with five bytes of priority.
pub const HAS_PRIORITY: u8 = 0x20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes of the payload.
    pub length: u32,
    pub kind: u8,
    /// Flags; their meaning depends on the type.
    pub flags: u8,
    /// The stream's number; 0 is the connection.
    pub stream: u32,
}

impl FrameHead {
    pub fn parse(bytes: &[u8; FRAME_HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        }
    }

    pub fn bytes(&self) -> [u8; FRAME_HEAD_BYTES] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame.
pub fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let head = FrameHead { length: payload.len() as u32, kind, flags, stream };
    out.extend_from_slice(&head.bytes());
    out.extend_from_slice(payload);
}

/// Appends RST_STREAM.
pub fn write_reset(out: &mut Vec<u8>, stream: u32, code: Http2Code) {
    write(out, RST_STREAM, 0, stream, &code.0.to_be_bytes());
}

/// Appends WINDOW_UPDATE.
pub fn write_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    write(out, WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
}

/// Appends GOAWAY.
pub fn write_go_away(out: &mut Vec<u8>, last_stream: u32, code: Http2Code) {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&last_stream.to_be_bytes());
    payload[4..].copy_from_slice(&code.0.to_be_bytes());
    write(out, GOAWAY, 0, 0, &payload);
}

/// Appends PING.
pub fn write_ping(out: &mut Vec<u8>, flags: u8, opaque: [u8; 8]) {
    write(out, PING, flags, 0, &opaque);
}

/// Appends SETTINGS with these parameters.
pub fn write_settings(
    out: &mut Vec<u8>,
    parameters: impl IntoIterator<Item = (u16, u32), IntoIter: Clone>,
) {
    let parameters = parameters.into_iter();
    let length = parameters.clone().count() as u32 * 6;
    let head = FrameHead { length, kind: SETTINGS, flags: 0, stream: 0 };
    out.extend_from_slice(&head.bytes());
    for (id, value) in parameters {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

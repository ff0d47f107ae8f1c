//! gRPC, as far as Weir takes part in calls of its own: messages in a stream, those of health
//! checks, and the statuses of calls.
//!
//! Deliberately absent: compression, and calls that are passed on, which are bytes.

use alloc::vec::Vec;
use core::ops::Range;

pub use crate::protobuf::InvalidMessage;
use crate::protobuf::{ProtobufFieldValue, ProtobufFields, write_bytes};

/// The path of a health check's call.
pub const HEALTH_CHECK: &[u8] = b"/grpc.health.v1.Health/Check";

/// The status of a server, or of one of its services, that takes calls.
pub const SERVING: u64 = 1;

/// The highest status of a call.
pub const STATUS_MAX: u32 = 16;

/// The byte and the length before a message.
const FRAME_HEAD_BYTES: usize = 5;

/// The number of the only field, in both messages of a health check.
const ONLY: u32 = 1;

/// Writes a message as it travels in a stream, with its length.
pub fn write_framed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    write(out);
    let length = (out.len() - start - FRAME_HEAD_BYTES) as u32;
    out[start + 1..start + FRAME_HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// Where the first message is in a stream of at least so many bytes; `None`: its length has not
/// come yet. A compressed message would be an answer to a compression that nobody offered.
pub fn framed(stream: &[u8]) -> Result<Option<Range<usize>>, InvalidMessage> {
    let Some(head) = stream.first_chunk::<FRAME_HEAD_BYTES>() else { return Ok(None) };
    let [0, a, b, c, d] = *head else { return Err(InvalidMessage) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    Ok(Some(FRAME_HEAD_BYTES..FRAME_HEAD_BYTES.saturating_add(length)))
}

/// Writes the request of a health check for a service; an empty name is the whole server.
pub fn write_health_request(service: &[u8], out: &mut Vec<u8>) {
    write_framed(out, |out| {
        if !service.is_empty() {
            write_bytes(ONLY, service, out);
        }
    });
}

/// The status in the reply to a health check: [`SERVING`], or another number.
pub fn health_status(body: &[u8]) -> Result<u64, InvalidMessage> {
    let message = framed(body)?.ok_or(InvalidMessage)?;
    if message.end != body.len() {
        return Err(InvalidMessage);
    }
    let mut status = 0;
    for field in ProtobufFields::new(&body[message]) {
        // Another type of value would be another message.
        if let (ONLY, ProtobufFieldValue::Varint(value)) = field? {
            status = value;
        }
    }
    Ok(status)
}

/// The status of a call whose HTTP status is not 200, as gRPC's table has it
/// (doc/http-grpc-status-mapping.md).
pub fn status_of_http(status: u16) -> u8 {
    match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => 14,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_the_service() {
        for (service, expected) in
            [(&b""[..], &b"\0\0\0\0\0"[..]), (b"a.B", b"\0\0\0\0\x05\x0a\x03a.B")]
        {
            let mut out = Vec::new();
            write_health_request(service, &mut out);
            assert_eq!(out, expected);
        }
        let mut out = Vec::new();
        write_health_request(&[b'x'; 200], &mut out);
        assert_eq!(out[..8], *b"\0\0\0\0\xcb\x0a\xc8\x01");
    }

    #[test]
    fn messages_of_a_stream_are_found() {
        let mut stream = Vec::new();
        write_framed(&mut stream, |out| out.extend_from_slice(b"abc"));
        assert_eq!(framed(&stream), Ok(Some(5..8)));
        assert_eq!(framed(&stream[..5]), Ok(Some(5..8)));
        assert_eq!(framed(&stream[..4]), Ok(None));
        assert_eq!(framed(b"\x01\0\0\0\x02ab"), Err(InvalidMessage));
    }

    #[test]
    fn a_status_is_found_among_unknown_fields() {
        let cases: [(&[u8], Result<u64, InvalidMessage>); 11] = [
            (b"\0\0\0\0\0", Ok(0)),
            (b"\0\0\0\0\x02\x08\x01", Ok(SERVING)),
            (b"\0\0\0\0\x04\x08\x01\x08\x02", Ok(2)),
            (b"\0\0\0\0\x05\x12\x01x\x08\x01", Ok(SERVING)),
            (b"\0\0\0\0\x07\x1d\0\0\0\0\x08\x01", Ok(SERVING)),
            (b"\0\0\0\0\x02\x10\x01", Ok(0)),
            (b"\x01\0\0\0\x02\x08\x01", Err(InvalidMessage)),
            (b"\0\0\0\0\x03\x08\x01", Err(InvalidMessage)),
            (b"\0\0\0\0\x01\x08", Err(InvalidMessage)),
            (b"\0\0\0\0\x02\x0a\x05", Err(InvalidMessage)),
            (b"", Err(InvalidMessage)),
        ];
        for (body, expected) in cases {
            assert_eq!(health_status(body), expected, "{body:?}");
        }
    }
}

//! gRPC, as far as Weir takes part in calls of its own: the messages of health checks, and the
//! statuses of calls.
//!
//! Deliberately absent: other messages. Calls that are passed on are bytes.

use alloc::vec::Vec;

/// The path of a health check's call.
pub const HEALTH_CHECK: &[u8] = b"/grpc.health.v1.Health/Check";

/// The status of a server, or of one of its services, that takes calls.
pub const SERVING: u64 = 1;

/// The highest status of a call.
pub const STATUS_MAX: u32 = 16;

/// A message that is not of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidMessage;

/// The byte and the length before a message.
const FRAME_HEAD_BYTES: usize = 5;

/// The number and the type of the only field, in both messages: a string, and a number.
const SERVICE: u8 = 1 << 3 | 2;
const STATUS: u64 = 1 << 3;

/// Writes the request of a health check for a service; an empty name is the whole server.
pub fn write_health_request(service: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    if !service.is_empty() {
        out.push(SERVICE);
        write_varint(service.len() as u64, out);
        out.extend_from_slice(service);
    }
    let length = (out.len() - start - FRAME_HEAD_BYTES) as u32;
    out[start + 1..start + FRAME_HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// The status in the reply to a health check: [`SERVING`], or another number.
pub fn health_status(body: &[u8]) -> Result<u64, InvalidMessage> {
    let (head, mut message) = body.split_at_checked(FRAME_HEAD_BYTES).ok_or(InvalidMessage)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    // A compressed message would be an answer to a compression that the request offered.
    if head[0] != 0 || message.len() as u64 != u64::from(length) {
        return Err(InvalidMessage);
    }
    let mut status = 0;
    while !message.is_empty() {
        let tag = read_varint(&mut message)?;
        match tag & 7 {
            0 => {
                let value = read_varint(&mut message)?;
                if tag == STATUS {
                    status = value;
                }
            }
            1 => skip(&mut message, 8)?,
            2 => {
                let length = read_varint(&mut message)?;
                skip(&mut message, length)?;
            }
            5 => skip(&mut message, 4)?,
            _ => return Err(InvalidMessage),
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

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number of up to 64 bits, 7 in each byte.
fn read_varint(input: &mut &[u8]) -> Result<u64, InvalidMessage> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first().ok_or(InvalidMessage)?;
        *input = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(InvalidMessage)
}

fn skip(input: &mut &[u8], bytes: u64) -> Result<(), InvalidMessage> {
    let bytes = usize::try_from(bytes).map_err(|_| InvalidMessage)?;
    *input = input.get(bytes..).ok_or(InvalidMessage)?;
    Ok(())
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

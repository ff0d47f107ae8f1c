//! HTTP/2 as bytes, well formed or not (RFC 9113, section 6).

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `:method: GET`, `:scheme: http`, `:path: /`, `:authority: one`.
pub(crate) const GET: &[u8] = b"\x82\x86\x84\x41\x03one";

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A request on the stream with this place among the client's streams.
pub(crate) fn get(number: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, id(number), GET)
}

/// A request with a body to come.
pub(crate) fn post(number: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, id(number), &[b"\x83", &GET[1..]].concat())
}

pub(crate) fn get_large(number: u32) -> Vec<u8> {
    let block = b"\x82\x86\x44\x06/large\x41\x03one";
    frame(HEADERS, END_HEADERS | END_STREAM, id(number), block)
}

pub(crate) fn setting(parameter: u8, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&[0, parameter][..], &value.to_be_bytes()].concat())
}

/// The client's streams have odd numbers.
pub(crate) fn id(number: u32) -> u32 {
    2 * number + 1
}

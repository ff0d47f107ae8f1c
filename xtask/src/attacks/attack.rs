//! The attacks: what each sends, and how Weir is meant to end it.

use super::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GET, GOAWAY, HEADERS, PING, PRIORITY,
    RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, get, get_large, id, post, setting,
};

/// One way to have a server work or remember more than its client does.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// Sent once, after the preface.
    pub(super) begin: fn() -> Vec<u8>,
    /// Sent again and again.
    pub(super) again: fn(u32) -> Vec<u8>,
    /// How often at most.
    pub(super) times: u32,
    pub(super) end: AttackEnd,
    /// Whether it costs much to decode, so that others would wait if turns were too long.
    pub(super) is_busy: bool,
}

const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

/// How an attack is meant to end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AttackEnd {
    /// GOAWAY with ENHANCE_YOUR_CALM, and a line in the error log that contains this.
    Calm(&'static str),
    /// The same with COMPRESSION_ERROR.
    Undecodable(&'static str),
    Reset,
    /// The client is served on; memory stays small.
    Served,
}

impl AttackEnd {
    /// The code of GOAWAY, and what the error log says.
    pub(super) fn goaway(self) -> Option<(u32, &'static str)> {
        match self {
            Self::Calm(message) => Some((ENHANCE_YOUR_CALM, message)),
            Self::Undecodable(message) => Some((COMPRESSION_ERROR, message)),
            Self::Reset | Self::Served => None,
        }
    }
}

const fn flood(
    name: &'static str,
    begin: fn() -> Vec<u8>,
    again: fn(u32) -> Vec<u8>,
    message: &'static str,
) -> Attack {
    Attack { name, begin, again, times: 20_000, end: AttackEnd::Calm(message), is_busy: false }
}

/// Requests that cost much to decode, and are answered.
const fn busy(name: &'static str, again: fn(u32) -> Vec<u8>) -> Attack {
    Attack { name, begin: Vec::new, again, times: 1000, end: AttackEnd::Served, is_busy: true }
}

/// Requests that end with trailers that no message may have.
const fn refused(name: &'static str, again: fn(u32) -> Vec<u8>) -> Attack {
    Attack { name, begin: Vec::new, again, times: 100, end: AttackEnd::Reset, is_busy: false }
}

pub(super) const ATTACKS: &[Attack] = &[
    flood(
        "client resets",
        Vec::new,
        |n| [get(n), frame(RST_STREAM, 0, id(n), &[0, 0, 0, 8])].concat(),
        "sent too many RST_STREAM frames",
    ),
    flood(
        "provoked resets",
        Vec::new,
        |n| [get(n), frame(WINDOW_UPDATE, 0, id(n), &[0x7f, 0xff, 0xff, 0xff])].concat(),
        "provoked too many RST_STREAM frames",
    ),
    flood(
        "CONTINUATION frames",
        || frame(HEADERS, 0, 1, GET),
        |_| frame(CONTINUATION, 0, 1, &[]),
        "sent too many CONTINUATION frames",
    ),
    flood(
        "CONTINUATION bytes",
        || frame(HEADERS, 0, 1, GET),
        |_| frame(CONTINUATION, 0, 1, &[0; 16_384]),
        "sent too large header",
    ),
    flood("SETTINGS", Vec::new, |_| frame(SETTINGS, 0, 0, &[]), "sent too many SETTINGS frames"),
    flood("PING", Vec::new, |_| frame(PING, 0, 0, &[0; 8]), "sent too many PING frames"),
    flood(
        "PRIORITY",
        Vec::new,
        |_| frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 0]),
        "sent too many PRIORITY frames",
    ),
    flood("empty DATA", || post(0), |_| frame(DATA, 0, 1, &[]), "sent too many empty DATA frames"),
    flood(
        "tiny windows",
        || [setting(4, 0), get_large(0)].concat(),
        |_| frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        "sent too many WINDOW_UPDATE frames",
    ),
    flood(
        "unknown frames",
        Vec::new,
        |_| frame(0x77, 0, 0, &[0; 8]),
        "sent too many frames without effect",
    ),
    flood(
        "SETTINGS ACK",
        Vec::new,
        |_| frame(SETTINGS, ACK, 0, &[]),
        "sent too many frames without effect",
    ),
    flood(
        "PONG",
        Vec::new,
        |_| frame(PING, ACK, 0, &[0; 8]),
        "sent too many frames without effect",
    ),
    flood(
        "GOAWAY",
        Vec::new,
        |_| frame(GOAWAY, 0, 0, &[0; 8]),
        "sent too many frames without effect",
    ),
    flood(
        "DATA after a reset",
        || [post(0), frame(WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])].concat(),
        |_| frame(DATA, 0, 1, b"x"),
        "sent too many frames without effect",
    ),
    flood(
        "HEADERS after a reset",
        || [post(0), frame(WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])].concat(),
        |_| frame(HEADERS, END_HEADERS | END_STREAM, 1, b""),
        "sent too many frames without effect",
    ),
    // `accept-charset` without a value is a field of the static table.
    busy("empty values", |n| get_with(n, &[0x8f; 900])),
    busy("table churn", |n| get_with(n, &inserted(b'x', 3000).repeat(3))),
    busy("table churn, short fields", |n| get_with(n, &inserted(b'x', 0).repeat(900))),
    busy("table size updates", |n| {
        let updates = [SMALLEST_TABLE, LARGEST_TABLE].concat().repeat(4);
        let block = [&updates, GET, &inserted(b'x', 3000)].concat();
        frame(HEADERS, END_HEADERS | END_STREAM, id(n), &block)
    }),
    Attack {
        name: "table size updates, many",
        begin: Vec::new,
        again: |n| {
            let block = [&SMALLEST_TABLE.repeat(6000), GET].concat();
            frame(HEADERS, END_HEADERS | END_STREAM, id(n), &block)
        },
        times: 20_000,
        end: AttackEnd::Undecodable("sent header block that cannot be decoded"),
        is_busy: false,
    },
    flood(
        "decoded size (HPACK bomb)",
        Vec::new,
        |n| frame(HEADERS, END_HEADERS, id(n), &bomb(4000)),
        "sent too large header",
    ),
    Attack {
        name: "number of fields",
        begin: Vec::new,
        again: |n| get_with(n, &[0x90; 1100]),
        times: 100,
        end: AttackEnd::Served,
        is_busy: false,
    },
    refused("trailers, capitals", |n| post_with(n, b"\0\x01X\x01y")),
    refused("trailers, CR LF", |n| post_with(n, b"\0\x01x\x04a\r\nb")),
    refused("trailers, Connection", |n| post_with(n, b"\0\x0aconnection\x05close")),
    refused("trailers, pseudo-header", |n| post_with(n, b"\x84")),
    // After `send_timeout`.
    Attack {
        name: "stalled streams",
        begin: || [setting(4, 0), frame(WINDOW_UPDATE, 0, 0, &[0, 0xff, 0, 0])].concat(),
        again: get_large,
        times: 100,
        end: AttackEnd::Reset,
        is_busy: false,
    },
    Attack {
        name: "bodies nobody reads",
        begin: || (0..100).flat_map(post).collect(),
        again: |n| frame(DATA, 0, id(n % 100), &[0; 16_000]),
        times: 400,
        end: AttackEnd::Served,
        is_busy: false,
    },
];

/// What a header block begins with that empties the table.
const SMALLEST_TABLE: &[u8] = &[0x20];
/// The same for a table of 4,096 bytes.
const LARGEST_TABLE: &[u8] = &[0x3f, 0xe1, 0x1f];

fn get_with(number: u32, fields: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, id(number), &[GET, fields].concat())
}

fn post_with(number: u32, trailers: &[u8]) -> Vec<u8> {
    [post(number), frame(HEADERS, END_HEADERS | END_STREAM, id(number), trailers)].concat()
}

/// A field with a value of so many bytes, which enters the table.
fn inserted(byte: u8, length: usize) -> Vec<u8> {
    [b"\x40\x01x", &string_length(length)[..], &vec![byte; length]].concat()
}

/// The length of a string without Huffman coding (RFC 7541, section 5.1).
fn string_length(length: usize) -> Vec<u8> {
    match length.checked_sub(127) {
        None => vec![length as u8],
        Some(rest @ ..128) => vec![0x7f, rest as u8],
        Some(rest) => vec![0x7f, rest as u8 | 0x80, (rest >> 7) as u8],
    }
}

/// A block that repeats a field of 4,000 bytes with each of its last bytes.
fn bomb(length: usize) -> Vec<u8> {
    [GET, &inserted(b'v', length), &[0xbe; 10_000]].concat()
}

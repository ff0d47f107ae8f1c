//! The attacks: what a hostile server sends for a request, and how that is meant to end.

use super::attack::{AttackReach, ServerAct, ServerAttack};
use super::client::ClientReply;
use super::reply::{BODY, head};
use crate::attacks::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PRIORITY,
    PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, setting,
};

const SERVED: &[ClientReply] = &[ClientReply::Served];
const BAD_GATEWAY: &[ClientReply] = &[ClientReply::Status(502)];
const TIMED_OUT: &[ClientReply] = &[ClientReply::Status(504)];
const CUT: &[ClientReply] = &[ClientReply::Cut];
/// Requests that share a connection with the attacked one end in either way.
const FAILED: &[ClientReply] = &[ClientReply::Status(502), ClientReply::Cut];

/// Trailers are dropped by `proxy_pass`, which has no use for them.
const DROPPED_OR_CUT: &[ClientReply] = &[ClientReply::Served, ClientReply::Cut];

const fn attack(
    name: &'static str,
    act: ServerAct,
    reach: AttackReach,
    end: &'static [ClientReply],
    log: &'static str,
) -> ServerAttack {
    let (body_bytes, answers_pings, is_silent) = (0, true, false);
    ServerAttack { name, body_bytes, begin, answers_pings, act, reach, is_silent, end, log }
}

/// Ends its own request with 502.
const fn refused(name: &'static str, bytes: fn(u32) -> Vec<u8>, log: &'static str) -> ServerAttack {
    attack(name, ServerAct::Sends(bytes), AttackReach::Stream, BAD_GATEWAY, log)
}

/// Cuts its own reply.
const fn cut(name: &'static str, bytes: fn(u32) -> Vec<u8>, log: &'static str) -> ServerAttack {
    attack(name, ServerAct::Sends(bytes), AttackReach::Stream, CUT, log)
}

/// Ends its connection.
const fn broken(name: &'static str, bytes: fn(u32) -> Vec<u8>, log: &'static str) -> ServerAttack {
    attack(name, ServerAct::Sends(bytes), AttackReach::Connection, FAILED, log)
}

/// Sends bytes again and again, until the connection ends.
const fn flood(name: &'static str, again: fn(u32) -> Vec<u8>, log: &'static str) -> ServerAttack {
    let act = ServerAct::Floods(|_| Vec::new(), again);
    attack(name, act, AttackReach::Connection, FAILED, log)
}

const fn served(name: &'static str, bytes: fn(u32) -> Vec<u8>) -> ServerAttack {
    attack(name, ServerAct::Sends(bytes), AttackReach::Stream, SERVED, "")
}

const fn silent(name: &'static str, bytes: fn(u32) -> Vec<u8>) -> ServerAttack {
    attack(name, ServerAct::Sends(bytes), AttackReach::Stream, TIMED_OUT, "timed out").times_out()
}

/// Leaves a frame or a block without an end.
const fn stuck(name: &'static str, bytes: fn(u32) -> Vec<u8>) -> ServerAttack {
    let reach = AttackReach::Connection;
    attack(name, ServerAct::Sends(bytes), reach, TIMED_OUT, "timed out").times_out()
}

const fn closed(name: &'static str, bytes: fn(u32) -> Vec<u8>) -> ServerAttack {
    attack(name, ServerAct::Closes(bytes), AttackReach::Connection, FAILED, "prematurely closed")
}

/// Begins connections so that no request succeeds.
const fn useless(
    name: &'static str,
    begin: fn() -> Vec<u8>,
    end: &'static [ClientReply],
    log: &'static str,
) -> ServerAttack {
    attack(name, ServerAct::Sends(|_| Vec::new()), AttackReach::Server, end, log).begins(begin)
}

fn begin() -> Vec<u8> {
    [frame(SETTINGS, 0, 0, &[]), frame(SETTINGS, ACK, 0, &[])].concat()
}

fn with(settings: Vec<u8>) -> Vec<u8> {
    [settings, frame(SETTINGS, ACK, 0, &[])].concat()
}

/// No attack: shows that servers are asked as they should.
pub(super) const NONE: ServerAttack = served("none", whole);

const INITIAL_WINDOW_SIZE: u8 = 4;
const LARGEST: [u8; 4] = [0x7f, 0xff, 0xff, 0xff];

pub(super) const ATTACKS: &[ServerAttack] = &[
    flood("server: SETTINGS", |_| frame(SETTINGS, 0, 0, &[]), "sent too many SETTINGS frames"),
    flood("server: PING", |_| frame(PING, 0, 0, &[0; 8]), "sent too many PING frames"),
    flood(
        "server: PRIORITY",
        |id| frame(PRIORITY, 0, id, &[0, 0, 0, 0, 0]),
        "sent too many PRIORITY frames",
    ),
    flood(
        "server: unknown frames",
        |_| frame(0x77, 0, 0, &[0; 8]),
        "sent too many frames without effect",
    ),
    flood(
        "server: SETTINGS ACK",
        |_| frame(SETTINGS, ACK, 0, &[]),
        "sent too many frames without effect",
    ),
    flood("server: PONG", |_| frame(PING, ACK, 0, &[0; 8]), "sent too many frames without effect"),
    flood("server: GOAWAY", |_| go_away(u32::MAX >> 1, 0), "sent too many frames without effect"),
    flood(
        "server: WINDOW_UPDATE",
        |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        "sent too many WINDOW_UPDATE frames",
    ),
    flood(
        "server: resets",
        |id| frame(RST_STREAM, 0, id, &[0, 0, 0, 8]),
        "sent too many frames without effect",
    ),
    attack(
        "server: DATA after a reset",
        ServerAct::Floods(|id| reset(id, 8), |id| frame(DATA, 0, id, b"x")),
        AttackReach::Connection,
        FAILED,
        "provoked too many RST_STREAM frames",
    ),
    attack(
        "server: HEADERS after a reset",
        ServerAct::Floods(|id| reset(id, 8), |id| heads(id, b"\x88")),
        AttackReach::Connection,
        FAILED,
        "sent too many frames without effect",
    ),
    attack(
        "server: empty DATA",
        ServerAct::Floods(head, |id| frame(DATA, 0, id, &[])),
        AttackReach::Connection,
        FAILED,
        "sent too many empty DATA frames",
    ),
    attack(
        "server: padding",
        ServerAct::Floods(head, |id| frame(DATA, PADDED, id, &[&[255][..], &[0; 255]].concat())),
        AttackReach::Connection,
        FAILED,
        "sent too many empty DATA frames",
    ),
    attack(
        "server: CONTINUATION",
        ServerAct::Floods(
            |id| frame(HEADERS, 0, id, b"\x88"),
            |id| frame(CONTINUATION, 0, id, b""),
        ),
        AttackReach::Connection,
        FAILED,
        "sent too many CONTINUATION frames",
    ),
    attack(
        "server: CONTINUATION bytes",
        ServerAct::Floods(
            |id| frame(HEADERS, 0, id, b"\x88"),
            |id| frame(CONTINUATION, 0, id, &[0; 16_384]),
        ),
        AttackReach::Connection,
        FAILED,
        "sent too large header",
    ),
    flood(
        "server: HPACK bomb",
        |id| frame(HEADERS, END_HEADERS, id, &bomb()),
        "sent too large header",
    ),
    refused(
        "server: interim replies",
        |id| frame(HEADERS, END_HEADERS, id, &field(":status", "103")).repeat(100),
        "sent too many interim replies",
    ),
    broken(
        "server: PUSH_PROMISE",
        |id| frame(PUSH_PROMISE, END_HEADERS, id, &[&[0, 0, 0, 2][..], b"\x82\x86\x84"].concat()),
        "PUSH_PROMISE",
    ),
    // Resets and GOAWAY.
    refused("server: reset", |id| reset(id, 8), "rejected request with error 8"),
    refused("server: ENHANCE_YOUR_CALM", |id| reset(id, 11), "rejected request with error 11"),
    refused("server: REFUSED_STREAM always", |id| reset(id, 7), "did not process the request"),
    cut(
        "server: reset in the body",
        |id| [head(id), frame(DATA, 0, id, b"hel"), reset(id, 8)].concat(),
        "rejected request with error 8",
    ),
    served("server: NO_ERROR after the reply", |id| [whole(id), reset(id, 0)].concat())
        .with_body(1 << 20),
    broken("server: GOAWAY 0", |_| go_away(0, 0), "did not process the request, it ends"),
    broken("server: GOAWAY 0 with an error", |_| go_away(0, 2), "did not process the request"),
    attack(
        "server: GOAWAY twice",
        ServerAct::Sends(|id| [go_away(u32::MAX >> 1, 0), go_away(id, 0), whole(id)].concat()),
        AttackReach::Connection,
        SERVED,
        "",
    ),
    attack(
        "server: GOAWAY that grows",
        ServerAct::Sends(|id| [go_away(id, 0), go_away(id + 8, 0), whole(id)].concat()),
        AttackReach::Connection,
        SERVED,
        "",
    ),
    attack(
        "server: GOAWAY, an error",
        ServerAct::Sends(|id| [go_away(id, 2), whole(id)].concat()),
        AttackReach::Connection,
        SERVED,
        "",
    ),
    silent("server: GOAWAY and silence", |id| go_away(id, 0)),
    closed("server: closes", |_| Vec::new()),
    closed("server: closes in a frame", |id| head(id)[..7].to_vec()),
    closed("server: closes in a block", |id| frame(HEADERS, 0, id, b"\x88")),
    closed("server: closes in the body", |id| [head(id), frame(DATA, 0, id, b"hel")].concat()),
    closed("server: closes in a body's frame", |id| {
        [head(id), frame(DATA, END_STREAM, id, BODY)[..12].to_vec()].concat()
    }),
    // Windows.
    silent("server: windows of 0", |_| Vec::new())
        .with_body(200_000)
        .begins(|| with(setting(INITIAL_WINDOW_SIZE, 0))),
    silent("server: windows never grow", |_| Vec::new()).with_body(200_000),
    served("server: windows shrink", |id| {
        let shrinks = [setting(INITIAL_WINDOW_SIZE, 1), setting(INITIAL_WINDOW_SIZE, 0)].concat();
        [shrinks, frame(WINDOW_UPDATE, 0, id, &[0, 1, 0, 0]), whole(id), reset(id, 0)].concat()
    })
    .with_body(60_000),
    refused(
        "server: a window too large",
        |id| frame(WINDOW_UPDATE, 0, id, &LARGEST),
        "violated flow control",
    ),
    broken("server: the window too large", |_| frame(WINDOW_UPDATE, 0, 0, &LARGEST), "window"),
    broken(
        "server: initial windows too large",
        |_| setting(INITIAL_WINDOW_SIZE, u32::MAX),
        "SETTINGS",
    ),
    broken(
        "server: windows grow too large",
        |id| {
            let more = frame(WINDOW_UPDATE, 0, id, &[0x40, 0, 0, 0]);
            [more, setting(INITIAL_WINDOW_SIZE, u32::MAX >> 1)].concat()
        },
        "window",
    ),
    broken(
        "server: the window grows by 0",
        |_| frame(WINDOW_UPDATE, 0, 0, &[0; 4]),
        "incorrect window increment",
    ),
    // As in nginx, this ends more than the stream.
    broken(
        "server: a window grows by 0",
        |id| frame(WINDOW_UPDATE, 0, id, &[0; 4]),
        "incorrect window increment",
    ),
    attack(
        "server: a body beyond the window",
        ServerAct::Floods(head, |id| frame(DATA, 0, id, &[b'x'; 16_384])),
        AttackReach::Connection,
        FAILED,
        "violated flow control",
    ),
    // Limits and settings.
    ServerAttack {
        act: ServerAct::Sends(|id| reset(id, 7)),
        ..useless("server: no streams", || with(setting(3, 0)), BAD_GATEWAY, "did not process")
    },
    served("server: one stream", whole).begins(|| with([setting(3, 0), setting(3, 1)].concat())),
    served("server: an empty table", whole).begins(|| with(setting(1, 0))),
    served("server: a large table", whole).begins(|| with(setting(1, u32::MAX))),
    served("server: takes no head", whole).begins(|| with(setting(6, 0))),
    useless(
        "server: PING before SETTINGS",
        || frame(PING, 0, 0, &[0; 8]),
        BAD_GATEWAY,
        "before SETTINGS",
    ),
    useless("server: frames too small", || with(setting(5, 1)), BAD_GATEWAY, "SETTINGS"),
    useless("server: half a setting", || frame(SETTINGS, 0, 0, &[0; 5]), BAD_GATEWAY, "SETTINGS"),
    broken("server: SETTINGS on a stream", |id| frame(SETTINGS, 0, id, &[]), "SETTINGS"),
    served("server: no SETTINGS ACK", whole).begins(|| frame(SETTINGS, 0, 0, &[])),
    ServerAttack { answers_pings: false, ..silent("server: no PONG", |_| Vec::new()) },
    useless("server: silence", Vec::new, TIMED_OUT, "timed out").times_out(),
    silent("server: silence after SETTINGS", |_| Vec::new()),
    useless(
        "server: HTTP/1",
        || b"HTTP/1.1 400 Bad\r\n\r\n".to_vec(),
        BAD_GATEWAY,
        "speaks HTTP/1, not HTTP/2",
    ),
    // Heads.
    refused("server: no status", |id| heads(id, &field("a", "b")), "no :status"),
    refused("server: two statuses", |id| heads(id, b"\x88\x88"), "duplicate :status"),
    refused(
        "server: a late status",
        |id| heads(id, &[&field("a", "b"), &b"\x88"[..]].concat()),
        "no :status",
    ),
    refused("server: status 99", |id| heads(id, &field(":status", "99")), "invalid :status"),
    refused(
        "server: status 101",
        |id| heads(id, &field(":status", "101")),
        "unexpected :status header 101",
    ),
    refused(
        "server: an unknown pseudo-field",
        |id| ok_with(id, &field(":a", "b")),
        "unknown pseudo-header",
    ),
    refused("server: a request's field", |id| ok_with(id, &field(":path", "/")), "pseudo-header"),
    refused("server: upper case", |id| ok_with(id, &field("A", "b")), "invalid header name"),
    refused(
        "server: a name with a space",
        |id| ok_with(id, &field("a b", "c")),
        "invalid header name",
    ),
    refused("server: an empty name", |id| ok_with(id, &field("invalid header name", "c")), ""),
    refused(
        "server: CR LF in a value",
        |id| ok_with(id, &field("a", "b\r\nc: d")),
        "header with invalid value",
    ),
    refused(
        "server: NUL in a value",
        |id| ok_with(id, &field("a", "\0")),
        "header with invalid value",
    ),
    refused(
        "server: connection",
        |id| ok_with(id, &field("connection", "close")),
        "upstream sent ",
    ),
    refused(
        "server: transfer-encoding",
        |id| ok_with(id, &field("transfer-encoding", "chunked")),
        "upstream sent ",
    ),
    refused("server: upgrade", |id| ok_with(id, &field("upgrade", "h2c")), "upstream sent "),
    refused(
        "server: a large field",
        |id| in_frames(0, id, &[b"\x88", &large_field()[..]].concat()),
        "too big header",
    ),
    refused("server: many fields", |id| ok_with(id, &[0x90; 5000]), "too many header lines"),
    refused(
        "server: an interim reply ends",
        |id| frame(HEADERS, END_HEADERS | END_STREAM, id, &field(":status", "103")),
        "interim reply that ends the stream",
    ),
    broken("server: a bad index", |id| heads(id, b"\xfe"), "cannot be decoded"),
    broken("server: a bad Huffman code", |id| heads(id, b"\0\x81\xff\x01b"), "cannot be decoded"),
    broken("server: a number without end", |id| heads(id, &[0xff; 100]), "cannot be decoded"),
    broken(
        "server: a block that is cut",
        |id| heads(id, b"\x88\0\x05ab"),
        "header block with incorrect length",
    ),
    broken(
        "server: a table too large",
        |id| heads(id, b"\x3f\xe1\xff\x03\x88"),
        "cannot be decoded",
    ),
    broken("server: table size updates", |id| heads(id, &[0x20; 1000]), "cannot be decoded"),
    broken("server: a late size update", |id| heads(id, b"\x88\x20"), "cannot be decoded"),
    // Lengths and bodies.
    cut(
        "server: a body too short",
        |id| [length(id, "100"), frame(DATA, END_STREAM, id, BODY)].concat(),
        "upstream ",
    ),
    cut(
        "server: a body too long",
        |id| {
            [length(id, "7"), frame(DATA, 0, id, BODY), frame(DATA, END_STREAM, id, BODY)].concat()
        },
        "upstream ",
    ),
    refused("server: no length", |id| length(id, "x"), "upstream sent "),
    refused(
        "server: two lengths",
        |id| ok_with(id, &[field("content-length", "6"), field("content-length", "7")].concat()),
        "upstream sent ",
    ),
    refused(
        "server: a length and no body",
        |id| {
            let fields = [b"\x88", &field("content-length", "7")[..]].concat();
            frame(HEADERS, END_HEADERS | END_STREAM, id, &fields)
        },
        "upstream ",
    ),
    refused(
        "server: DATA before HEADERS",
        |id| frame(DATA, END_STREAM, id, BODY),
        "body data before the head",
    ),
    served("server: the end twice", |id| {
        [whole(id), frame(DATA, END_STREAM, id, b""), frame(DATA, END_STREAM, id, b"x")].concat()
    }),
    cut("server: trailers with a status", |id| trailers(id, b"\x88"), "pseudo-header in trailers"),
    cut("server: trailers, upper case", |id| trailers(id, &field("A", "b")), "invalid header name"),
    cut(
        "server: trailers without an end",
        |id| [head(id), frame(DATA, 0, id, b"hel"), heads(id, &field("a", "b"))].concat(),
        "without END_STREAM",
    ),
    attack(
        "server: large trailers",
        ServerAct::Sends(|id| {
            let trailers = in_frames(END_STREAM, id, &large_field());
            [head(id), frame(DATA, 0, id, BODY), trailers].concat()
        }),
        AttackReach::Stream,
        DROPPED_OR_CUT,
        "",
    ),
    // Frames.
    broken("server: DATA on stream 0", |_| frame(DATA, 0, 0, b"x"), "DATA"),
    broken("server: HEADERS on stream 0", |_| head(0), "HEADERS"),
    broken("server: DATA on an idle stream", |id| frame(DATA, 0, id + 1000, b"x"), "DATA"),
    broken("server: HEADERS on an idle stream", |id| head(id + 1000), "HEADERS"),
    broken("server: HEADERS on a stream of its own", |_| head(2), "HEADERS"),
    broken("server: reset of an idle stream", |id| reset(id + 1000, 8), "RST_STREAM"),
    broken(
        "server: padding of DATA",
        |id| [head(id), frame(DATA, PADDED, id, &[9, 1, 2])].concat(),
        "pad",
    ),
    broken(
        "server: padding of HEADERS",
        |id| frame(HEADERS, END_HEADERS | PADDED, id, &[9, 0x88]),
        "pad",
    ),
    broken(
        "server: a frame too large",
        |id| [head(id), frame(DATA, 0, id, &[b'x'; 16_385])].concat(),
        "too long frame",
    ),
    broken("server: a PING of 7 bytes", |_| frame(PING, 0, 0, &[0; 7]), "PING"),
    broken("server: half a reset", |id| frame(RST_STREAM, 0, id, &[0; 3]), "RST_STREAM"),
    broken("server: half a GOAWAY", |_| frame(GOAWAY, 0, 0, &[0; 7]), "GOAWAY"),
    broken(
        "server: half a PRIORITY",
        |id| frame(PRIORITY, 0, id, &[0; 4]),
        "PRIORITY frame with incorrect length",
    ),
    broken(
        "server: half a WINDOW_UPDATE",
        |id| frame(WINDOW_UPDATE, 0, id, &[0; 3]),
        "WINDOW_UPDATE",
    ),
    broken(
        "server: CONTINUATION alone",
        |id| frame(CONTINUATION, END_HEADERS, id, b"\x88"),
        "CONTINUATION",
    ),
    broken(
        "server: PING in a block",
        |id| [frame(HEADERS, 0, id, b"\x88"), frame(PING, 0, 0, &[0; 8])].concat(),
        "while CONTINUATION was expected",
    ),
    stuck("server: half a frame", |id| head(id)[..7].to_vec()),
    stuck("server: half a block", |id| frame(HEADERS, 0, id, b"\x88")),
    attack(
        "server: half a body",
        ServerAct::Sends(|id| [head(id), frame(DATA, 0, id, b"hel")].concat()),
        AttackReach::Stream,
        CUT,
        "timed out",
    )
    .times_out(),
    attack("server: clients that do not read", ServerAct::Pours, AttackReach::Stream, SERVED, ""),
];

fn whole(id: u32) -> Vec<u8> {
    [head(id), frame(DATA, END_STREAM, id, BODY)].concat()
}

fn heads(id: u32, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, id, block)
}

/// A reply with the status 200, these fields and the body.
fn ok_with(id: u32, fields: &[u8]) -> Vec<u8> {
    let body = frame(DATA, END_STREAM, id, BODY);
    [heads(id, &[b"\x88", fields].concat()), body].concat()
}

fn length(id: u32, length: &str) -> Vec<u8> {
    heads(id, &[b"\x88", &field("content-length", length)[..]].concat())
}

fn trailers(id: u32, block: &[u8]) -> Vec<u8> {
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, id, block);
    [head(id), frame(DATA, 0, id, b"hel"), trailers].concat()
}

fn reset(id: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, id, &code.to_be_bytes())
}

fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// A field as a literal that no table keeps; name and value are shorter than 127 bytes.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        field.push(text.len() as u8);
        field.extend_from_slice(text.as_bytes());
    }
    field
}

/// A field of 100,000 bytes.
fn large_field() -> Vec<u8> {
    [b"\0\x01a\x7f\xa1\x8c\x06", &[b'x'; 100_000][..]].concat()
}

/// A block, in as many frames as it needs.
fn in_frames(flags: u8, id: u32, block: &[u8]) -> Vec<u8> {
    let mut frames = frame(HEADERS, flags, id, b"");
    block.chunks(16_384).for_each(|part| frames.extend(frame(CONTINUATION, 0, id, part)));
    frames.extend(frame(CONTINUATION, END_HEADERS, id, b""));
    frames
}

/// A field of 4,000 bytes in the table, and 12,000 references to it.
fn bomb() -> Vec<u8> {
    [b"\x88\x40\x01a\x7f\xa1\x1e", &[b'x'; 4000][..], &[0xbe; 12_000]].concat()
}

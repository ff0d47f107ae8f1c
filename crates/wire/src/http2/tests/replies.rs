//! A client's handling of heads, bodies and trailers of replies.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::super::WINDOW_MAX;
use super::super::frame::{CONTINUATION, DATA, GOAWAY, PING, SETTINGS};
use super::super::settings::MAX_CONCURRENT_STREAMS;
use super::*;

/// HEADERS of a reply.
fn reply(stream: u32, end_stream: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let flags = END_HEADERS | if end_stream { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, &literals(fields))
}

/// The faults of malformed replies.
fn faults(seen: &[Seen]) -> Vec<&'static str> {
    let fault = |seen: &Seen| match seen {
        Seen::Event(Http2Event::Malformed { what, .. }) => Some(*what),
        _ => None,
    };
    seen.iter().filter_map(fault).collect()
}

fn client() -> Script {
    Script::client(Http2Config::default())
}

/// The stream is reset; others continue.
#[test]
fn a_malformed_reply_ends_its_stream_alone() {
    let heads: [&[(&str, &str)]; 7] = [
        &[("server", "x")],
        &[(":status", "20")],
        &[(":status", "101")],
        &[(":status", "200"), (":status", "200")],
        &[(":status", "200"), ("connection", "close")],
        &[(":status", "103"), ("A", "capital")],
        &[(":status", "200"), ("content-length", "x")],
    ];
    let mut script = client();
    let other = script.asks("GET", true);
    for head in heads {
        let stream = script.asks("POST", false);
        let seen = script.receives(&reply(stream.id, false, head)).unwrap();
        assert_eq!((faults(&seen).len(), seen.len()), (1, 1), "{head:?}");
        // Late frames of the server are discarded.
        let late =
            [frame(DATA, 0, stream.id, b"late"), reply(stream.id, true, &[("x", "trailer")])];
        assert_eq!(script.receives(&late.concat()).unwrap(), [], "{head:?}");
        script.sent();
        script.endpoint.release(stream, Http2Code::PROTOCOL_ERROR);
        assert_eq!(script.resets(), [(stream.id, Http2Code::PROTOCOL_ERROR)]);
    }
    let seen = script.receives(&reply(other.id, true, &[(":status", "200")])).unwrap();
    assert_eq!(seen, [Seen::Event(Http2Event::Head { stream: other, end_stream: true })]);
    assert_eq!(script.endpoint.reply().status, 200);
}

#[test]
fn a_reply_with_too_many_fields_is_malformed() {
    let mut config = Http2Config::default();
    config.limits.fields_max = 2;
    for count in [2, 3] {
        let mut script = Script::client(config);
        let stream = script.asks("GET", true);
        let fields = [(":status", "200"), ("a", "1"), ("b", "2")];
        let seen = script.receives(&reply(stream.id, true, &fields[..count])).unwrap();
        assert_eq!(faults(&seen).len(), count - 2);
    }
}

/// The head, the pieces of data, and the fault.
type BodyCase<'a> = (&'a [(&'a str, &'a str)], &'a [&'a [u8]], Option<&'a str>);

#[test]
fn a_body_is_as_long_as_its_head_says() {
    let short = "prematurely closed stream";
    let long = "intended to send body data larger than declared";
    let length = |text| [(":status", "200"), ("content-length", text)];
    let cases: [BodyCase<'_>; 5] = [
        (&length("4"), &[b"ab", b"cd"], None),
        (&length("4"), &[b"abc", b"de"], Some(long)),
        (&length("4"), &[b"abc"], Some(short)),
        (&length("4"), &[b""], Some(short)),
        (&[(":status", "200")], &[b"any"], None),
    ];
    for (head, pieces, fault) in cases {
        let mut script = client();
        let stream = script.asks("GET", true);
        script.receives(&reply(stream.id, false, head)).unwrap();
        let mut seen = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let flags = if number + 1 == pieces.len() { END_STREAM } else { 0 };
            seen.extend(script.receives(&frame(DATA, flags, stream.id, piece)).unwrap());
        }
        assert_eq!(faults(&seen), fault.into_iter().collect::<Vec<_>>(), "{head:?} {pieces:?}");
    }
    let mut script = client();
    let stream = script.asks("GET", true);
    let seen = script.receives(&reply(stream.id, true, &length("4"))).unwrap();
    assert_eq!(faults(&seen), [short]);
}

/// Replies to HEAD and replies with these statuses have no body, whatever length they announce.
#[test]
fn replies_without_content_have_none() {
    for (method, status) in [("HEAD", "200"), ("GET", "204"), ("GET", "304")] {
        let head = [(":status", status), ("content-length", "4")];
        let mut script = client();
        let stream = script.asks(method, true);
        let seen = script.receives(&reply(stream.id, true, &head)).unwrap();
        assert_eq!(seen, [Seen::Event(Http2Event::Head { stream, end_stream: true })]);
        let stream = script.asks(method, true);
        script.receives(&reply(stream.id, false, &head)).unwrap();
        let seen = script.receives(&frame(DATA, END_STREAM, stream.id, b"")).unwrap();
        assert_eq!(faults(&seen), [""; 0], "{method} {status}");
        let stream = script.asks(method, true);
        script.receives(&reply(stream.id, false, &head)).unwrap();
        let seen = script.receives(&frame(DATA, END_STREAM, stream.id, b"text")).unwrap();
        assert_eq!(faults(&seen).len(), 1, "{method} {status}");
    }
}

#[test]
fn interim_replies_come_before_the_reply() {
    let mut script = client();
    let stream = script.asks("GET", true);
    for status in ["100", "103"] {
        let interim = reply(stream.id, false, &[(":status", status), ("x", "y")]);
        let seen = script.receives(&interim).unwrap();
        assert_eq!(seen, [Seen::Event(Http2Event::Interim { stream })]);
        assert_eq!(script.endpoint.reply().status.to_string(), status);
        assert_eq!(script.endpoint.fields().get(b"x"), Some(&b"y"[..]));
    }
    let ended = reply(stream.id, true, &[(":status", "103")]);
    assert_eq!(faults(&script.receives(&ended).unwrap()).len(), 1);
}

/// The peer's limit counts for streams that are opened later.
#[test]
fn streams_are_opened_as_the_server_allows() {
    let mut script = client();
    assert!(script.endpoint.has_peer_settings() && !script.endpoint.is_used_up());
    let allow = |count: u32| {
        let [a, b, c, d] = count.to_be_bytes();
        let [i, j] = MAX_CONCURRENT_STREAMS.to_be_bytes();
        frame(SETTINGS, 0, 0, &[i, j, a, b, c, d])
    };
    let streams = [script.asks("GET", true), script.asks("GET", true)];
    script.receives(&allow(3)).unwrap();
    assert_eq!(script.endpoint.free_streams(), 1);
    script.receives(&allow(1)).unwrap();
    assert_eq!((script.endpoint.free_streams(), script.endpoint.open()), (0, None));
    for stream in streams {
        script.endpoint.release(stream, Http2Code::CANCEL);
    }
    assert_eq!(script.endpoint.free_streams(), 1);
    script.receives(&frame(frame::GOAWAY, 0, 0, &[0; 8])).unwrap();
    assert_eq!((script.endpoint.free_streams(), script.endpoint.open()), (0, None));
    assert!(script.endpoint.is_used_up());
}

#[test]
fn a_server_of_http_1_is_recognised() {
    let fault = client().receives(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
    assert_eq!(fault.what, "speaks HTTP/1, not HTTP/2");
}

#[test]
fn the_last_number_of_a_stream_is_the_largest() {
    let mut script = client();
    script.endpoint.next_own_stream = WINDOW_MAX - 2;
    let streams = [script.asks("GET", true), script.asks("GET", true)];
    assert_eq!(streams.map(|stream| stream.id), [(1 << 31) - 3, (1 << 31) - 1]);
    assert_eq!((script.endpoint.is_used_up(), script.endpoint.open()), (true, None));
    for stream in streams {
        let seen = script.receives(&reply(stream.id, true, &[(":status", "200")])).unwrap();
        assert_eq!(seen, [Seen::Event(Http2Event::Head { stream, end_stream: true })]);
    }
}

#[test]
fn heads_have_a_largest_size() {
    let config = Http2Config { max_header_list_size: Some(5000), ..Http2Config::default() };
    let mut endpoint = Http2Endpoint::new(Http2Role::Client, config);
    endpoint.advance_output(PREFACE.len());
    let (head, payload) = Script { endpoint }.sent().swap_remove(0);
    assert_eq!((head.kind, &payload[12..]), (frame::SETTINGS, &[0, 6, 0, 0, 0x13, 0x88][..]));
}

/// RFC 9113, section 3.4.
#[test]
fn a_server_must_begin_with_settings() {
    for first in [
        frame(PING, 0, 0, &[0; 8]),
        frame(SETTINGS, ACK, 0, &[]),
        frame(frame::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        frame(GOAWAY, 0, 0, &[0; 8]),
        frame(200, 0, 0, &[]),
        reply(1, true, &[(":status", "200")]),
    ] {
        let mut endpoint = Http2Endpoint::new(Http2Role::Client, Http2Config::default());
        endpoint.open().unwrap();
        let error = endpoint.receive(&first).unwrap_err();
        assert_eq!(
            (error.code, error.what),
            (Http2Code::PROTOCOL_ERROR, "sent a frame before SETTINGS")
        );
    }
}

/// A reset in the middle of a header block: the block is decoded and discarded.
#[test]
fn a_reply_that_crosses_a_reset_is_discarded() {
    let mut script = client();
    let stream = script.asks("GET", true);
    let text = literals(&[(":status", "200"), ("a", "b")]);
    script.receives(&frame(HEADERS, 0, stream.id, &text[..5])).unwrap();
    script.endpoint.release(stream, Http2Code::CANCEL);
    assert_eq!(script.resets(), [(stream.id, Http2Code::CANCEL)]);
    let rest = frame(CONTINUATION, END_HEADERS, stream.id, &text[5..]);
    assert_eq!(script.receives(&rest).unwrap(), []);
    let next = script.asks("GET", true);
    let seen = script.receives(&reply(next.id, true, &[(":status", "200")])).unwrap();
    assert_eq!(seen, [Seen::Event(Http2Event::Head { stream: next, end_stream: true })]);
}

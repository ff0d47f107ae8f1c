//! The states of streams, and header blocks.

use alloc::vec;
use alloc::vec::Vec;

use super::super::frame::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HAS_PRIORITY, HEADERS, PADDED, PING,
    PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use super::super::{Http2Code, Http2Config, Http2Event, Http2Role};
use super::*;

fn server() -> Script {
    Script::server(Http2Config::default())
}

#[test]
fn a_request_is_answered() {
    let mut script = server();
    let stream = script.opens(1, true);
    let fields: Vec<_> = script.endpoint.fields().iter().collect();
    assert_eq!(fields[0], (&b":method"[..], &b"GET"[..]));
    assert!(script.endpoint.begin_fields(stream).is_some());
    script.endpoint.advance_output(script.endpoint.output().len());
    script.replies(stream, false);
    assert_eq!(script.endpoint.send_data(stream, b"body", true, 3), 2);
    script.endpoint.release(stream, Http2Code::INTERNAL_ERROR);
    let sent = script.sent();
    let kinds: Vec<_> = sent.iter().map(|sent| (sent.0.kind, sent.0.flags)).collect();
    assert_eq!(kinds, [(HEADERS, END_HEADERS), (DATA, 0), (DATA, END_STREAM)]);
    assert_eq!((&sent[1].1[..], &sent[2].1[..]), (&b"bod"[..], &b"y"[..]));
    assert_eq!(script.endpoint.open_streams(), 0);
}

#[test]
fn a_body_comes_in_pieces_with_padding_and_trailers() {
    let mut script = server();
    let stream = script.opens(1, false);
    let padded = frame(DATA, PADDED, 1, &[&[3][..], b"abc", &[0; 3]].concat());
    assert_eq!(script.receives(&padded).unwrap(), [Seen::Data(1, b"abc".to_vec(), false)]);
    assert_eq!(script.receives(&frame(DATA, 0, 1, b"")).unwrap(), []);
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &literals(&[("x", "y")]));
    let seen = script.receives(&trailers).unwrap();
    assert_eq!(seen, [Seen::Event(Http2Event::Trailers { stream })]);
    assert_eq!(script.endpoint.fields().get(b"x"), Some(&b"y"[..]));
    assert_eq!(script.receives(&frame(DATA, 0, 1, b"late")).unwrap().len(), 1);
    assert_eq!(script.resets(), [(1, Http2Code::STREAM_CLOSED)]);
}

#[test]
fn a_block_in_fragments_is_one_head() {
    let block = literals(&GET);
    for cut in 0..=block.len() {
        let (first, second) = block.split_at(cut);
        let mut input = frame(HEADERS, END_STREAM, 1, first);
        input.extend(frame(CONTINUATION, 0, 1, b""));
        input.extend(frame(CONTINUATION, END_HEADERS, 1, second));
        let mut script = server();
        let seen = script.receives(&input).unwrap();
        assert!(
            matches!(seen[..], [Seen::Event(Http2Event::Head { end_stream: true, .. })]),
            "{cut}"
        );
        assert_eq!(script.endpoint.fields().len(), GET.len());
    }
}

#[test]
fn the_announced_length_is_enforced() {
    for (announced, data, ends, what) in [
        (4, &b"body"[..], true, None),
        (4, b"bod", false, None),
        (4, b"bod", true, Some("prematurely closed stream")),
        (4, b"", true, Some("prematurely closed stream")),
        (3, b"body", false, Some("intended to send body data larger than declared")),
    ] {
        let mut script = server();
        let stream = script.opens(1, false);
        script.endpoint.announce(stream, announced);
        let flags = if ends { END_STREAM } else { 0 };
        let seen = script.receives(&frame(DATA, flags, 1, data)).unwrap();
        let expected = match what {
            None => Seen::Data(1, data.to_vec(), ends),
            Some(what) => Seen::Event(Http2Event::Malformed { stream, what }),
        };
        assert_eq!(seen, [expected]);
        script.replies(stream, true);
        script.endpoint.release(stream, Http2Code::INTERNAL_ERROR);
        let expected = match (what, ends) {
            (Some(_), _) => vec![(1, Http2Code::PROTOCOL_ERROR)],
            (None, true) => vec![],
            (None, false) => vec![(1, Http2Code::NO_ERROR)],
        };
        assert_eq!(script.resets(), expected);
    }
}

#[test]
fn malformed_trailers_make_the_request_malformed() {
    let whole = END_HEADERS | END_STREAM;
    for (flags, field) in [
        (END_HEADERS, ("x", "y")),
        (whole, (":path", "y")),
        (whole, ("X", "y")),
        (whole, ("", "y")),
        (whole, ("x", "y\r\nz: 1")),
        (whole, ("x", "\0")),
        (whole, ("host", "a")),
        (whole, ("content-length", "4")),
        (whole, ("connection", "close")),
        (whole, ("transfer-encoding", "chunked")),
        (whole, ("te", "gzip")),
    ] {
        let mut script = server();
        let stream = script.opens(1, false);
        let trailers = frame(HEADERS, flags, 1, &literals(&[field]));
        let seen = script.receives(&trailers).unwrap();
        let [Seen::Event(Http2Event::Malformed { stream: of, .. })] = seen[..] else {
            panic!("{field:?}: {seen:?}")
        };
        assert_eq!(of, stream);
        assert_eq!(script.receives(&frame(DATA, 0, 1, b"rest")).unwrap(), []);
    }
}

/// Frames for a stream that we have reset were sent before the client knew of the reset.
#[test]
fn frames_for_a_stream_that_was_reset_are_ignored() {
    let mut script = server();
    let stream = script.opens(1, false);
    script.endpoint.release(stream, Http2Code::INTERNAL_ERROR);
    assert_eq!(script.resets(), [(1, Http2Code::INTERNAL_ERROR)]);
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &literals(&[("x", "y")]));
    for late in [
        frame(DATA, 0, 1, b"late"),
        frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        trailers,
        frame(RST_STREAM, 0, 1, &[0; 4]),
    ] {
        assert_eq!(script.receives(&late).unwrap(), []);
        assert_eq!(script.sent(), []);
    }
    assert_eq!(script.receives(&frame(DATA, 0, 1, b"knowing better")).unwrap(), []);
    assert_eq!(script.resets(), [(1, Http2Code::STREAM_CLOSED)]);
}

#[test]
fn a_stream_that_the_peer_resets_is_over() {
    let mut script = server();
    let stream = script.opens(1, false);
    let seen = script.receives(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])).unwrap();
    assert_eq!(seen, [Seen::Event(Http2Event::Reset { stream, code: Http2Code::CANCEL })]);
    assert!(script.endpoint.begin_fields(stream).is_none());
    script.receives(&frame(DATA, 0, 1, b"late")).unwrap();
    assert_eq!(script.resets(), [(1, Http2Code::STREAM_CLOSED)]);
    script.endpoint.release(stream, Http2Code::INTERNAL_ERROR);
    assert_eq!(script.sent(), []);
    assert_eq!(script.endpoint.counts().get(super::super::counts::Http2Count::PeerResets), 1);
    // An old key has no effect on the next stream in its slot.
    let next = script.opens(3, true);
    assert_eq!((next.slot, script.endpoint.sendable(stream)), (stream.slot, 0));
    script.endpoint.release(stream, Http2Code::INTERNAL_ERROR);
    assert_eq!(script.endpoint.open_streams(), 1);
}

#[test]
fn too_many_streams_are_refused_and_still_change_the_table() {
    let config = Http2Config { max_concurrent_streams: 1, ..Http2Config::default() };
    let mut script = Script::server(config);
    let first = script.opens(1, true);
    // A literal with incremental indexing: entry 62.
    let mut block = literals(&GET);
    block.extend_from_slice(b"\x40\x01x\x01y");
    assert_eq!(script.receives(&frame(HEADERS, END_HEADERS, 3, &block)).unwrap(), []);
    assert_eq!(script.resets(), [(3, Http2Code::REFUSED_STREAM)]);
    script.endpoint.release(first, Http2Code::NO_ERROR);
    let mut block = literals(&GET);
    block.push(0x80 | 62);
    let seen = script.receives(&frame(HEADERS, END_HEADERS | END_STREAM, 5, &block)).unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(script.endpoint.fields().get(b"x"), Some(&b"y"[..]));
}

#[test]
fn no_stream_is_opened_after_goaway() {
    let mut script = server();
    let stream = script.opens(1, true);
    script.endpoint.go_away(Http2Code::NO_ERROR);
    let sent = script.sent();
    assert_eq!((sent[0].0.kind, &sent[0].1[..]), (GOAWAY, &[0, 0, 0, 1, 0, 0, 0, 0][..]));
    assert_eq!(script.receives(&request(3, true)).unwrap(), []);
    script.replies(stream, true);
    assert_eq!(script.sent().len(), 1);
}

/// Frames for new streams that a client sends before it has read GOAWAY are discarded.
#[test]
fn requests_that_cross_goaway_end_nothing_else() {
    let mut script = server();
    let stream = script.opens(1, false);
    script.endpoint.go_away(Http2Code::NO_ERROR);
    script.sent();
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 3, &literals(&[("x", "y")]));
    let crossing = [
        request(3, false),
        frame(DATA, 0, 3, b"body"),
        request(5, false),
        trailers,
        frame(WINDOW_UPDATE, 0, 5, &[0, 0, 0, 1]),
        frame(RST_STREAM, 0, 5, &[0; 4]),
    ];
    assert_eq!(script.receives(&crossing.concat()).unwrap(), []);
    let seen = script.receives(&frame(DATA, END_STREAM, 1, b"end")).unwrap();
    assert_eq!(seen, [Seen::Data(1, b"end".to_vec(), true)]);
    script.replies(stream, true);
    assert_eq!(script.sent().len(), 1);
    assert!(script.receives(&frame(DATA, 0, 7, b"idle")).is_err());
}

/// If a client stops within a header block, its stream is reset. The rest of the block, should it
/// come, is decoded for the table.
#[test]
fn an_abandoned_block_resets_its_stream() {
    let mut script = server();
    let input = request(1, true);
    let (first, rest) = input.split_at(14);
    assert_eq!(script.receives(first).unwrap(), []);
    assert!(script.endpoint.partial_block().is_some());
    script.endpoint.abandon_block();
    script.endpoint.abandon_block();
    assert_eq!(script.resets(), [(1, Http2Code::PROTOCOL_ERROR)]);
    assert_eq!(script.receives(rest).unwrap(), []);
    assert!(script.endpoint.partial_block().is_none());
    script.opens(3, true);
}

#[test]
fn a_broken_connection_ends_with_goaway() {
    use Http2Code as Code;
    let pad_only = frame(DATA, PADDED, 1, &[5, 0]);
    let self_dependent = [&[0, 0, 0, 3, 7][..], &literals(&GET)].concat();
    let cases = [
        (frame(DATA, 0, 0, b"x"), Code::PROTOCOL_ERROR),
        (frame(DATA, 0, 7, b"x"), Code::PROTOCOL_ERROR),
        (frame(DATA, PADDED, 1, b""), Code::FRAME_SIZE_ERROR),
        (pad_only, Code::PROTOCOL_ERROR),
        (request(0, true), Code::PROTOCOL_ERROR),
        (request(2, true), Code::PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS | HAS_PRIORITY, 3, &self_dependent), Code::PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS | HAS_PRIORITY, 3, &[0; 4]), Code::FRAME_SIZE_ERROR),
        (frame(HEADERS, END_HEADERS, 3, &[0x80]), Code::COMPRESSION_ERROR),
        (frame(PRIORITY, 0, 1, &[0; 4]), Code::FRAME_SIZE_ERROR),
        (frame(PRIORITY, 0, 0, &[0; 5]), Code::PROTOCOL_ERROR),
        (frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 0]), Code::PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 0, &[0; 4]), Code::PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 9, &[0; 4]), Code::PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 1, &[0; 3]), Code::FRAME_SIZE_ERROR),
        (frame(SETTINGS, 0, 1, &[]), Code::PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, &[0; 5]), Code::FRAME_SIZE_ERROR),
        (frame(SETTINGS, ACK, 0, &[0; 6]), Code::FRAME_SIZE_ERROR),
        (frame(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 2]), Code::PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]), Code::FLOW_CONTROL_ERROR),
        (frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 42]), Code::PROTOCOL_ERROR),
        (frame(PUSH_PROMISE, 0, 1, &[0; 4]), Code::PROTOCOL_ERROR),
        (frame(PING, 0, 0, &[0; 7]), Code::FRAME_SIZE_ERROR),
        (frame(PING, 0, 1, &[0; 8]), Code::PROTOCOL_ERROR),
        (frame(GOAWAY, 0, 0, &[0; 7]), Code::FRAME_SIZE_ERROR),
        (frame(GOAWAY, 0, 1, &[0; 8]), Code::PROTOCOL_ERROR),
        (frame(WINDOW_UPDATE, 0, 0, &[0; 4]), Code::PROTOCOL_ERROR),
        (frame(WINDOW_UPDATE, 0, 9, &[0, 0, 0, 1]), Code::PROTOCOL_ERROR),
        (frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), Code::FLOW_CONTROL_ERROR),
        (frame(WINDOW_UPDATE, 0, 0, &[0; 5]), Code::FRAME_SIZE_ERROR),
        (frame(CONTINUATION, END_HEADERS, 1, b""), Code::PROTOCOL_ERROR),
    ];
    for (input, expected) in cases {
        let mut script = server();
        script.opens(1, false);
        let error = script.receives(&input).unwrap_err();
        assert_eq!(error.code, expected, "{}", error.what);
        let sent = script.sent();
        let (head, payload) = sent.last().unwrap();
        assert_eq!((head.kind, code(&payload[4..])), (GOAWAY, expected), "{}", error.what);
    }
    let mut script = server();
    let within = [frame(HEADERS, 0, 1, &literals(&GET)), frame(PING, 0, 0, &[0; 8])].concat();
    assert_eq!(script.receives(&within).unwrap_err().code, Code::PROTOCOL_ERROR);
    let mut endpoint = Http2Endpoint::new(Http2Role::Server, Http2Config::default());
    assert!(endpoint.receive(b"GET / HTTP/1.1\r\n").is_err());
}

#[test]
fn a_client_and_a_server_understand_each_other() {
    let config = Http2Config::default();
    let mut client = Script { endpoint: Http2Endpoint::new(Http2Role::Client, config) };
    let mut server = Script { endpoint: Http2Endpoint::new(Http2Role::Server, config) };
    let stream = client.endpoint.open().unwrap();
    let mut head = client.endpoint.begin_fields(stream).unwrap();
    GET.iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes()));
    head.field(b"X-Long", &[b'x'; 5000]);
    head.finish(false);
    client.endpoint.send_data(stream, b"question", true, 100);
    let seen = pass(&mut client, &mut server);
    let [Seen::Event(Http2Event::Head { stream: asked, .. }), Seen::Data(1, _, true)] = seen[1..]
    else {
        panic!("{seen:?}")
    };
    assert_eq!(server.endpoint.fields().get(b"x-long").map(<[u8]>::len), Some(5000));
    let mut hint = server.endpoint.begin_fields(asked).unwrap();
    hint.status(103);
    hint.finish_interim();
    server.replies(asked, false);
    server.endpoint.send_data(asked, b"answer", false, 100);
    let mut trailers = server.endpoint.begin_fields(asked).unwrap();
    trailers.field(b"grpc-status", b"0");
    trailers.finish(true);
    server.endpoint.release(asked, Http2Code::INTERNAL_ERROR);
    let seen = pass(&mut server, &mut client);
    let events: Vec<_> = seen.into_iter().filter(|seen| !is_settings(seen)).collect();
    assert_eq!(
        events,
        [
            Seen::Event(Http2Event::Interim { stream }),
            Seen::Event(Http2Event::Head { stream, end_stream: false }),
            Seen::Data(1, b"answer".to_vec(), false),
            Seen::Event(Http2Event::Trailers { stream }),
        ]
    );
    client.endpoint.release(stream, Http2Code::CANCEL);
    assert_eq!((client.endpoint.open_streams(), server.endpoint.open_streams()), (0, 0));
    assert_eq!(client.resets(), []);
}

fn is_settings(seen: &Seen) -> bool {
    matches!(seen, Seen::Event(Http2Event::SettingsAcked | Http2Event::Writable { .. }))
}

/// Passes all output of one end to the other.
fn pass(from: &mut Script, to: &mut Script) -> Vec<Seen> {
    let bytes = from.endpoint.output().to_vec();
    from.endpoint.advance_output(bytes.len());
    to.receives(&bytes).unwrap()
}

/// A head longer than a frame of the peer is sent in fragments.
#[test]
fn a_long_head_is_sent_in_fragments() {
    let mut script = server();
    let stream = script.opens(1, true);
    let mut head = script.endpoint.begin_fields(stream).unwrap();
    head.status(200);
    // Huffman coding does not shorten these bytes.
    head.field(b"x", &[0xff; 40_000]);
    let bytes = head.finish(true);
    assert_eq!(bytes, script.endpoint.output().len());
    let sent = script.sent();
    assert!(sent.len() >= 3 && sent.iter().all(|sent| sent.0.length <= 16_384));
    assert_eq!((sent[0].0.kind, sent[0].0.flags), (HEADERS, END_STREAM));
    assert!(sent[1..].iter().all(|sent| sent.0.kind == CONTINUATION));
    let ends = sent.iter().map(|sent| sent.0.has(END_HEADERS));
    assert!(ends.eq((1..=sent.len()).map(|n| n == sent.len())));
}

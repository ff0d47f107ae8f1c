//! Limits on repeated actions of a peer.

use alloc::vec;

use super::super::counts::Http2Count;
use super::super::frame::{
    CONTINUATION, DATA, GOAWAY, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use super::super::limits::{FloodLimit, Http2Limits};
use super::super::{Http2Code, Http2Config};
use super::*;

const BURST: u32 = 20;

/// All limits are a small burst, and one a second.
fn strict() -> Http2Config {
    let limit = FloodLimit { burst: BURST, per_second: 1 };
    let limits = Http2Limits {
        peer_resets: limit,
        provoked_resets: limit,
        settings: limit,
        pings: limit,
        priorities: limit,
        empty_data: limit,
        window_updates: limit,
        unknown_frames: limit,
        ..Http2Limits::default()
    };
    Http2Config { limits, ..Http2Config::default() }
}

/// The number of inputs accepted before the connection ends with ENHANCE_YOUR_CALM.
fn taken(script: &mut Script, mut input: impl FnMut(u32) -> Vec<u8>) -> u32 {
    for count in 0..1000 {
        if let Err(error) = script.receives(&input(count)) {
            assert_eq!(error.code, Http2Code::ENHANCE_YOUR_CALM, "{}", error.what);
            return count;
        }
        script.sent();
    }
    panic!("there is no limit");
}

#[test]
fn frames_that_cost_only_us_are_limited() {
    let cases = [
        (frame(PING, 0, 0, &[0; 8]), BURST),
        (frame(SETTINGS, 0, 0, &[]), BURST - 1),
        (frame(PRIORITY, 0, 1, &[0; 5]), BURST),
        (frame(DATA, 0, 1, b""), BURST),
        (frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]), BURST),
        (frame(0x77, 0, 1, b"abc"), BURST),
        (frame(PING, ACK, 0, &[0; 8]), BURST),
        (frame(SETTINGS, ACK, 0, &[]), BURST),
        (frame(GOAWAY, 0, 0, &[0; 8]), BURST),
    ];
    for (input, expected) in cases {
        let mut script = Script::server(strict());
        script.opens(1, false);
        assert_eq!(taken(&mut script, |_| input.clone()), expected, "{input:?}");
        let mut script = Script::server(strict());
        script.opens(1, false);
        for _ in 0..10 * BURST {
            script.receives(&input).unwrap();
            script.endpoint.replenish(1);
            script.sent();
        }
    }
}

/// Frames that were in flight when a stream was reset are free; later ones are counted.
#[test]
fn late_frames_are_limited() {
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &literals(&[("x", "y")]));
    for late in [frame(DATA, 0, 1, b""), frame(DATA, 0, 1, b"x"), trailers] {
        let mut script = Script::server(strict());
        let stream = script.opens(1, false);
        script.endpoint.release(stream, Http2Code::INTERNAL_ERROR);
        let window = Http2Config::default().stream_window as usize;
        for piece in vec![0; window].chunks(16_384) {
            assert_eq!(script.receives(&frame(DATA, 0, 1, piece)).unwrap(), []);
        }
        script.sent();
        let count = taken(&mut script, |_| late.clone());
        assert!((BURST + 2..2 * BURST).contains(&count), "{count}");
    }
}

/// After GOAWAY, a server discards crossing streams up to a limit.
#[test]
fn streams_after_goaway_are_limited() {
    let config = Http2Config { max_concurrent_streams: 4, stream_window: 0, ..strict() };
    let mut script = Script::server(config);
    script.endpoint.go_away(Http2Code::NO_ERROR);
    let count = taken(&mut script, |count| request(2 * count + 1, true));
    assert!((BURST + 4..5 * BURST).contains(&count), "{count}");
}

#[test]
fn changes_of_the_table_size_are_few() {
    for (count, passes) in [(2, true), (8, true), (9, false)] {
        let mut script = Script::server(strict());
        let block = [&vec![0x20; count][..], &literals(&GET)].concat();
        let input = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block);
        assert_eq!(script.receives(&input).is_ok(), passes, "{count}");
    }
}

/// This also holds for discarded blocks: their fields are decoded but cause no event.
#[test]
fn blocks_cost_more_than_their_bytes() {
    let mut script = Script::server(Http2Config::default());
    let stream = script.opens(1, false);
    script.endpoint.release(stream, Http2Code::INTERNAL_ERROR);
    script.endpoint.take_work();
    let empty = [&literals(&GET)[..], &[0x8f; 900]].concat();
    for id in [1, 3] {
        let input = frame(HEADERS, END_HEADERS | END_STREAM, id, &empty);
        script.receives(&input).unwrap();
        let work = script.endpoint.take_work();
        assert!(work > 50 * empty.len(), "{work}");
        assert_eq!(script.endpoint.take_work(), 0);
    }
}

/// CVE-2023-44487: each stream is opened and reset at once.
#[test]
fn rapid_resets_end_the_connection() {
    let reset = |count: u32| {
        let id = 2 * count + 1;
        [request(id, true), frame(RST_STREAM, 0, id, &[0, 0, 0, 8])].concat()
    };
    let mut script = Script::server(strict());
    let mut count = 0;
    loop {
        match script.receives(&reset(count)) {
            Ok(seen) => {
                let Seen::Event(Http2Event::Reset { stream, .. }) = seen[1] else {
                    panic!("{seen:?}")
                };
                script.endpoint.release(stream, Http2Code::NO_ERROR);
            }
            Err(error) => break assert_eq!(error.code, Http2Code::ENHANCE_YOUR_CALM),
        }
        count += 1;
    }
    assert_eq!(
        (count, script.endpoint.counts().get(Http2Count::PeerResets)),
        (BURST, BURST as u64 + 1)
    );
}

/// Streams that end normally earn resets of others.
#[test]
fn complete_streams_earn_resets() {
    let mut script = Script::server(strict());
    for round in 0..10 * BURST {
        let stream = script.opens(4 * round + 1, true);
        script.replies(stream, true);
        script.endpoint.release(stream, Http2Code::NO_ERROR);
        let stream = script.opens(4 * round + 3, true);
        script.receives(&frame(RST_STREAM, 0, 4 * round + 3, &[0; 4])).unwrap();
        script.endpoint.release(stream, Http2Code::NO_ERROR);
        script.sent();
    }
}

/// As gRPC servers do: trailers instead of a reply, then a reset of the stream whose request goes
/// on. Some of our resets cross theirs.
#[test]
fn a_server_may_reset_every_stream() {
    let mut script = Script::client(strict());
    let head = literals(&[(":status", "200"), ("grpc-status", "1")]);
    for round in 0..20 * BURST {
        let stream = script.asks("POST", false);
        let reset = frame(RST_STREAM, 0, stream.id, &[0; 4]);
        if round % 3 > 0 {
            let head = frame(HEADERS, END_HEADERS | END_STREAM, stream.id, &head);
            script.receives(&head).unwrap();
        }
        if round % 2 == 0 {
            script.receives(&reset).unwrap();
            script.endpoint.release(stream, Http2Code::CANCEL);
            assert_eq!(script.resets(), []);
        } else {
            script.endpoint.release(stream, Http2Code::CANCEL);
            assert_eq!(script.resets(), [(stream.id, Http2Code::CANCEL)]);
            script.receives(&reset).unwrap();
        }
    }
    assert!(script.endpoint.counts().get(Http2Count::PeerResets) > BURST.into());
}

/// Replies whose end crosses the end of the request: the server resets a stream that has ended.
#[test]
fn a_server_may_reset_every_stream_that_has_ended() {
    let mut script = Script::client(strict());
    let head = literals(&[(":status", "200")]);
    for _ in 0..20 * BURST {
        let streams = [script.asks("POST", true), script.asks("GET", true)];
        for stream in streams {
            let head = frame(HEADERS, END_HEADERS | END_STREAM, stream.id, &head);
            script.receives(&head).unwrap();
            script.endpoint.release(stream, Http2Code::CANCEL);
        }
        for stream in streams {
            script.receives(&frame(RST_STREAM, 0, stream.id, &[0; 4])).unwrap();
        }
    }
    assert_eq!(script.resets(), []);
    let last = script.asks("GET", true);
    script.endpoint.release(last, Http2Code::CANCEL);
    let reset = frame(RST_STREAM, 0, last.id, &[0; 4]);
    assert_eq!(taken(&mut script, |_| reset.clone()), BURST + 1);
}

/// Go's server sends two for each piece that its handler reads.
#[test]
fn sent_data_earns_a_window_update_for_each_kilobyte() {
    let mut script = Script::client(strict());
    let stream = script.asks("POST", false);
    for _ in 0..10 {
        assert_eq!(script.endpoint.send_data(stream, &[0; 5120], false, usize::MAX), 1);
        for id in [0, stream.id, 0, stream.id, 0, stream.id, 0, stream.id, 0] {
            script.receives(&frame(WINDOW_UPDATE, 0, id, &[0, 0, 8, 0])).unwrap();
        }
    }
}

#[test]
fn repeated_resets_of_a_stream_are_limited() {
    for is_open in [true, false] {
        let mut script = Script::client(strict());
        let stream = script.asks("GET", true);
        if !is_open {
            script.endpoint.release(stream, Http2Code::CANCEL);
        }
        let reset = frame(RST_STREAM, 0, stream.id, &[0; 4]);
        assert_eq!(taken(&mut script, |_| reset.clone()), BURST + 1, "{is_open}");
    }
}

/// CVE-2025-8671: the client makes us reset its streams.
#[test]
fn provoked_resets_end_the_connection() {
    let mut script = Script::server(strict());
    let provoked = |count: u32| {
        let id = 2 * count + 1;
        let overflow = frame(WINDOW_UPDATE, 0, id, &[0x7f, 0xff, 0xff, 0xff]);
        [request(id, true), overflow].concat()
    };
    assert_eq!(taken(&mut script, provoked), BURST);
}

/// CVE-2024-27316: a header block that never ends.
#[test]
fn continuation_frames_are_limited_by_count_and_bytes() {
    for (piece, what) in [(1, "sent too many CONTINUATION frames"), (4096, "sent too large header")]
    {
        let mut script = Script::server(strict());
        script.receives(&frame(HEADERS, 0, 1, &literals(&GET))).unwrap();
        let error = (0..1000)
            .find_map(|_| script.receives(&frame(CONTINUATION, 0, 1, &vec![0; piece])).err())
            .unwrap();
        assert_eq!((error.code, error.what), (Http2Code::ENHANCE_YOUR_CALM, what));
        let counts = script.endpoint.counts();
        assert!(counts.get(Http2Count::ContinuationFrames) <= 65);
        assert!(counts.get(Http2Count::ContinuationBytes) <= 70_000);
    }
}

/// One byte of an indexed field stands for kilobytes of text ("HPACK bomb").
#[test]
fn decoded_fields_are_limited() {
    let mut script = Script::server(Http2Config::default());
    let value = [b'v'; 100];
    let mut block = literals(&GET);
    block.extend_from_slice(b"\x40\x01x\x64");
    block.extend_from_slice(&value);
    block.extend_from_slice(&[0x80 | 62; 1000]);
    let error = script.receives(&frame(HEADERS, END_HEADERS, 1, &block)).unwrap_err();
    assert_eq!((error.code, error.what), (Http2Code::ENHANCE_YOUR_CALM, "sent too large header"));
    // Many small fields are cut.
    let mut script = Script::server(Http2Config::default());
    let mut block = literals(&GET);
    block.extend([0x80 | 17; 1500]);
    script.receives(&frame(HEADERS, END_HEADERS, 1, &block)).unwrap();
    assert!(script.endpoint.fields().is_cut && script.endpoint.fields().len() <= 1000);
}

/// A client that requests answers and does not read them makes us store them.
#[test]
fn unread_answers_are_limited() {
    let limit = FloodLimit { burst: u32::MAX, per_second: 0 };
    let mut config = Http2Config::default();
    config.limits.pings = limit;
    config.limits.answer_bytes_max = 1700;
    let mut script = Script::server(config);
    let ping = frame(PING, 0, 0, &[0; 8]);
    for _ in 0..100 {
        script.receives(&ping).unwrap();
    }
    assert!(script.receives(&ping).is_err());
    let mut script = Script::server(config);
    for _ in 0..1000 {
        script.receives(&ping).unwrap();
        script.sent();
    }
}

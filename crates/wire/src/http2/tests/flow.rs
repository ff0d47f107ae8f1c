//! Flow control in both directions.

use alloc::vec;

use super::super::frame::{DATA, FRAME_PAYLOAD_DEFAULT, SETTINGS, WINDOW_UPDATE};
use super::super::{Http2Code, Http2Config, Http2Event, WINDOW_DEFAULT, WINDOW_MAX};
use super::*;

fn settings(id: u8, value: u32) -> Vec<u8> {
    let value = value.to_be_bytes();
    frame(SETTINGS, 0, 0, &[&[0, id][..], &value].concat())
}

fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

/// RFC 9113, section 6.9.2: a smaller initial window can leave a negative one.
#[test]
fn windows_of_streams_follow_the_initial_window() {
    let mut script = Script::server(Http2Config::default());
    let stream = script.opens(1, true);
    assert_eq!(script.endpoint.sendable(stream), 0, "not before the head");
    script.replies(stream, false);
    let all = script.endpoint.sendable(stream);
    assert_eq!(all, WINDOW_DEFAULT as usize);
    script.endpoint.send_data(stream, &vec![0; all], false, 16_384);
    let both = [window_update(0, 100_000), settings(4, 42)].concat();
    let seen = script.receives(&both).unwrap();
    assert_eq!(seen[0], Seen::Event(Http2Event::Writable { stream: None }));
    assert_eq!(script.endpoint.sendable(stream), 0);
    let deficit = WINDOW_DEFAULT - 42;
    assert_eq!(script.receives(&window_update(1, deficit)).unwrap(), []);
    let seen = script.receives(&window_update(1, 7)).unwrap();
    assert_eq!(seen, [Seen::Event(Http2Event::Writable { stream: Some(stream) })]);
    assert_eq!(script.endpoint.sendable(stream), 7);
    script.receives(&settings(4, 1000)).unwrap();
    assert_eq!(script.endpoint.sendable(stream), 7 + 958);
}

#[test]
fn the_last_value_of_a_setting_counts() {
    let mut script = Script::server(Http2Config::default());
    let twice = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1, 0, 4, 0, 0, 1, 0]);
    script.receives(&twice).unwrap();
    assert_eq!(script.endpoint.peer_settings().initial_window_size, 256);
    let sent = script.sent();
    assert_eq!((sent.len(), sent[0].0.kind, sent[0].0.flags), (1, SETTINGS, ACK));
}

#[test]
fn a_window_cannot_grow_without_end() {
    let mut script = Script::server(Http2Config::default());
    let stream = script.opens(1, true);
    let seen = script.receives(&window_update(1, WINDOW_MAX)).unwrap();
    let code = Http2Code::FLOW_CONTROL_ERROR;
    assert_eq!(seen, [Seen::Event(Http2Event::Provoked { stream, code })]);
    script.endpoint.release(stream, Http2Code::INTERNAL_ERROR);
    assert_eq!(script.resets(), [(1, code)]);
    script.opens(3, true);
    script.receives(&window_update(3, WINDOW_MAX - WINDOW_DEFAULT)).unwrap();
    let error = script.receives(&settings(4, WINDOW_DEFAULT + 1)).unwrap_err();
    assert_eq!(error.code, code);
}

#[test]
fn a_client_that_sends_too_much_loses_its_stream() {
    let mut script = Script::server(Http2Config { stream_window: 10, ..Http2Config::default() });
    let stream = script.opens(1, false);
    assert_eq!(script.receives(&frame(DATA, 0, 1, &[0; 10])).unwrap().len(), 1);
    script.endpoint.raise_window(stream, 4);
    script.endpoint.raise_window(stream, 3);
    let sent = script.sent();
    assert_eq!((sent.len(), &sent[0].1[..]), (1, &[0, 0, 0, 4][..]));
    let seen = script.receives(&frame(DATA, 0, 1, &[0; 5])).unwrap();
    let code = Http2Code::FLOW_CONTROL_ERROR;
    assert_eq!(seen, [Seen::Event(Http2Event::Provoked { stream, code })]);
    assert_eq!(script.resets(), [(1, code)]);
}

#[test]
fn the_window_of_the_connection_is_opened_as_data_comes() {
    let mut script = Script::server(Http2Config::default());
    let stream = script.opens(1, false);
    script.endpoint.raise_window(stream, WINDOW_MAX);
    script.sent();
    let full = frame(DATA, 0, 1, &[0; 1 << 14]);
    for _ in 0..(WINDOW_MAX >> 14) - (WINDOW_MAX >> 16) - 1 {
        script.receives(&full).unwrap();
    }
    assert_eq!(script.sent(), []);
    script.receives(&full).unwrap();
    script.receives(&full).unwrap();
    let sent = script.sent();
    assert_eq!((sent.len(), sent[0].0.kind, sent[0].0.stream), (1, WINDOW_UPDATE, 0));
    script.endpoint.raise_window(stream, WINDOW_MAX);
    assert_eq!(script.sent().len(), 1);
}

#[test]
fn a_body_before_the_settings_ack_is_refused_if_our_window_is_smaller() {
    for (stream_window, refused) in [(10, true), (WINDOW_DEFAULT, false)] {
        let config = Http2Config { stream_window, ..Http2Config::default() };
        let mut script = Script { endpoint: Http2Endpoint::new(Http2Role::Server, config) };
        let input = [&PREFACE[..], &settings(3, 1), &request(1, false)].concat();
        let seen = script.receives(&input).unwrap();
        assert_eq!(seen.len(), if refused { 1 } else { 2 });
        let resets = script.resets();
        assert_eq!(resets.is_empty(), !refused);
        assert!(resets.iter().all(|reset| *reset == (1, Http2Code::REFUSED_STREAM)));
        script.receives(&frame(SETTINGS, ACK, 0, &[])).unwrap();
        script.opens(3, false);
    }
}

/// RFC 9113, section 4.2: a frame may be as long as announced, and not a byte longer.
#[test]
fn frames_are_as_long_as_announced() {
    for announced in [FRAME_PAYLOAD_DEFAULT, 1 << 20] {
        let config = Http2Config { max_frame_size: announced, ..Http2Config::default() };
        let introduced = Http2Endpoint::new(Http2Role::Server, config);
        let setting = [&[0, 5][..], &announced.to_be_bytes()].concat();
        let is_said = introduced.output().windows(6).any(|window| window == setting);
        assert_eq!(is_said, announced != FRAME_PAYLOAD_DEFAULT);
        for (excess, error) in [(0, None), (1, Some(Http2Code::FRAME_SIZE_ERROR))] {
            let mut script = Script::server(config);
            let stream = script.opens(1, false);
            script.endpoint.raise_window(stream, WINDOW_MAX);
            let seen = script.receives(&frame(DATA, 0, 1, &vec![0; (announced + excess) as usize]));
            assert_eq!(seen.err().map(|error| error.code), error, "{announced} + {excess}");
        }
    }
}

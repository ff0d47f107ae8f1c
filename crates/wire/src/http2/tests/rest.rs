//! Idle connections that are reduced to a small state.

use super::super::frame::{PING, SETTINGS};
use super::super::limits::Http2Limits;
use super::*;

/// A client and a server, each of which receives all output of the other.
struct Pair {
    client: Http2Endpoint,
    server: Http2Endpoint,
}

impl Pair {
    fn new() -> Self {
        let [client, server] = [Http2Role::Client, Http2Role::Server]
            .map(|role| Http2Endpoint::new(role, Http2Config::default()));
        let mut pair = Self { client, server };
        pair.exchange();
        pair
    }

    /// Exchanges output until both ends are silent. Returns the last fields that the client
    /// received.
    fn exchange(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        loop {
            let asked = self.client.output().to_vec();
            self.client.advance_output(asked.len());
            take(&mut self.server, &asked, |server, stream| {
                let fields = server.fields().clone();
                let mut head = server.begin_fields(stream).unwrap();
                head.status(200);
                fields.iter().skip(3).for_each(|(name, value)| head.field(name, value));
                head.finish(true);
                server.release(stream, Http2Code::INTERNAL_ERROR);
            });
            let answered = self.server.output().to_vec();
            self.server.advance_output(answered.len());
            take(&mut self.client, &answered, |client, stream| {
                client.release(stream, Http2Code::CANCEL);
            });
            if asked.is_empty() && answered.is_empty() {
                let fields = self.client.fields().iter();
                return fields.map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
            }
        }
    }

    /// Sends a request and checks that its fields are returned.
    fn ask(&mut self, fields: &[(&str, &str)]) {
        let stream = self.client.open().unwrap();
        let mut head = self.client.begin_fields(stream).unwrap();
        for (name, value) in GET[..3].iter().chain(fields) {
            head.field(name.as_bytes(), value.as_bytes());
        }
        head.finish(true);
        let came = self.exchange();
        assert_eq!(came[0], (b":status".to_vec(), b"200".to_vec()));
        for ((name, value), expected) in came[1..].iter().zip(fields) {
            assert_eq!((&name[..], &value[..]), (expected.0.as_bytes(), expected.1.as_bytes()));
        }
        assert_eq!(came.len(), 1 + fields.len());
    }

    /// Of each end.
    fn rest_and_wake(&mut self) {
        for endpoint in [&mut self.server, &mut self.client] {
            assert!(endpoint.can_rest());
            let fresh = Http2Endpoint::new(Http2Role::Server, Http2Config::default());
            let free = endpoint.peer_settings().max_concurrent_streams as usize;
            let resting = core::mem::replace(endpoint, fresh).rest();
            assert_eq!(resting.free_streams(), free);
            *endpoint = Http2Endpoint::wake(resting, Http2Limits::default());
            assert!(endpoint.output().is_empty());
        }
    }
}

fn take(
    endpoint: &mut Http2Endpoint,
    input: &[u8],
    mut on_head: impl FnMut(&mut Http2Endpoint, StreamKey),
) {
    let mut at = 0;
    loop {
        let received = endpoint.receive(&input[at..]).unwrap();
        at += received.consumed;
        match received.event {
            Some(Http2Event::Head { stream, .. }) => on_head(endpoint, stream),
            Some(_) => {}
            None => return assert_eq!(at, input.len()),
        }
    }
}

#[test]
fn header_tables_agree_after_a_rest() {
    let mut pair = Pair::new();
    let fields = [("x-first", "one"), ("user-agent", "test"), ("x-second", "two")];
    for size in [4096, 100, 0, 4096] {
        // This frame stands in for a client that changes the size of its table.
        let payload = [&[0, 1][..], &u32::to_be_bytes(size)].concat();
        let frames = frame(SETTINGS, 0, 0, &payload);
        assert_eq!(pair.server.receive(&frames).unwrap().consumed, frames.len());
        for count in 0..=fields.len() {
            pair.ask(&fields[..count]);
            pair.rest_and_wake();
            pair.ask(&fields[count..]);
            pair.ask(&fields);
            pair.rest_and_wake();
            pair.rest_and_wake();
        }
    }
}

#[test]
fn resting_restores_no_budget() {
    let mut server = Script::server(Http2Config::default());
    let ping = frame(PING, 0, 0, &[0; 8]);
    let mut count = 0;
    while server.receives(&ping).is_ok() {
        count += 1;
        server.sent();
        assert!(server.endpoint.can_rest());
        let fresh = Http2Endpoint::new(Http2Role::Server, Http2Config::default());
        let endpoint = core::mem::replace(&mut server.endpoint, fresh);
        server.endpoint = Http2Endpoint::wake(endpoint.rest(), Http2Limits::default());
    }
    assert_eq!(count, Http2Limits::default().pings.burst);
}

#[test]
fn a_busy_connection_cannot_rest() {
    let mut server = Script::server(Http2Config::default());
    server.receives(&frame(PING, 0, 0, &[0; 8])[..12]).unwrap();
    assert!(!server.endpoint.can_rest(), "half a frame has come");
    let mut server = Script::server(Http2Config::default());
    let stream = server.opens(1, true);
    assert!(!server.endpoint.can_rest(), "a stream is open");
    server.replies(stream, true);
    server.endpoint.release(stream, Http2Code::INTERNAL_ERROR);
    assert!(!server.endpoint.can_rest(), "a reply was not sent");
    server.sent();
    assert!(server.endpoint.can_rest());
    server.endpoint.go_away(Http2Code::NO_ERROR);
    server.sent();
    assert!(!server.endpoint.can_rest(), "it ends");
}

/// The client opens no more streams; one that it has opened meanwhile is served.
#[test]
fn an_end_is_announced_once() {
    let mut pair = Pair::new();
    let late = pair.client.open().unwrap();
    pair.client.begin_fields(late).unwrap().finish(true);
    pair.server.announce_end();
    pair.exchange();
    assert!(pair.client.is_used_up() && !pair.server.is_going_away());
    assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
    let fresh = Http2Endpoint::new(Http2Role::Server, Http2Config::default());
    let resting = core::mem::replace(&mut pair.server, fresh).rest();
    assert!(resting.has_announced_end());
    pair.server = Http2Endpoint::wake(resting, Http2Limits::default());
    pair.server.announce_end();
    assert!(pair.server.output().is_empty());
    pair.server.go_away(Http2Code::NO_ERROR);
    let mut script = Script { endpoint: pair.server };
    let sent = script.sent();
    assert_eq!((sent.len(), &sent[0].1[..4]), (1, &late.id.to_be_bytes()[..]));
}

//! Unary calls of gRPC, to peers that speak frames of HTTP/2.

use super::*;
use crate::{GrpcCaller, GrpcReply};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status 200` in the table of HPACK.
const STATUS_200: &[u8] = b"\x88";

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A literal field.
fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// The reply to a call on this stream.
fn reply(stream: u8, body: &[u8], trailers: &[u8]) -> Vec<u8> {
    [
        frame(HEADERS, END_HEADERS, stream, STATUS_200),
        frame(DATA, 0, stream, body),
        frame(HEADERS, END_HEADERS | END_STREAM, stream, trailers),
    ]
    .concat()
}

/// Answers calls with these frames, in turn, and returns the messages. Then it stays silent.
async fn serve(mut peer: PeerConnection, replies: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    peer.say(frame(SETTINGS, 0, 0, b"")).await;
    let mut messages = Vec::new();
    for reply in replies {
        messages.push(message(&mut peer, messages.is_empty()).await);
        peer.say(reply).await;
    }
    peer.closed().await;
    messages
}

/// The data of the next stream.
async fn message(peer: &mut PeerConnection, is_first: bool) -> Vec<u8> {
    if is_first {
        let preface = peer.exactly(24).await;
        assert_eq!(&preface[..3], b"PRI");
    }
    let mut message = Vec::new();
    loop {
        let head = peer.exactly(9).await;
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = peer.exactly(length).await;
        if head[3] == DATA {
            message.extend(payload);
            if head[4] & END_STREAM != 0 {
                return message;
            }
        }
    }
}

/// The results of calls in turn to a peer with these replies, the messages, and the number of
/// connections is one.
fn called(calls: usize, replies: Vec<Vec<u8>>) -> (Vec<Result<GrpcReply, String>>, Vec<Vec<u8>>) {
    let simulated = simulate(async move {
        let peer = Peer::new();
        let (origin, name) = (peer.origin(), peer.address().to_string());
        let messages = Rc::new(RefCell::new(Vec::new()));
        let seen = messages.clone();
        net::spawn(async move {
            let connection = peer.accept().await;
            let served = serve(connection, replies).await;
            seen.borrow_mut().extend(served);
        });
        let results = in_task(async move {
            let (caller, mut results) = (GrpcCaller::new(Default::default()), Vec::new());
            for call in 0..calls {
                let fields = vec![(b"X-Token".to_vec(), b"t".to_vec())];
                let body = format!("call {call}").into_bytes();
                let request = FetchRequest { fields, ..post(origin.clone(), body) };
                let result = caller.call(&request, &LIMITS).await;
                results.push(result.map_err(|error| error.to_string().replace(&name, "PEER")));
            }
            results
        })
        .await;
        net::sleep(std::time::Duration::from_millis(10)).await;
        (results, messages.take())
    });
    simulated.expect("a worker").0
}

fn ok(body: &[u8]) -> Result<GrpcReply, String> {
    Ok(GrpcReply { status: 0, text: Vec::new(), body: body.to_vec() })
}

#[test]
fn calls_share_a_connection() {
    let status = field("grpc-status", "0");
    let replies = vec![reply(1, b"\0\0\0\0\0", &status), reply(3, b"\0\0\0\0\x01x", &status)];
    let (results, messages) = called(2, replies);
    assert_eq!(results, [ok(b"\0\0\0\0\0"), ok(b"\0\0\0\0\x01x")]);
    assert_eq!(messages, [b"\0\0\0\0\x06call 0".to_vec(), b"\0\0\0\0\x06call 1".to_vec()]);
}

#[test]
fn a_failed_call_has_its_status_from_trailers_or_head() {
    let fields = [field("grpc-status", "14"), field("grpc-message", "try%20later")].concat();
    let head_only = [STATUS_200, &fields].concat();
    let failed = GrpcReply { status: 14, text: b"try%20later".to_vec(), body: Vec::new() };
    for frames in [reply(1, b"", &fields), frame(HEADERS, END_HEADERS | END_STREAM, 1, &head_only)]
    {
        assert_eq!(called(1, vec![frames]).0, [Ok(failed.clone())]);
    }
}

#[test]
fn what_is_no_reply_of_grpc_is_an_error() {
    let status_404 = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x8d");
    for (frames, reason) in [
        (status_404, "HTTP status 404 while reading the reply of PEER"),
        (
            reply(1, b"", &field("x", "y")),
            "the reply has no grpc-status while reading the reply of PEER",
        ),
        (
            reply(1, b"", &field("grpc-status", "x")),
            "the reply has no grpc-status while reading the reply of PEER",
        ),
        (frame(3, 0, 1, &[0, 0, 0, 8]), "the stream was reset"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "the server "),
    ] {
        let (results, _) = called(1, vec![frames]);
        let error = results[0].as_ref().unwrap_err();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[test]
fn a_silent_server_times_out() {
    let (results, _) = called(1, vec![Vec::new()]);
    let error = "not done within 10000 ms while waiting for the reply of PEER";
    assert_eq!(results, [Err(error.to_owned())]);
}

//! How connections end.

use std::rc::Rc;

use h2::server::Builder;
use net::testing::{advance, settle};
use wire::http2::Http2Config;
use wire::http2::frame::{GOAWAY, PING, SETTINGS};

use super::h2_server::{connect, echo};
use super::scripted::{ScriptedServer, fields, frame};
use super::*;
use crate::Http2ClientLimits;

/// The status line of a short reply.
const OK: [(&str, &str); 1] = [(":status", "200")];

fn limits() -> Http2ClientLimits {
    Http2ClientLimits::default()
}

fn go_away(last_stream: u32, code: u8) -> Vec<u8> {
    let [a, b, c, d] = last_stream.to_be_bytes();
    frame(GOAWAY, 0, 0, &[a, b, c, d, 0, 0, 0, code])
}

#[test]
fn accepted_streams_end_after_goaway() {
    run(async {
        let (client, control) = connect(&Builder::new(), echo);
        let streams: Vec<_> = (0..3).map(|_| post(&client)).collect();
        until(|| control.accepted.get() == 3).await;
        control.go_away();
        until(|| client.is_over()).await;
        assert!(client.free_streams() == 0 && client.open(&mut head("GET", "/"), true).is_none());
        for stream in streams {
            let body = pattern(7, 200_000);
            assert!(of(exchange(stream, body.clone())).await.unwrap() == body);
        }
        until(|| control.is_over.get()).await;
    });
}

#[test]
fn later_streams_are_unprocessed_after_goaway() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let [first, second] = [get(&client), get(&client)];
        let mut third = post(&client);
        server.turn().await;
        assert_eq!(server.opened().len(), 3);
        server.write(&go_away(3, 0));
        let failed = of(async move {
            let failure = reply_head(&mut third).await.unwrap_err();
            (failure, send(&mut third, b"more", false).await.unwrap_err(), third.has_ended())
        });
        let (failure, send_failure, has_ended) = failed.await;
        assert!(matches!(failure, StreamFailure::GoneAway), "{failure:?}");
        assert!(matches!(send_failure, StreamFailure::GoneAway) && has_ended);
        assert!(client.is_over() && client.open_streams() == 2);
        // The server has fewer than it announced at first, and now for another reason.
        server.write(&go_away(1, 11));
        assert!(matches!(of(reply(second)).await, Err(StreamFailure::Unprocessed)));
        server.write(&fields(1, true, &OK));
        assert_eq!(of(reply(first)).await.unwrap().0, 200);
        server.turn().await;
        assert!(server.is_closed);
    });
}

/// A server that shuts down in good order first stops new streams, then names the last one.
#[test]
fn a_first_goaway_may_exclude_no_stream() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let [first, second] = [get(&client), get(&client)];
        server.write(&go_away((1 << 31) - 1, 0));
        server.turn().await;
        assert!(client.is_over() && client.open_streams() == 2);
        server.write(&go_away(1, 0));
        assert!(matches!(of(reply(second)).await, Err(StreamFailure::GoneAway)));
        server.write(&fields(1, true, &OK));
        assert_eq!(of(reply(first)).await.unwrap().0, 200);
        server.turn().await;
        assert!(server.is_closed);
    });
}

/// A server that stops closes connections it has accepted but not read. It has sent no settings.
#[test]
fn a_server_that_closes_without_a_byte_has_processed_nothing() {
    run(async {
        let (client, mut server) = ScriptedServer::silent(limits(), Http2Config::default());
        let stream = post(&client);
        settle().await;
        server.drain();
        drop(server);
        assert!(matches!(of(reply(stream)).await, Err(StreamFailure::Unprocessed)));
    });
}

#[test]
fn streams_fail_when_the_server_closes() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let (mut waiting, mut half, done) = (get(&client), get(&client), get(&client));
        server.turn().await;
        server.write(&fields(3, false, &OK));
        server.write(&frame(0, 0, 3, b"part"));
        server.write(&fields(5, false, &OK));
        server.write(&frame(0, 1, 5, b"whole"));
        settle().await;
        let failed = of(async move { reply_head(&mut waiting).await.unwrap_err() });
        drop(server);
        assert!(matches!(failed.await, StreamFailure::Closed));
        assert!(client.is_over() && client.open_streams() == 0);
        // Data received before remains readable.
        let half = of(async move {
            reply_head(&mut half).await.unwrap();
            let mut body = Vec::new();
            assert_eq!(poll_fn(|cx| half.poll_body(cx, &mut body, 10)).await.unwrap(), 4);
            reply_body(&mut half).await
        });
        assert!(matches!(half.await, Err(StreamFailure::Closed)));
        assert_eq!(of(reply(done)).await.unwrap(), (200, b"whole".to_vec()));
    });
}

#[test]
fn an_idle_connection_notices_that_the_server_closes() {
    run(async {
        let (client, server) = ScriptedServer::connect(limits()).await;
        assert!(!client.is_over());
        drop(server);
        until(|| client.is_over()).await;
        assert_eq!(client.free_streams(), 0);
    });
}

/// The server closes while a request is on its way to the socket.
#[test]
fn a_request_that_was_not_written_is_unprocessed() {
    run(async {
        let (client, server) = ScriptedServer::connect(limits()).await;
        drop(server);
        let stream = get(&client);
        assert!(matches!(of(reply(stream)).await, Err(StreamFailure::Unprocessed)));
    });
}

#[test]
fn a_connection_without_handles_is_closed() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let other = client.clone();
        let stream = get(&client);
        drop(client);
        server.turn().await;
        assert!(!server.is_closed && other.free_streams() > 0);
        drop(other);
        server.turn().await;
        assert!(!server.is_closed && !server.has_goaway(), "a stream is open");
        server.write(&fields(1, true, &OK));
        assert_eq!(of(reply(stream)).await.unwrap().0, 200);
        server.turn().await;
        assert!(server.has_goaway() && server.is_closed);
    });
}

#[test]
fn a_connection_is_closed_when_idle() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let stream = get(&client);
        client.close_when_idle();
        assert!(client.is_over() && client.free_streams() == 0);
        server.turn().await;
        assert!(!server.is_closed);
        drop(stream);
        server.turn().await;
        assert!(server.has_goaway() && server.is_closed);
    });
}

/// The output of streams that were given up is not sent.
#[test]
fn a_server_that_does_not_read_is_given_up() {
    run(async {
        let (client, server) = ScriptedServer::silent(limits(), Http2Config::default());
        settle().await;
        // The socket accepts some of it.
        let long = "/".repeat(10_000);
        let mut count = 0;
        while client.free_streams() > 0 {
            drop(client.open(&mut head("GET", &long), true));
            count += 1;
            assert!(count < 10_000, "the output is bounded");
            if count % 20 == 0 {
                settle().await;
            }
        }
        assert!(!client.is_over());
        advance(59_000).await;
        assert!(!client.is_over());
        advance(2_000).await;
        assert!(client.is_over());
        drop(server);
    });
}

/// Bodies wait for room; neither heads nor windows delay them.
#[test]
fn unwritten_bodies_are_bounded() {
    run(async {
        let config = Http2Config { stream_window: 1 << 30, ..Http2Config::default() };
        let (client, mut server) = ScriptedServer::silent(limits(), config);
        server.turn().await;
        let queued = Rc::new(RefCell::new(0));
        for _ in 0..10 {
            let (mut stream, queued) = (post(&client), queued.clone());
            spawn(async move {
                loop {
                    let sent = poll_fn(|cx| stream.poll_send(cx, &[0; 50_000], false)).await;
                    *queued.borrow_mut() += sent.unwrap();
                }
            });
        }
        settle().await;
        let before = *queued.borrow();
        assert!(before < 2_000_000, "{before}");
        server.turn().await;
        assert!(*queued.borrow() > before);
    });
}

/// A stream without a reply casts doubt on the connection; an answer to PING removes it.
#[test]
fn a_connection_that_does_not_answer_is_doubted() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        drop(get(&client));
        assert_eq!(client.free_streams(), 128, "given up at once");
        let stream = get(&client);
        advance(5_000).await;
        drop(stream);
        assert!(client.free_streams() == 0 && !client.is_over());
        // It answers the PING.
        server.turn().await;
        assert_eq!(client.free_streams(), 128);
        let stream = get(&client);
        advance(5_000).await;
        drop(stream);
        advance(9_000).await;
        assert!(!client.is_over());
        advance(2_000).await;
        assert!(client.is_over());
    });
}

/// A network may have forgotten the connection; a request finds out without its own timeout.
#[test]
fn a_quiet_connection_is_tested_by_its_next_stream() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        advance(4_000).await;
        drop(get(&client));
        advance(5_000).await;
        server.drain();
        let stream = get(&client);
        advance(900).await;
        assert!(client.free_streams() > 0, "a server may take a moment");
        advance(200).await;
        assert!(client.free_streams() == 0 && !client.is_over());
        advance(9_000).await;
        let failed = of(reply(stream)).await;
        assert!(matches!(failed, Err(StreamFailure::Connection(_))), "{failed:?}");
        assert!(client.is_over());
    });
}

/// gRPC servers end a connection with many PINGs between two replies.
#[test]
fn few_pings_are_sent_without_a_reply() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let ping = frame(PING, 0, 0, &[0; 8]);
        let mut streams = Vec::new();
        for expected in [1, 2, 2, 2] {
            advance(6_000).await;
            streams.push(get(&client));
            server.turn().await;
            assert_eq!(server.pings(), expected);
            // Anything else than a reply.
            server.write(&ping);
            server.turn().await;
        }
        server.write(&fields(1, true, &OK));
        server.turn().await;
        advance(6_000).await;
        streams.push(get(&client));
        server.turn().await;
        assert_eq!(server.pings(), 3);
        assert!(!client.is_over());
    });
}

/// It reads nothing into the settings, and serves requests.
#[test]
fn a_server_that_acknowledges_nothing_is_used() {
    run(async {
        let (client, mut server) = ScriptedServer::silent(limits(), Http2Config::default());
        server.write(&frame(SETTINGS, 0, 0, &[]));
        for id in [1, 3, 5] {
            advance(30_000).await;
            let stream = get(&client);
            settle().await;
            server.write(&fields(id, true, &OK));
            assert_eq!(of(reply(stream)).await.unwrap().0, 200);
        }
    });
}

/// The frames are cheap, and the server reads the answers.
#[test]
fn a_server_that_sends_frames_forever_is_given_up() {
    for endless in [frame(PING, 0, 0, &[0; 8]), frame(SETTINGS, 0, 0, &[])] {
        run(async move {
            let (client, mut server) = ScriptedServer::connect(limits()).await;
            let stream = get(&client);
            for _ in 0..100 {
                server.write(&endless.repeat(10));
                settle().await;
            }
            assert!(client.is_over());
            let failed = of(reply(stream)).await;
            assert!(matches!(failed, Err(StreamFailure::Protocol(_))), "{failed:?}");
            server.drain();
            assert!(server.is_closed);
        });
    }
}

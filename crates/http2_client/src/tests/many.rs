//! Many requests at once, most with `h2`'s server at the other end.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use h2::server::Builder;
use http_types::HeaderMap;
use net::testing::{advance, settle};

use super::h2_server::{connect, echo, respond, send as send_from_server};
use super::scripted::ScriptedServer;
use super::*;
use crate::Http2ClientLimits;

#[test]
fn a_hundred_requests_at_once() {
    run(async {
        let (client, control) = connect(&Builder::new(), echo);
        let streams: Vec<_> = (0..100).map(|_| post(&client)).collect();
        assert_eq!((client.open_streams(), client.free_streams()), (100, 0));
        let replies = streams.into_iter().enumerate().map(|(number, stream)| async move {
            let body = pattern(number, number * 1_000);
            (exchange(stream, body.clone()).await.unwrap(), body)
        });
        let done = Rc::new(Cell::new(0));
        for reply in replies {
            let done = done.clone();
            spawn(async move {
                let (reply, body) = reply.await;
                assert!(reply == body);
                done.set(done.get() + 1);
            });
        }
        until(|| done.get() == 100).await;
        assert_eq!((control.accepted.get(), client.open_streams()), (100, 0));
        assert_eq!((client.free_streams(), client.is_over()), (128, false));
    });
}

/// The reply begins before the request has ended, and both are larger than all windows.
#[test]
fn both_bodies_stream_at_once() {
    run(async {
        let (client, _) = connect(&Builder::new(), echo);
        let mut stream = post(&client);
        let head = of(async move {
            let head = reply_head(&mut stream).await.unwrap();
            send(&mut stream, b"first", false).await.unwrap();
            let mut body = Vec::new();
            while body.len() < 5 {
                poll_fn(|cx| stream.poll_body(cx, &mut body, 10)).await.unwrap();
            }
            assert_eq!(body, b"first");
            (head, stream)
        });
        let (head, stream) = head.await;
        assert_eq!((head.status, head.is_interim, head.end_stream), (200, false, false));
        assert_eq!(head.fields.get(b":status"), Some(&b"200"[..]));
        let body = pattern(1, 2_000_000);
        assert!(of(exchange(stream, body.clone())).await.unwrap() == body);
    });
}

/// Windows of 1 byte, and of 64 KB.
#[test]
fn bodies_are_sent_as_windows_allow() {
    for window in [1, 65_535] {
        run(async move {
            let mut builder = Builder::new();
            builder.initial_window_size(window);
            let (client, _) = connect(&builder, echo);
            let body = pattern(2, if window == 1 { 100 } else { 300_000 });
            let streams: Vec<_> = (0..3).map(|_| post(&client)).collect();
            for stream in streams {
                assert!(of(exchange(stream, body.clone())).await.unwrap() == body);
            }
        });
    }
}

#[test]
fn trailers_follow_the_body() {
    run(async {
        let (client, _) = connect(&Builder::new(), |_, to| async {
            let mut to = respond(to);
            let _ = to.send_data(Bytes::from_static(b"body"), false);
            let mut fields = HeaderMap::new();
            fields.insert("grpc-status", "0".parse().unwrap());
            let _ = to.send_trailers(fields);
        });
        let mut stream = get(&client);
        let trailers = of(async move {
            reply_head(&mut stream).await.unwrap();
            assert_eq!(reply_body(&mut stream).await.unwrap(), b"body");
            stream.take_trailers()
        });
        let trailers = trailers.await.unwrap();
        assert_eq!(trailers.get(b"grpc-status"), Some(&b"0"[..]));
    });
}

#[test]
fn a_request_ends_with_trailers() {
    run(async {
        let (client, _) = connect(&Builder::new(), |request, to| async {
            let mut body = request.into_body();
            while let Some(data) = body.data().await {
                body.flow_control().release_capacity(data.unwrap().len()).unwrap();
            }
            let fields = body.trailers().await.unwrap().unwrap();
            let _ = respond(to).send_data(Bytes::from(fields["x-sum"].as_bytes().to_vec()), true);
        });
        let mut stream = post(&client);
        let body = of(async move {
            send(&mut stream, b"body", false).await.unwrap();
            let mut trailers = |writer: &mut FieldWriter<'_>| writer.field(b"X-Sum", b"7");
            poll_fn(|cx| stream.poll_end(cx, &mut trailers)).await.unwrap();
            reply(stream).await.unwrap().1
        });
        assert_eq!(body.await, b"7");
        assert_eq!(client.open_streams(), 0);
    });
}

/// The server is notified, and other streams are unaffected.
#[test]
fn a_cancelled_stream_hurts_no_other() {
    run(async {
        let cancelled = Rc::new(Cell::new(0));
        let count = cancelled.clone();
        let (client, _) = connect(&Builder::new(), move |request, to| {
            let count = count.clone();
            async move {
                if request.uri().path() == "/" {
                    return echo(request, to).await;
                }
                let mut to = respond(to);
                let reason = poll_fn(|cx| to.poll_reset(cx)).await.unwrap();
                assert_eq!(reason, h2::Reason::CANCEL);
                count.set(count.get() + 1);
            }
        });
        for round in 1..=3 {
            let others: Vec<_> = (0..4).map(|_| post(&client)).collect();
            let mut given_up = client.open(&mut head("POST", "/held"), false).unwrap();
            let given_up = of(async move {
                send(&mut given_up, &pattern(0, 20_000), false).await.unwrap();
                reply_head(&mut given_up).await.unwrap();
                given_up
            });
            drop(given_up.await);
            let body = pattern(round, 100_000);
            for other in others {
                assert!(of(exchange(other, body.clone())).await.unwrap() == body);
            }
            until(|| cancelled.get() == round).await;
        }
        assert_eq!((client.open_streams(), client.is_over()), (0, false));
    });
}

/// Its unread data is bounded by its window.
#[test]
fn a_reader_that_does_not_read_stalls_no_other() {
    run(async {
        const LENGTH: usize = 1_000_000;
        let sent = Rc::new(Cell::new(0));
        let count = sent.clone();
        let (client, _) = connect(&Builder::new(), move |request, to| {
            let count = count.clone();
            async move {
                let mut to = respond(to);
                for piece in pattern(3, LENGTH).chunks(1_000) {
                    send_from_server(&mut to, Bytes::copy_from_slice(piece)).await;
                    if request.uri().path() == "/unread" {
                        count.set(count.get() + piece.len());
                    }
                }
                let _ = to.send_data(Bytes::new(), true);
            }
        });
        let unread = client.open(&mut head("GET", "/unread"), true).unwrap();
        for _ in 0..5 {
            let (_, body) = of(reply(get(&client))).await.unwrap();
            assert!(body == pattern(3, LENGTH));
        }
        settle().await;
        assert!((60_000..70_000).contains(&sent.get()), "{}", sent.get());
        assert_eq!(client.open_streams(), 1);
        let (_, body) = of(reply(unread)).await.unwrap();
        assert!(body == pattern(3, LENGTH));
    });
}

/// A server that is far away may then send more at once.
#[test]
fn windows_grow_while_their_readers_keep_up() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(Http2ClientLimits::default()).await;
        let readers: Vec<_> = (0..6)
            .map(|_| {
                let mut stream = get(&client);
                spawn(async move {
                    reply_head(&mut stream).await.unwrap();
                    let mut body = Vec::new();
                    loop {
                        poll_fn(|cx| stream.poll_body(cx, &mut body, 1 << 20)).await.unwrap();
                        body.clear();
                    }
                })
            })
            .collect();
        server.turn().await;
        let streams = server.opened();
        let mut windows = Vec::new();
        for key in streams {
            let mut writer = server.endpoint.begin_fields(key).unwrap();
            writer.status(200);
            writer.finish(false);
            for _ in 0..100 {
                let count = server.endpoint.sendable(key).min(60_000);
                server.endpoint.send_data(key, &vec![0; count], false, usize::MAX);
                server.turn().await;
            }
            windows.push(server.endpoint.sendable(key));
        }
        let widest = windows.iter().filter(|window| **window > 512 * 1024).count();
        assert!(widest == 4 && windows[5] <= 65_536, "the sum is bounded: {windows:?}");
        readers.into_iter().for_each(|reader| reader.stop());
    });
}

/// A sender whose body the server does not read.
#[test]
fn a_body_that_is_not_taken_stalls_no_other() {
    run(async {
        let mut builder = Builder::new();
        builder.initial_connection_window_size(1 << 20);
        let (client, _) = connect(&builder, |request, to| async {
            if request.uri().path() == "/" {
                return echo(request, to).await;
            }
            // Holds the body without reading it.
            let mut to = respond(to);
            let _ = poll_fn(|cx| to.poll_reset(cx)).await;
            drop(request);
        });
        let mut held = client.open(&mut head("POST", "/held"), false).unwrap();
        spawn(async move {
            let _ = send(&mut held, &pattern(0, 500_000), true).await;
        });
        settle().await;
        let body = pattern(4, 300_000);
        for _ in 0..3 {
            assert!(of(exchange(post(&client), body.clone())).await.unwrap() == body);
        }
        assert_eq!(client.open_streams(), 1);
    });
}

/// Header tables and settings agree afterwards, and whatever the server sends is received.
#[test]
fn an_idle_connection_rests_between_requests() {
    run(async {
        let (client, control) = connect(&Builder::new(), echo);
        for round in 0..10 {
            for path in ["/a", "/b"] {
                let stream = client.open(&mut head("POST", path), false).unwrap();
                let body = pattern(round, 1000 * round);
                assert!(of(exchange(stream, body.clone())).await.unwrap() == body);
            }
            advance(1_000).await;
            client.rest();
            assert!(!client.is_resting(), "it was just used");
            advance(1_000).await;
            client.rest();
            assert!(client.is_resting());
            assert_eq!((client.free_streams(), client.is_over()), (128, false));
        }
        control.go_away();
        until(|| client.is_over()).await;
        until(|| control.is_over.get()).await;
    });
}

#[test]
fn max_concurrent_streams_of_1_is_kept() {
    run(async {
        let mut builder = Builder::new();
        builder.max_concurrent_streams(1);
        let (client, _) = connect(&builder, echo);
        assert_eq!(client.free_streams(), 100, "before the settings are known");
        until(|| client.free_streams() == 1).await;
        for _ in 0..3 {
            let stream = post(&client);
            assert_eq!(client.free_streams(), 0);
            assert!(client.open(&mut head("GET", "/"), true).is_none());
            let body = pattern(5, 10_000);
            assert!(of(exchange(stream, body.clone())).await.unwrap() == body);
            assert_eq!(client.free_streams(), 1);
        }
        assert!(!client.is_over());
    });
}

/// Those that were sent before the limit was known, and are above it, may be sent again.
#[test]
fn refused_streams_are_unprocessed() {
    run(async {
        let mut builder = Builder::new();
        builder.max_concurrent_streams(1);
        let (client, control) = connect(&builder, echo);
        let streams: Vec<_> = (0..5).map(|_| post(&client)).collect();
        let mut unprocessed = 0;
        for stream in streams {
            match of(exchange(stream, pattern(6, 100))).await {
                Ok(body) => assert!(body == pattern(6, 100)),
                Err(StreamFailure::Unprocessed) => unprocessed += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!((control.accepted.get(), unprocessed), (1, 4));
        assert_eq!(of(exchange(post(&client), vec![1])).await.unwrap(), [1]);
    });
}

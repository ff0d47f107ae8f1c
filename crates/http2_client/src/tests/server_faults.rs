//! Servers that reset streams, break the protocol or change their minds.

use net::testing::settle;
use wire::http2::frame::{DATA, END_STREAM, PADDED, RST_STREAM, SETTINGS, WINDOW_UPDATE};
use wire::http2::{Http2Code, Http2Config};

use super::scripted::{ScriptedServer, fields, frame};
use super::*;
use crate::Http2ClientLimits;

const OK: [(&str, &str); 1] = [(":status", "200")];

fn limits() -> Http2ClientLimits {
    Http2ClientLimits::default()
}

fn reset(stream: u32, code: Http2Code) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.0.to_be_bytes())
}

#[test]
fn malformed_replies_end_their_streams_alone() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let other = get(&client);
        let heads: [&[(&str, &str)]; 4] = [
            &[(":status", "2000")],
            &[(":status", "101")],
            &[(":status", "200"), ("connection", "close")],
            &[(":status", "200"), ("content-length", "-1")],
        ];
        for head in heads {
            let stream = get(&client);
            server.turn().await;
            let id = server.opened().last().unwrap().id;
            server.write(&fields(id, false, head));
            let failed = of(reply(stream)).await;
            assert!(matches!(failed, Err(StreamFailure::Malformed(_))), "{failed:?}");
            server.turn().await;
            assert_eq!(server.resets().last(), Some(&(id, Http2Code::PROTOCOL_ERROR)));
        }
        server.write(&fields(1, true, &OK));
        assert_eq!(of(reply(other)).await.unwrap().0, 200);
    });
}

/// A body that is shorter or longer than announced, and any body after HEAD.
#[test]
fn bodies_of_a_wrong_length_are_malformed() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let length = [(":status", "200"), ("content-length", "4")];
        for (method, body) in [("GET", "abc"), ("GET", "abcde"), ("HEAD", "abcd")] {
            let stream = client.open(&mut head(method, "/"), true).unwrap();
            server.turn().await;
            let id = server.opened().last().unwrap().id;
            server.write(&fields(id, false, &length));
            server.write(&frame(DATA, END_STREAM, id, body.as_bytes()));
            let failed = of(reply(stream)).await;
            assert!(matches!(failed, Err(StreamFailure::Malformed(_))), "{failed:?}");
        }
        let stream = client.open(&mut head("HEAD", "/"), true).unwrap();
        server.turn().await;
        server.write(&fields(server.opened().last().unwrap().id, true, &length));
        assert_eq!(of(reply(stream)).await.unwrap(), (200, Vec::new()));
    });
}

#[test]
fn too_large_heads_end_their_streams_alone() {
    run(async {
        let limits = Http2ClientLimits { head_bytes_max: 200, ..limits() };
        let (client, mut server) = ScriptedServer::connect(limits).await;
        let (large, small) = (get(&client), get(&client));
        server.turn().await;
        let text = "x".repeat(120);
        let two = [OK[0], ("a", &text), ("b", &text)];
        server.write(&fields(1, true, &two));
        server.write(&fields(3, true, &two[..2]));
        assert!(matches!(of(reply(large)).await, Err(StreamFailure::Malformed(_))));
        assert_eq!(of(reply(small)).await.unwrap().0, 200);
    });
}

#[test]
fn interim_replies_come_first_and_are_few() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let (mut stream, excessive) = (get(&client), get(&client));
        server.turn().await;
        let hints = [(":status", "103"), ("link", "</style.css>")];
        server.write(&fields(1, false, &hints));
        server.write(&fields(1, true, &OK));
        let heads = of(async move {
            [reply_head(&mut stream).await.unwrap(), reply_head(&mut stream).await.unwrap()]
        });
        let [interim, head] = heads.await;
        assert_eq!((interim.status, interim.is_interim, interim.end_stream), (103, true, false));
        assert_eq!(interim.fields.get(b"link"), Some(&b"</style.css>"[..]));
        assert_eq!((head.status, head.is_interim, head.end_stream), (200, false, true));
        (0..17).for_each(|_| server.write(&fields(3, false, &hints)));
        let failed = of(async move {
            let mut stream = excessive;
            loop {
                if let Err(failure) = reply_head(&mut stream).await {
                    return failure;
                }
            }
        });
        assert!(matches!(failed.await, StreamFailure::Malformed(_)));
    });
}

/// REFUSED_STREAM says that nothing was done.
#[test]
fn resets_say_why() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let streams = [get(&client), get(&client), get(&client)];
        server.turn().await;
        server.write(&reset(1, Http2Code::REFUSED_STREAM));
        server.write(&reset(3, Http2Code::CANCEL));
        // It is too late to refuse the stream.
        server.write(&fields(5, false, &OK));
        server.write(&reset(5, Http2Code::REFUSED_STREAM));
        let [refused, cancelled, late] = streams.map(reply);
        assert!(matches!(of(refused).await, Err(StreamFailure::Unprocessed)));
        let failure = of(cancelled).await.unwrap_err();
        assert!(matches!(failure, StreamFailure::Reset(Http2Code::CANCEL)), "{failure:?}");
        let failure = of(late).await.unwrap_err();
        assert!(matches!(failure, StreamFailure::Reset(Http2Code::REFUSED_STREAM)), "{failure:?}");
        assert_eq!((client.open_streams(), client.is_over()), (0, false));
    });
}

/// As gRPC servers do. The connection stays open, however often it happens.
#[test]
fn an_early_reply_stops_the_request_and_is_read() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        for round in 0..500 {
            let mut stream = post(&client);
            server.turn().await;
            let id = 2 * round + 1;
            server.write(&fields(id, false, &OK));
            server.write(&frame(DATA, END_STREAM, id, b"early"));
            server.write(&reset(id, Http2Code::NO_ERROR));
            let done = of(async move {
                reply_head(&mut stream).await.unwrap();
                let body = reply_body(&mut stream).await.unwrap();
                (body, poll_fn(|cx| stream.poll_send(cx, b"x", false)).await, stream.has_ended())
            });
            let (body, sent, has_ended) = done.await;
            assert_eq!((&body[..], has_ended), (&b"early"[..], true));
            assert!(matches!(sent, Err(StreamFailure::Reset(Http2Code::NO_ERROR))), "{sent:?}");
        }
        assert_eq!((client.open_streams(), client.is_over()), (0, false));
        server.turn().await;
        assert_eq!(server.resets(), []);
    });
}

#[test]
fn a_broken_protocol_ends_all_streams() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let streams = [get(&client), get(&client)];
        server.turn().await;
        server.write(&frame(WINDOW_UPDATE, 0, 0, &[0; 4]));
        for stream in streams {
            let failed = of(reply(stream)).await;
            let what = "sent WINDOW_UPDATE frame with incorrect window increment 0";
            assert!(matches!(failed, Err(StreamFailure::Protocol(text)) if text == what));
        }
        assert!(client.is_over());
        server.turn().await;
        assert!(server.has_goaway() && server.is_closed);
    });
}

#[test]
fn data_without_a_head_fails_its_stream() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let (stream, other) = (get(&client), get(&client));
        server.turn().await;
        server.write(&frame(DATA, 0, 1, b"x"));
        assert!(matches!(of(reply(stream)).await, Err(StreamFailure::Malformed(_))));
        server.write(&fields(3, true, &OK));
        assert_eq!(of(reply(other)).await.unwrap().0, 200);
    });
}

#[test]
fn a_server_that_does_not_begin_with_settings_ends_its_connection() {
    run(async {
        let (client, mut server) = ScriptedServer::silent(limits(), Http2Config::default());
        let stream = get(&client);
        server.write(&fields(1, true, &OK));
        let failed = of(reply(stream)).await;
        let expected = "sent a frame before SETTINGS";
        assert!(matches!(failed, Err(StreamFailure::Protocol(what)) if what == expected));
        assert!(client.is_over());
    });
}

/// INITIAL_WINDOW_SIZE becomes 0 after 100 bytes were sent: a debt, which later updates pay off.
#[test]
fn a_window_that_shrinks_is_kept() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let mut stream = post(&client);
        let mut stream = of(async move {
            send(&mut stream, &[0; 100], false).await.unwrap();
            stream
        })
        .await;
        server.turn().await;
        assert_eq!(server.data, 100);
        server.write(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
        settle().await;
        let task = spawn(async move {
            loop {
                send(&mut stream, &[0; 10], false).await.unwrap();
            }
        });
        server.turn().await;
        assert_eq!(server.data, 100);
        server.write(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 100]));
        server.turn().await;
        assert_eq!(server.data, 100, "the debt");
        server.write(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 25]));
        server.turn().await;
        assert_eq!(server.data, 125);
        task.stop();
    });
}

/// Padding uses up a window that no reader could open.
#[test]
fn padding_does_not_close_a_window_forever() {
    run(async {
        let (client, mut server) = ScriptedServer::connect(limits()).await;
        let stream = get(&client);
        server.turn().await;
        server.write(&fields(1, false, &OK));
        let padded = [&[255][..], b"x", &[0; 255]].concat();
        for _ in 0..1_000 {
            server.write(&frame(DATA, PADDED, 1, &padded));
            settle().await;
        }
        server.write(&frame(DATA, END_STREAM, 1, b""));
        assert_eq!(of(reply(stream)).await.unwrap().1.len(), 1_000);
    });
}

//! Exchanges under a driver that is not HTTP/1.

mod streams;

use net::LentFuture;
use std::future::poll_fn;
use std::task::{Context, Poll};

use crate::exchange::{
    Announced, Body, BodyError, BodyLog, BodyStream, Bytes, Chunk, CloseReason, Exchange, Fields,
    Flow,
};
use crate::testing::{TestSite, handle, site_with};
use streams::{Connection, Frame, Request, WINDOW};

const SITE: &str = "log_format seen '$request|$status|$body_bytes_sent|$host';
    server {
        access_log seen.log seen;
        server_name example.org;
        location / { return 200 $request_uri; }
        location /echo { client_max_body_size 64; }
        location /pieces { add_trailer x-end $arg_a; }
        location /sized { return 200 sized; add_trailer x-end \"$sent_http_content_length bytes\"; }
        location /hints { }
        location /large { }
    }";

const GET: Request =
    Request { method: "GET", target: "/", fields: &[], announced: Announced::None };
const POST: Request =
    Request { method: "POST", target: "/echo", fields: &[], announced: Announced::Unknown };

fn test(run: impl FnOnce(&TestSite, Connection)) {
    let site = site_with(SITE, |site| {
        handle(site, "/echo", |_| Flow::wait(|x| LentFuture::new(echo(x))));
        handle(site, "/pieces", pieces);
        handle(site, "/large", large);
        handle(site, "/hints", hints);
    });
    net::run(async {
        let connection = Connection::new(&site);
        run(&site, connection);
    })
    .unwrap();
}

/// Answers with the request's body, streamed.
async fn echo(x: &mut Exchange) -> Flow {
    let mut text = Vec::with_capacity(1024);
    loop {
        match poll_fn(|cx| x.poll_body(cx, &mut text)).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return error.into_flow(x),
        }
    }
    x.reply.status = 200;
    x.reply.set_bytes(Bytes::Owned(text));
    Flow::Done
}

/// A body in pieces, with trailers of its own.
struct Pieces(Vec<Chunk>);

impl BodyStream for Pieces {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        Poll::Ready(Ok(self.0.pop()))
    }
}

fn pieces(x: &mut Exchange) -> Flow {
    x.reply.status = 200;
    let mut trailers = Fields::default();
    trailers.append(b"x-sum", b"6");
    let piece = |text: &[u8]| Chunk::Bytes(Bytes::Owned(text.to_vec()));
    let last_first = vec![Chunk::Trailers(trailers), piece(b"def"), Chunk::Flush, piece(b"abc")];
    x.reply.body = Body::Stream(Box::new(Pieces(last_first)));
    Flow::Done
}

fn large(x: &mut Exchange) -> Flow {
    x.reply.status = 200;
    x.reply.set_bytes(Bytes::Owned(vec![b'x'; 5 * WINDOW / 2]));
    Flow::Done
}

fn hints(x: &mut Exchange) -> Flow {
    let mut fields = Fields::default();
    fields.append(b"Link", b"</a>");
    let downstream = x.downstream.clone().unwrap();
    assert!(downstream.takes_interim());
    downstream.send_interim(103, &fields);
    Flow::Status(204)
}

/// The frames of a reply with this text.
fn reply(number: u32, body: &str) -> Vec<(u32, Frame)> {
    let fields = vec!["content-type: text/plain".into(), format!("content-length: {}", body.len())];
    let frames = [Frame::Head(200, fields), Frame::Data(body.into()), Frame::End(Vec::new())];
    frames.map(|frame| (number, frame)).into()
}

#[test]
fn exchanges_with_bodies_in_both_directions_run_at_once() {
    test(|site, mut connection| {
        connection.ask(1, POST);
        connection.ask(3, POST);
        assert_eq!(connection.turn(), []);
        connection.send(3, "three", false);
        connection.ask(5, Request { target: "/five?a=b", ..GET });
        assert_eq!(connection.turn(), reply(5, "/five?a=b"));
        assert_eq!(connection.open(), [1, 3]);
        connection.send(1, "one", true);
        let echoed = |number, body: &str| {
            let mut frames = reply(number, body);
            frames[0].1 = Frame::Head(200, vec![format!("content-length: {}", body.len())]);
            frames
        };
        assert_eq!(connection.turn(), echoed(1, "one"));
        connection.send(3, " and more", true);
        assert_eq!(connection.turn(), echoed(3, "three and more"));
        let lines = "GET /five?a=b HTTP/2.0|200|18|example.org\n\
                     POST /echo HTTP/2.0|200|12|example.org\n\
                     POST /echo HTTP/2.0|200|23|example.org\n";
        assert_eq!(site.log("seen.log"), lines);
    });
}

#[test]
fn dropping_a_stream_cancels_only_its_exchange() {
    test(|site, mut connection| {
        connection.ask(1, POST);
        connection.ask(3, POST);
        connection.send(1, "lost", false);
        assert_eq!(connection.turn(), []);
        connection.cancel(1);
        assert_eq!(site.log("seen.log"), "POST /echo HTTP/2.0|000|0|example.org\n");
        connection.send(3, "kept", true);
        assert_eq!(connection.turn().len(), 3);
        assert!(connection.open().is_empty());
    });
}

#[test]
fn trailers_come_from_the_body_and_from_the_configuration() {
    test(|_, mut connection| {
        connection.ask(1, Request { target: "/pieces?a=b", ..GET });
        let expected = [
            Frame::Head(200, vec![]),
            Frame::Data(b"abc".into()),
            Frame::Data(b"def".into()),
            Frame::End(vec!["x-sum: 6".into(), "x-end: b".into()]),
        ];
        assert_eq!(connection.turn(), expected.map(|frame| (1, frame)));
        // A `Content-Length` does not prevent trailers.
        connection.ask(3, Request { target: "/sized", ..GET });
        let (_, last) = connection.turn().pop().unwrap();
        assert_eq!(last, Frame::End(vec!["x-end: 5 bytes".into()]));
    });
}

#[test]
fn a_stalled_stream_does_not_block_others() {
    test(|_, mut connection| {
        connection.ask(1, Request { target: "/large", ..GET });
        connection.ask(3, Request { target: "/large", ..GET });
        let sent = |frames: Vec<(u32, Frame)>, number| {
            let length = |(of, frame): &(u32, Frame)| match frame {
                Frame::Data(bytes) if *of == number => bytes.len(),
                _ => 0,
            };
            frames.iter().map(length).sum::<usize>()
        };
        let frames = connection.turn();
        assert_eq!((sent(frames.clone(), 1), sent(frames, 3)), (WINDOW, WINDOW));
        assert_eq!(connection.turn(), []);
        connection.grant(3, 2 * WINDOW);
        assert_eq!(sent(connection.turn(), 3), 3 * WINDOW / 2);
        assert_eq!(connection.open(), [1]);
    });
}

#[test]
fn interim_replies_are_statuses_and_fields() {
    test(|_, mut connection| {
        connection.ask(1, Request { target: "/hints", ..GET });
        let (_, first) = connection.turn().remove(0);
        assert_eq!(first, Frame::Interim(103, vec!["link: </a>".into()]));
    });
}

#[test]
fn an_invalid_request_does_not_affect_other_streams() {
    test(|_, mut connection| {
        let status = |frames: &[(u32, Frame)]| match &frames[0].1 {
            Frame::Head(status, _) => *status,
            other => panic!("{other:?}"),
        };
        connection.ask(1, POST);
        connection.ask(3, Request { fields: &[("a b", "")], ..GET });
        assert_eq!(status(&connection.turn()), 400);
        connection.ask(5, Request { target: "/../a", ..GET });
        assert_eq!(status(&connection.turn()), 400);
        connection.ask(7, Request { method: "HEAD", ..GET });
        let frames = connection.turn();
        assert_eq!((status(&frames), frames.len()), (200, 2));
        connection.ask(9, POST);
        connection.send(9, &"x".repeat(65), false);
        assert_eq!(status(&connection.turn()), 413);
        assert_eq!(connection.open(), [1]);
    });
}

#[test]
fn the_first_reason_to_close_is_kept() {
    let mut x = site_with(SITE, |_| {}).get("/").x;
    assert!(x.keeps_connection());
    x.close_after(CloseReason::Limit);
    x.close_after(CloseReason::Status);
    assert_eq!(x.close_reason(), Some(CloseReason::Limit));
}

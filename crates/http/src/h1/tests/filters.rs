//! A body filter that uses every ability of filters, over HTTP/1 and, in `h2::tests`, HTTP/2.

use std::task::{Context, Poll, ready};

use conf::VariableId;
use net::Timer;

use super::*;
use crate::exchange::{Body, BodyError, BodyFilter, BodyLog, BodyStream, Bytes, Chunk, PieceQueue};
use crate::site::Site;

pub(crate) const SITE: &str = "error_log e.log info; http2 on;
    server {
        set $shouted none;
        location / { add_trailer x-shouted $shouted; }
        location /in { return 200 \"in $arg_a, $uri\"; }
        location /gone { return 444; }
    }";

/// The body of a reply of `SITE`, and how long the filter delays its end.
pub(crate) const SHOUTED: &str = "ONE-in 1, /in-TWO|";
pub(crate) const HELD_MS: u64 = 200;

/// Converts letters to capitals, replaces each `#` by the reply of a subrequest, adds a mark at the
/// end after a delay, and sets a variable to the number of bytes.
struct Shout {
    shouted: VariableId,
    bytes: usize,
    timer: Timer,
    waits: bool,
}

impl BodyFilter for Shout {
    fn push(
        &mut self,
        x: &mut Exchange,
        piece: Option<Chunk>,
        out: &mut PieceQueue,
    ) -> Result<(), BodyError> {
        let Some(Chunk::Bytes(bytes)) = &piece else {
            self.waits = piece.is_none();
            self.timer.set(HELD_MS);
            out.pass(piece);
            return Ok(());
        };
        self.bytes += bytes.len();
        let count = self.bytes.to_string();
        session::evaluate::set(x, self.shouted, count.as_bytes()).unwrap();
        for (index, part) in bytes.as_ref().split(|byte| *byte == b'#').enumerate() {
            if index > 0 {
                let uri = x.request.args.clone();
                out.insert(x.subrequest(&uri, b"a=1").unwrap().into_body());
            }
            out.put(Chunk::Bytes(Bytes::Owned(part.to_ascii_uppercase())));
        }
        Ok(())
    }

    fn poll_rest(
        &mut self,
        _: &mut Exchange,
        cx: &mut Context<'_>,
        out: &mut PieceQueue,
    ) -> Poll<Result<(), BodyError>> {
        if self.waits {
            ready!(self.timer.poll(cx));
            self.waits = false;
            out.put(Chunk::Bytes(Bytes::Static(b"|")));
        }
        Poll::Ready(Ok(()))
    }
}

/// A body of several pieces, listed in reverse order.
struct Words(Vec<&'static str>);

impl BodyStream for Words {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let word = self.0.pop().map(|word| Chunk::Bytes(Bytes::Static(word.as_bytes())));
        Poll::Ready(Ok(word))
    }
}

/// Answers `/` with words that pass through the filter. The arguments are the path of the
/// subrequest.
pub(crate) fn shout(site: &mut Site) {
    let named = |variable: &crate::variables::Variable| *variable.name == *b"shouted";
    let shouted = VariableId(site.variables.iter().position(named).unwrap() as u32);
    handle(site, "/", move |x| {
        x.reply.status = 200;
        x.reply.expect_trailers = true;
        x.reply.body = Body::Stream(Box::new(Words(vec!["-two", "one-#"])));
        x.reply.filter_body(Shout { shouted, bytes: 0, timer: Timer::new(), waits: false });
        Flow::Done
    });
}

#[test]
fn a_filter_sets_variables_waits_and_inserts_subrequests() {
    let server = Server::with(SITE, shout, |_| {});
    let mut client = server.connect();
    client.head("GET /?/in HTTP/1.1\nHost: h\nConnection: close\n");
    server.advance(HELD_MS);
    let reply = client.rest();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("Transfer-Encoding: chunked"), "{head}");
    assert_eq!(dechunked(body), (SHOUTED.to_owned(), "x-shouted: 9".to_owned()));
}

#[test]
fn a_subrequest_without_a_reply_truncates_the_body() {
    let server = Server::with(SITE, shout, |_| {});
    let mut client = server.connect();
    client.head("GET /?/gone HTTP/1.1\nHost: h\n");
    let reply = client.rest();
    assert!(reply.ends_with("4\r\nONE-\r\n"), "{reply}");
}

/// Decodes a chunked body. Returns it with its trailer.
fn dechunked(mut text: &str) -> (String, String) {
    let mut body = String::new();
    loop {
        let (size, rest) = text.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, rest.trim_end().to_owned());
        }
        body.push_str(&rest[..size]);
        text = &rest[size + 2..];
    }
}

//! Bodies of requests: read into memory or a file, streamed piece by piece, or discarded.

use net::LentFuture;
use std::future::poll_fn;
use std::os::unix::fs::FileExt;

use super::*;
use crate::exchange::{Bytes, StoredContent};

const ROOMS: &str = "
    client_body_temp_path temp 1 2;
    client_body_timeout 100ms;
    server {
        location / { return 200 plain; }
        location /read { client_body_buffer_size 16; client_max_body_size 64; }
        location /file { client_body_in_file_only clean; }
        location /stream { client_max_body_size 64; }
        location /missing { return 404; }
        location /fallback { error_page 404 = /read; return 404; }
        location /early { return 200 $request_body; }
        client_body_early_read $arg_early;
    }";

fn server() -> Server {
    Server::with(
        ROOMS,
        |site| {
            for name in ["/read", "/file"] {
                handle(site, name, |_| wait(|x| LentFuture::new(read(x))));
            }
            handle(site, "/stream", |_| wait(|x| LentFuture::new(stream(x))));
        },
        |_| {},
    )
}

fn answer(x: &mut Exchange, text: String) -> Flow {
    x.reply.status = 200;
    x.reply.set_bytes(Bytes::Owned(text.into_bytes()));
    Flow::Done
}

/// Reads the whole body. Answers with its place, its bytes and `$request_length`.
async fn read(x: &mut Exchange) -> Flow {
    if let Err(flow) = x.read_body().await {
        return flow;
    }
    let text = match x.request.body.kept().map(|kept| &kept.content) {
        None => "no body".to_owned(),
        Some(StoredContent::Memory(bytes)) => format!("memory {}", String::from_utf8_lossy(bytes)),
        Some(StoredContent::File(file)) => {
            let slice = file.slice();
            let mut bytes = vec![0; slice.len() as usize];
            slice.file.read_exact_at(&mut bytes, 0).unwrap();
            let named = if file.path().exists() { "named " } else { "" };
            format!("{named}file {}", String::from_utf8_lossy(&bytes))
        }
    };
    let length = x.request_length();
    answer(x, format!("{text} {length}"))
}

/// Reads the body in pieces of up to three bytes.
async fn stream(x: &mut Exchange) -> Flow {
    let mut text = Vec::new();
    loop {
        let mut piece = Vec::with_capacity(3);
        match poll_fn(|cx| x.poll_body(cx, &mut piece)).await {
            Ok(0) => break,
            Ok(_) => text.extend_from_slice(&piece),
            Err(error) => return error.into_flow(x),
        }
    }
    answer(x, String::from_utf8_lossy(&text).into_owned())
}

fn got(body: &str) -> String {
    let fields = format!("Content-Length: {}\nConnection: keep-alive\n", body.len());
    reply("200 OK", &fields, body)
}

fn post(path: &str, fields: &str, body: &str) -> String {
    let head = format!("POST {path} HTTP/1.1\nHost: a\n{fields}\n").replace('\n', "\r\n");
    head + body
}

fn with_length(path: &str, body: &str) -> String {
    post(path, &format!("Content-Length: {}\n", body.len()), body)
}

fn chunked(path: &str, body: &str) -> String {
    let chunks: String = body
        .as_bytes()
        .chunks(7)
        .map(|chunk| format!("{:x};x=y\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)))
        .collect();
    post(path, "Transfer-Encoding: chunked\n", &format!("{chunks}0\r\nTrailer: x\r\n\r\n"))
}

#[test]
fn bodies_are_read_into_memory_or_a_file() {
    let server = server();
    let mut client = server.connect();
    let table = [
        (post("/read", "", ""), "no body"),
        (with_length("/read", ""), "memory "),
        (with_length("/read", "abc"), "memory abc"),
        (with_length("/read", "0123456789abcdefghi"), "memory 0123456789abcdefghi"),
        (with_length("/read", "0123456789abcdefghij"), "file 0123456789abcdefghij"),
        (with_length("/file", "a"), "named file a"),
        (with_length("/file", ""), "named file "),
        (chunked("/read", "abc"), "memory abc"),
        (chunked("/read", "0123456789abcdefghij"), "file 0123456789abcdefghij"),
    ];
    let table = table.map(|(request, text)| {
        let expected = got(&format!("{text} {}", request.len()));
        (request, expected)
    });
    for (request, expected) in &table {
        client.send(request);
        client.expect(expected);
    }
    // All requests at once, and then byte by byte.
    client.send(table.iter().map(|(request, _)| &request[..]).collect::<String>());
    for (_, expected) in &table {
        client.expect(expected);
    }
    for byte in table[7].0.bytes().chain(table[4].0.bytes()) {
        client.send([byte]);
    }
    client.expect(&table[7].1);
    client.expect(&table[4].1);
}

#[test]
fn bodies_are_streamed_in_pieces() {
    let server = server();
    let mut client = server.connect();
    client.send(with_length("/stream", "0123456789") + &chunked("/stream", "0123456789abc"));
    client.expect(&got("0123456789"));
    client.expect(&got("0123456789abc"));
    client.send(post("/stream", "Content-Length: 8\n", "0123"));
    client.expect_nothing();
    client.send("4567");
    client.expect(&got("01234567"));
}

#[test]
fn client_body_early_read_reads_the_body_before_the_first_phase() {
    let server = server();
    let mut client = server.connect();
    client.send(post("/early?early=1", "Content-Length: 8\n", "0123"));
    client.expect_nothing();
    client.send("4567");
    client.expect(&text("200 OK", "keep-alive", "01234567"));
    client.send(post("/early", "Content-Length: 8\n", "0123"));
    client.expect(&text("200 OK", "keep-alive", ""));
}

#[test]
fn a_client_that_expects_100_continue_receives_it() {
    let server = server();
    let mut client = server.connect();
    let fields = "Expect: 100-Continue\nContent-Length: 3\n";
    for path in ["/read", "/stream", "/fallback"] {
        client.send(post(path, fields, ""));
        client.expect("HTTP/1.1 100 Continue\r\n\r\n");
        client.send("abc");
        let length = post(path, fields, "abc").len();
        match path {
            "/stream" => client.expect(&got("abc")),
            _ => client.expect(&got(&format!("memory abc {length}"))),
        }
    }
    // nginx sends it even if the body will not be read, but not before an error page.
    client.send(post("/", fields, ""));
    client.expect("HTTP/1.1 100 Continue\r\n\r\n");
    client.expect(&text("200 OK", "keep-alive", "plain"));
    client.send("abc");
    client.send(post("/missing", fields, ""));
    client.expect(&page("404 Not Found").replace("close", "keep-alive"));
    client.send("abc");
    client.send(post("/stream", "Expect: something\nContent-Length: 3\n", "abc"));
    client.expect(&got("abc"));
}

#[test]
fn a_body_over_the_limit_is_refused() {
    let server = server();
    let long = "x".repeat(65);
    for request in [with_length("/read", &long), chunked("/read", &long), chunked("/stream", &long)]
    {
        assert_eq!(server.ask(&request), page("413 Request Entity Too Large"), "{request}");
    }
    // The size line of a chunk is enough.
    let mut client = server.connect();
    client.send(post("/stream", "Transfer-Encoding: chunked\n", "5\r\nabcde\r\n3c\r\n"));
    client.expect(&page("413 Request Entity Too Large"));
    client.end();
    client.expect_end();
}

#[test]
fn an_error_page_for_a_large_body_is_not_refused_itself() {
    let server = Server::start(
        "error_log e.log; client_max_body_size 4;
         server {
             error_page 413 /page;
             location / { return 200 ok; }
             location = /page { return 299 page; }
         }",
    );
    for body in ["abcdef", ""] {
        let mut client = server.connect();
        client.send(post("/", "Content-Length: 6\n", body));
        client.expect("HTTP/1.1 413 Request Entity Too Large\r\n");
        client.end();
        assert!(client.rest().ends_with("\r\n\r\npage"), "{body:?}");
    }
    let log = server.log();
    let said = "client intended to send too large body: 6 bytes, client: ";
    assert!(log.len() == 2 && log.iter().all(|line| line.starts_with(said)), "{log:?}");
}

#[test]
fn an_invalid_chunked_body_is_refused() {
    let server = server();
    for path in ["/read", "/stream", "/"] {
        let request = post(path, "Transfer-Encoding: chunked\n", "4\r\nSEE-THIS\r\n0\r\n\r\n");
        assert_eq!(server.ask(&request), page("400 Bad Request"), "{path}");
    }
    // An invalid body does not change the status of an error.
    let request = post("/missing", "Transfer-Encoding: chunked\n", "4\r\nSEE-THIS\r\n0\r\n\r\n");
    assert_eq!(server.ask(&request), page("404 Not Found"));
}

#[test]
fn an_incomplete_body_times_out() {
    let server = server();
    for path in ["/read", "/stream"] {
        let mut client = server.connect();
        client.send(post(path, "Content-Length: 5\n", "abc"));
        server.advance(100);
        client.expect_end();
        assert_eq!(server.logged(), (408, 0), "{path}");
        let mut client = server.connect();
        client.send(post(path, "Content-Length: 5\n", "abc"));
        client.end();
        client.expect_end();
        assert_eq!(server.logged(), (400, 0), "{path}");
    }
}

#[test]
fn an_unread_body_is_discarded() {
    let server = server();
    let mut client = server.connect();
    let long = "x".repeat(200_000);
    for request in [with_length("/", "abc"), chunked("/", "abc"), chunked("/", &long)] {
        client.send(request);
        client.expect(&text("200 OK", "keep-alive", "plain"));
    }
    client.send(post("/", "Content-Length: 5\n", "abc"));
    client.expect(&text("200 OK", "keep-alive", "plain"));
    client.send("de".to_owned() + &post("/read", "", ""));
    client.expect(&got("no body 32"));
}

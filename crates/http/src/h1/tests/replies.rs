//! Replies: the order of their fields, the framing of their bodies, and `limit_rate`.

use std::task::{Context, Poll};

use super::*;
use crate::exchange::{Body, BodyError, BodyLog, BodyStream, Bytes, Chunk, Fields};

/// One result of a scripted body stream.
#[derive(Clone)]
enum Give {
    Text(&'static str),
    Long(usize),
    Flush,
    /// Pending, and woken immediately.
    Later,
    /// Pending for ever.
    Never,
    Trailer,
    Error,
}

/// A body that follows a script.
struct Script(std::vec::IntoIter<Give>);

impl BodyStream for Script {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        _: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        if let Some(Give::Never) = self.0.as_slice().first() {
            return Poll::Pending;
        }
        Poll::Ready(Ok(Some(match self.0.next() {
            None => return Poll::Ready(Ok(None)),
            Some(Give::Text(text)) => Chunk::Bytes(Bytes::Static(text.as_bytes())),
            Some(Give::Long(length)) => Chunk::Bytes(Bytes::Owned(vec![b'x'; length])),
            Some(Give::Flush) => Chunk::Flush,
            Some(Give::Later) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Give::Never) => unreachable!("seen above"),
            Some(Give::Trailer) => {
                let mut fields = Fields::default();
                fields.append(b"Sum", b"1");
                Chunk::Trailers(fields)
            }
            Some(Give::Error) => return Poll::Ready(Err(BodyError::Truncated)),
        })))
    }
}

/// A server whose `/` answers with a script, and with a `Content-Length` if a length is given.
fn server(script: &'static [Give], length: Option<u64>) -> Server {
    let answer = move |x: &mut Exchange| {
        x.reply.status = 200;
        x.reply.content_length = length;
        let script: Vec<Give> = script.into();
        x.reply.body = Body::Stream(Box::new(Script(script.into_iter())));
        Flow::Done
    };
    Server::with("server { location / { } }", move |site| handle(site, "/", answer), |_| {})
}

const GET: &str = "GET / HTTP/1.1\nHost: a\n";
const CHUNKED: &str = "Transfer-Encoding: chunked\nConnection: keep-alive\n";

#[test]
fn a_body_of_unknown_length_is_chunked_or_ended_by_close() {
    use Give::*;
    let table: [(&'static [Give], &str); 6] = [
        (&[], "0\r\n\r\n"),
        (&[Text("")], "0\r\n\r\n"),
        (&[Text("one"), Later, Flush, Text("two")], "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"),
        (&[Text("0123456789abcdef")], "10\r\n0123456789abcdef\r\n0\r\n\r\n"),
        (&[Text("x"), Trailer], "1\r\nx\r\n0\r\nSum: 1\r\n\r\n"),
        (&[Flush, Text("x"), Flush, Flush], "1\r\nx\r\n0\r\n\r\n"),
    ];
    for (script, body) in table {
        let server = server(script, None);
        let mut client = server.connect();
        client.head(GET);
        client.expect(&reply("200 OK", CHUNKED, body));
        client.head("HEAD / HTTP/1.1\nHost: a\n");
        client.expect(&reply("200 OK", "Connection: keep-alive\n", ""));
    }
    let server = server(&[Text("one"), Text("two"), Trailer], None);
    let mut client = server.connect();
    client.head("GET / HTTP/1.0\nConnection: keep-alive\n");
    assert_eq!(client.rest(), reply("200 OK", "Connection: close\n", "onetwo"));
    assert_eq!(server.ask("GET /\r\n"), "onetwo");
}

#[test]
fn pieces_of_all_sizes_are_sent() {
    const SIZES: [usize; 12] = [1, 2047, 2048, 2049, 4096, 9000, 16383, 100, 70000, 5, 300000, 3];
    let script: &'static [Give] = Box::leak(Box::new(SIZES.map(Give::Long)));
    let server = server(script, None);
    let chunks: String =
        SIZES.iter().map(|size| format!("{size:x}\r\n{}\r\n", "x".repeat(*size))).collect();
    let mut client = server.connect();
    for _ in 0..3 {
        client.head(GET);
        client.expect(&reply("200 OK", CHUNKED, &format!("{chunks}0\r\n\r\n")));
    }
}

#[test]
fn a_body_of_known_length_is_checked() {
    use Give::*;
    let head = "Content-Length: 6\nConnection: keep-alive\n";
    let server_ok = server(&[Text("one"), Later, Text("two"), Trailer], Some(6));
    let mut client = server_ok.connect();
    for _ in 0..2 {
        client.head(GET);
        client.expect(&reply("200 OK", head, "onetwo"));
    }
    // The connection is closed after a truncated body, so that the client notices.
    for script in [&[Text("one"), Error][..], &[Text("one")], &[Text("one"), Flush, Later, Error]] {
        let server = server(script, Some(6));
        let mut client = server.connect();
        client.head(GET);
        assert_eq!(client.rest(), reply("200 OK", head, "one"));
    }
    let server = server(&[Text("one"), Error], None);
    let mut client = server.connect();
    client.head(GET);
    assert_eq!(client.rest(), reply("200 OK", CHUNKED, "3\r\none\r\n"));
}

#[test]
fn small_pieces_are_held_back_unless_flushed() {
    use Give::*;
    let quiet = server(&[Text("one"), Never], None);
    let mut client = quiet.connect();
    client.head(GET);
    client.expect_nothing();
    drop(client);
    assert_eq!(quiet.logged(), (499, 0));
    let flushed = server(&[Text("one"), Flush, Text("two"), Never], None);
    let mut client = flushed.connect();
    client.head(GET);
    client.expect(&reply("200 OK", CHUNKED, "3\r\none\r\n"));
    client.expect_nothing();
    drop(client);
    let (status, sent) = flushed.logged();
    assert_eq!((status, sent > 0), (200, true));
    let enough = server(&[Long(1460), Never], None);
    let mut client = enough.connect();
    client.head(GET);
    client.expect(&reply("200 OK", CHUNKED, &format!("5b4\r\n{}\r\n", "x".repeat(1460))));
}

/// The scheme of URLs to the server.
fn scheme() -> &'static str {
    if transport(RelaySide::Server).is_some() { "https:" } else { "http:" }
}

#[test]
fn fields_are_in_nginx_order() {
    let every = |x: &mut Exchange| {
        x.reply.status = 200;
        x.reply.set_content_type(b"text/css");
        x.reply.charset.extend_from_slice(b"utf-8");
        x.reply.last_modified = Some(0);
        x.reply.fields.append(b"X-One", b"1");
        x.reply.set_bytes(Bytes::Static(b"x"));
        Flow::Done
    };
    let server = Server::with(
        "server { listen 8080; server_name own.example; server_tokens off;
            location / { keepalive_timeout 75s 9; }
            location /empty { return 204; }
            location /old { return 304; }
            location /odd { return 299 odd; }
            location /to { return 301 /there; }
            location /far { return 302 http://far.example/; }
            location /relative { absolute_redirect off; return 303 /there; }
            location /own { server_name_in_redirect on; port_in_redirect off; return 307 /there; }
        }",
        move |site| handle(site, "/", every),
        |_| {},
    );
    let mut client = server.connect();
    let mut ask = |path: &str, status: &str, fields: &str, body: &str| {
        client.head(&format!("GET {path} HTTP/1.1\nHost: A.example\n"));
        let name = crate::identity::identity().name;
        let expected = reply(status, fields, body).replace(crate::identity::token(), name);
        client.expect(&expected);
    };
    ask(
        "/",
        "200 OK",
        "Content-Type: text/css; charset=utf-8\nContent-Length: 1\n\
         Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\nConnection: keep-alive\n\
         Keep-Alive: timeout=9\nX-One: 1\n",
        "x",
    );
    ask("/empty", "204 No Content", "Connection: keep-alive\n", "");
    ask(
        "/odd",
        "299 ",
        "Content-Type: text/plain\nContent-Length: 3\nConnection: keep-alive\n",
        "odd",
    );
    for (path, status, before, after) in [
        ("/to", "301 Moved Permanently", "Location: http://a.example:8080/there\n", ""),
        ("/far", "302 Moved Temporarily", "", "Location: http://far.example/\n"),
        ("/relative", "303 See Other", "", "Location: /there\n"),
        ("/own", "307 Temporary Redirect", "Location: http://own.example/there\n", ""),
    ] {
        let title = status.replace("Moved Temporarily", "Found");
        let name = crate::identity::identity().name;
        let body = format!(
            "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n\
             <center><h1>{title}</h1></center>\r\n<hr><center>{name}</center>\r\n\
             </body>\r\n</html>\r\n"
        );
        let length = body.len();
        let before = before.replace("http:", scheme());
        let fields = format!(
            "Content-Type: text/html\nContent-Length: {length}\n{before}\
             Connection: keep-alive\n{after}"
        );
        ask(path, status, &fields, &body);
    }
}

#[test]
fn redirects_have_the_server_port() {
    for (listen, port, redirect) in [
        ("listen 8080 server_port=80;", "80", "a.example"),
        ("listen 80 server_port=8080;", "8080", "a.example:8080"),
        ("listen unix:/s server_port=81;", "81", "a.example:81"),
    ] {
        let text = format!(
            "server {{ {listen} location / {{ return 200 $server_port; }}
             location /to {{ return 301 /there; }} }}"
        );
        let server = Server::start(text);
        let answer = |path| server.ask(&format!("GET {path} HTTP/1.0\r\nHost: a.example\r\n\r\n"));
        let of_variable = answer("/");
        assert!(of_variable.ends_with(&format!("\r\n\r\n{port}")), "{of_variable}");
        // Over TLS, 80 is not the default port, so the URL contains it.
        let location = format!("Location: http://{redirect}/there\r\n");
        let of_redirect = answer("/to");
        assert!(scheme() != "http" || of_redirect.contains(&location), "{of_redirect}");
    }
}

#[test]
fn files_are_sent_by_sendfile_or_read() {
    let content: String = (0..100_000).map(|number| format!("{number:07}")).collect();
    let wanted = content.clone();
    let server = Server::with(
        "server {
            location / { default_type x; }
            location /sendfile { sendfile on; tcp_nopush on; sendfile_max_chunk 50k; }
            location /read { output_buffers 1 10000; read_ahead 1; }
            location /limited { sendfile on; limit_rate 100m; }
        }",
        |site| {
            for name in ["/sendfile", "/read", "/limited"] {
                handle(site, name, |x| {
                    let path = std::fs::canonicalize(x.location_file()).unwrap();
                    let file = std::rc::Rc::new(std::fs::File::open(path).unwrap());
                    x.reply.status = 200;
                    x.reply.content_length = Some(600_000);
                    let start = if x.request.uri.ends_with(b"cut") { 600_000 } else { 50_000 };
                    let end = start + 600_000;
                    x.reply.body = Body::File(crate::exchange::FileSlice { file, start, end });
                    Flow::Done
                });
            }
        },
        move |site| {
            site.file("big", &content);
        },
    );
    server.start_clock();
    for path in ["/sendfile/cut", "/read/cut"] {
        let mut client = server.connect();
        client.head(&format!("GET {path} HTTP/1.1\nHost: a\n"));
        let fields = "Content-Length: 600000\nConnection: keep-alive\n";
        assert_eq!(client.rest(), reply("200 OK", fields, &wanted[600_000..]), "{path}");
    }
    for path in ["/sendfile", "/read", "/limited"] {
        let mut client = server.connect();
        for _ in 0..2 {
            client.head(&format!("GET {path} HTTP/1.1\nHost: a\n"));
            let fields = "Content-Length: 600000\nConnection: keep-alive\n";
            client.expect(&reply("200 OK", fields, &wanted[50_000..650_000]));
        }
    }
}

#[test]
fn limit_rate_delays_a_reply() {
    let body = "x".repeat(15_000);
    let server = Server::with(
        "server { location / { limit_rate 10k; limit_rate_after 100; } }",
        |site| {
            handle(site, "/", |x| {
                x.reply.status = 200;
                x.reply.set_bytes(Bytes::Owned(vec![b'x'; 15_000]));
                Flow::Done
            });
        },
        |_| {},
    );
    let mut client = server.connect();
    client.head(GET);
    let expected = reply("200 OK", "Content-Length: 15000\nConnection: keep-alive\n", &body);
    client.expect(&expected[..4000]);
    server.advance(100);
    assert!(server.logged.try_recv().is_err(), "the reply was sent too fast");
    server.advance(2000);
    client.expect(&expected[4000..]);
}

impl Exchange {
    /// The file that the test has created.
    fn location_file(&mut self) -> std::path::PathBuf {
        let mut path = Vec::new();
        self.append_document_root(&mut path);
        path.extend_from_slice(b"/big");
        conf::bytes_path(&path).to_owned()
    }
}

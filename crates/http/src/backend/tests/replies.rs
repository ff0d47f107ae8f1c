//! Replies of backends as clients get them.

use crate::backend::testing::{TestBackend, proxy, values};
use crate::h1::tests::Server;

fn ask(server: &Server, fields: &str) -> String {
    let head = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n";
    server.ask(&format!("{head}{}\r\n", fields.replace('\n', "\r\n")))
}

fn status(reply: &str) -> &str {
    let line = reply.split("\r\n").next().unwrap_or_default();
    line.strip_prefix("HTTP/1.1 ").unwrap_or(line)
}

fn body(reply: &str) -> &str {
    reply.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[test]
fn ranges_are_left_to_the_backend_unless_forced() {
    let reply = "HTTP/1.1 200 Fine\nETag: \"e\"\nAccept-Ranges: x\n\
                 Last-Modified: Mon, 28 Sep 1970 06:00:00 GMT\nContent-Length: 6\n\nabcdef";
    let backend = TestBackend::replying(reply);
    let range = "Range: bytes=1-2\n";
    let got = ask(&proxy(&backend, ""), range);
    assert_eq!((status(&got), body(&got)), ("200 Fine", "abcdef"));
    assert_eq!(values(&got, "Accept-Ranges"), ["x"]);
    let forced = proxy(&backend, "proxy_force_ranges on;");
    let got = ask(&forced, range);
    assert_eq!((status(&got), body(&got)), ("206 Partial Content", "bc"));
    assert_eq!(values(&got, "Content-Range"), ["bytes 1-2/6"]);
    assert!(values(&got, "Accept-Ranges").is_empty());
    // The backend's reply is read once, so several ranges yield the whole reply.
    assert_eq!(body(&ask(&forced, "Range: bytes=1-2,4-5\n")), "abcdef");
    assert_eq!(body(&ask(&forced, "Range: bytes=1-2\nIf-Range: \"e\"\n")), "bc");
    assert_eq!(body(&ask(&forced, "Range: bytes=1-2\nIf-Range: \"f\"\n")), "abcdef");
    let got = ask(&forced, "Range: bytes=9-\n");
    assert_eq!(status(&got), "416 Requested Range Not Satisfiable");
}

#[test]
fn conditions_are_left_to_the_backend() {
    let reply = "HTTP/1.1 200 OK\nETag: \"e\"\nContent-Length: 1\n\na";
    let backend = TestBackend::replying(reply);
    let server = proxy(&backend, "");
    for fields in ["If-None-Match: \"e\"\n", "If-Match: \"f\"\n"] {
        assert_eq!(status(&ask(&server, fields)), "200 OK");
        assert!(backend.asked().contains(fields));
    }
}

#[test]
fn another_server_is_tried_until_the_head_of_a_reply_is_complete() {
    let is_retried = |method: &str, lines: &str, begun: &str, silent: bool| {
        let begun = begun.to_owned();
        let dying = TestBackend::playing(move |mut peer| {
            peer.request();
            peer.send_raw(&begun);
            if silent {
                peer.wait_for_end();
            }
        });
        let other = TestBackend::replying("HTTP/1.1 200 OK\nContent-Length: 1\n\na");
        // The other server, a thread, has this time to answer too.
        let patience = if silent { "1s" } else { "60s" };
        let server = Server::start(format!(
            "proxy_read_timeout {patience}; upstream u {{ server {}; server {} backup; }} \
             server {{ location / {{ proxy_pass http://u; {lines} }} }}",
            dying.address(),
            other.address()
        ));
        server.start_clock();
        let reply = server.ask(&format!("{method} / HTTP/1.0\r\nContent-Length: 0\r\n\r\n"));
        match status(&reply) {
            "200 OK" => body(&reply) == "a",
            "502 Bad Gateway" | "504 Gateway Time-out" => false,
            other => panic!("{other}"),
        }
    };
    let half = "HTTP/1.1 200 OK\r\nX: y\r\n";
    for begun in ["", "H", half, "HTTP/1.1 102 P\r\n\r\nHTTP/1.1 200 OK\r\n"] {
        assert!(is_retried("GET", "", begun, false), "{begun:?}");
        assert!(is_retried("GET", "", begun, true), "{begun:?}");
    }
    assert!(!is_retried("POST", "", half, false));
    assert!(is_retried("POST", "proxy_next_upstream error non_idempotent;", half, false));
    assert!(!is_retried("GET", "proxy_next_upstream off;", half, false));
    assert!(!is_retried("GET", "proxy_next_upstream timeout;", half, false));
    assert!(!is_retried("GET", "proxy_next_upstream error;", half, true));
    // A reply is final once its head is complete, even if its body fails.
    assert!(!is_retried("GET", "", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", false));
}

#[test]
fn endless_interim_replies_are_an_error() {
    for (count, expected) in [(1, "200 OK"), (64, "200 OK"), (65, "502 Bad Gateway")] {
        for fields in ["", "X: y\r\n"] {
            let interim = format!("HTTP/1.1 102 Processing\r\n{fields}\r\n").repeat(count);
            let backend = TestBackend::playing(move |mut peer| {
                while peer.request().is_some() {
                    peer.send_raw(&interim);
                    peer.send("HTTP/1.1 200 OK\nContent-Length: 1\n\na");
                }
            });
            let server = proxy(&backend, "");
            assert_eq!(status(&ask(&server, "")), expected, "{count}");
            let said = "upstream sent more than 64 interim responses while reading response header \
                        from upstream";
            assert_eq!(server.log().iter().any(|line| line.starts_with(said)), count > 64);
        }
    }
}

#[test]
fn too_many_interim_replies_are_an_invalid_header() {
    let endless = TestBackend::playing(|mut peer| {
        peer.request();
        peer.send_raw("HTTP/1.1 102 P\r\n\r\n".repeat(100_000));
        peer.wait_for_end();
    });
    let other = TestBackend::replying("HTTP/1.1 200 OK\nContent-Length: 1\n\na");
    for (lines, expected) in
        [("", "502 Bad Gateway"), ("proxy_next_upstream invalid_header;", "200 OK")]
    {
        let server = Server::start(format!(
            "upstream u {{ server {}; server {} backup; }} \
             server {{ location / {{ proxy_pass http://u; {lines} }} }}",
            endless.address(),
            other.address()
        ));
        assert_eq!(status(&ask(&server, "")), expected, "{lines}");
    }
}

#[test]
fn interim_replies_do_not_extend_the_time_for_the_final_one() {
    let backend = TestBackend::playing(|mut peer| {
        peer.request();
        for _ in 0..50 {
            peer.send_raw("HTTP/1.1 102 P\r\n\r\n");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        peer.send("HTTP/1.1 200 OK\nContent-Length: 1\n\na");
    });
    let server = proxy(&backend, "proxy_read_timeout 500ms;");
    server.start_clock();
    assert_eq!(status(&ask(&server, "")), "504 Gateway Time-out");
}

#[test]
fn replies_without_bodies_keep_their_length() {
    for (method, reply, length) in [
        ("HEAD", "HTTP/1.1 200 OK\nContent-Length: 7\n\n", "7"),
        ("HEAD", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", ""),
        ("GET", "HTTP/1.1 304 Not Modified\nContent-Length: 7\n\n", "7"),
        ("GET", "HTTP/1.1 204 No Content\nContent-Length: 0\n\n", "0"),
    ] {
        let backend = TestBackend::replying(reply);
        let server = proxy(&backend, "");
        let got = server.ask(&format!("{method} / HTTP/1.0\r\n\r\n"));
        assert_eq!(values(&got, "Content-Length").join("|"), length, "{reply}");
        assert_eq!((status(&got), body(&got)), (&reply[9..reply.find('\n').unwrap()], ""));
    }
}

#[test]
fn intercepted_errors_are_answered_by_error_page() {
    let backend = TestBackend::answering(|request| {
        let status = request.split('/').nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let field = "WWW-Authenticate: Basic\nwww-authenticate: Other\nX: y\n";
        format!("HTTP/1.1 {status} Whatever\n{field}Content-Length: 2\n\nhi")
    });
    let address = backend.address();
    let server = Server::start(format!(
        "server {{
             proxy_intercept_errors on; error_page 401 404 /page; error_page 500 =200 /page;
             location / {{ proxy_pass http://{address}; }}
             location = /page {{ internal; return 200 page; }}
         }}"
    ));
    for (sent, got, text) in [
        (200, "200 Whatever", "hi"),
        (403, "403 Whatever", "hi"),
        (404, "404 Not Found", "page"),
        (500, "200 OK", "page"),
        (401, "401 Unauthorized", "page"),
    ] {
        let reply = server.ask(&format!("GET /{sent} HTTP/1.0\r\n\r\n"));
        assert_eq!((status(&reply), body(&reply)), (got, text), "{sent}");
        let challenges = usize::from(sent == 401 || text == "hi") * 2;
        assert_eq!(values(&reply, "WWW-Authenticate").len(), challenges, "{sent}");
    }
}

#[test]
fn x_accel_redirect_makes_another_resource_answer() {
    let backend = TestBackend::replying(
        "HTTP/1.1 404 Not Found\nX-Accel-Redirect: /file%20x?a=b\nContent-Type: text/x; charset=u\n\
         Set-Cookie: a=b; path=/in\nCache-Control: no\nExpires: 0\nContent-Disposition: c\n\
         Accept-Ranges: none\nX: y\nContent-Length: 2\n\nhi",
    );
    let address = backend.address();
    let server = Server::with(
        format!(
            "server {{
                 location / {{ proxy_pass http://{address}; proxy_cookie_path /in /out; }}
                 location /off {{ proxy_pass http://{address}; proxy_pass_header X-Accel-Redirect;
                     proxy_ignore_headers X-Accel-Redirect; }}
                 location /file {{ internal; add_header Args $args; add_header M $request_method; }}
             }}"
        ),
        |_| {},
        |site| {
            site.file("file x", "content");
        },
    );
    let got = server.ask("POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!((status(&got), body(&got)), ("200 OK", "content"));
    assert_eq!(values(&got, "Content-Type"), ["text/x; charset=u"]);
    assert_eq!(values(&got, "Set-Cookie"), ["a=b; path=/out"]);
    assert_eq!(values(&got, "Content-Disposition"), ["c"]);
    assert_eq!(values(&got, "Cache-Control"), ["no"]);
    assert_eq!((values(&got, "Args"), values(&got, "M")), (vec!["a=b"], vec!["GET"]));
    assert!(values(&got, "X").is_empty());
    let got = server.ask("GET /off HTTP/1.0\r\n\r\n");
    assert_eq!((status(&got), body(&got)), ("404 Not Found", "hi"));
    assert_eq!(values(&got, "X-Accel-Redirect"), ["/file%20x?a=b"]);
}

#[test]
fn x_accel_charset_sets_the_charset() {
    let reply = "HTTP/1.1 200 OK\nContent-Type: text/plain; charset=koi8-r\n\
                 X-Accel-Charset: WINDOWS-1251\nContent-Length: 3\n\n\x7fa\x7f";
    let map = "charset_map koi8-r windows-1251 { 7F 41; }";
    let backend = TestBackend::replying(reply);
    let address = backend.address();
    let server = Server::start(format!(
        "{map} server {{ error_log e.log; location / {{ proxy_pass http://{address}; }} }}"
    ));
    let got = ask(&server, "");
    assert_eq!(values(&got, "Content-Type"), ["text/plain; charset=WINDOWS-1251"]);
    assert_eq!(body(&got), "AaA");
    assert!(values(&got, "X-Accel-Charset").is_empty());
    let server = proxy(&backend, "");
    assert_eq!(values(&ask(&server, ""), "Content-Type"), ["text/plain; charset=koi8-r"]);
    let log = server.log().pop().unwrap();
    assert!(log.starts_with("unknown charset \"WINDOWS-1251\" to override "), "{log}");
}

#[test]
fn the_memory_of_a_head_fits_its_size() {
    let value = "x".repeat(100_000);
    let backend =
        TestBackend::replying(&format!("HTTP/1.1 200 OK\nX: {value}\nContent-Length: 2\n\nhi"));
    for size in ["128k", "4611686018427387904"] {
        let lines = format!("proxy_buffer_size {size}; proxy_buffers 8 2305843009213693952;");
        let got = ask(&proxy(&backend, &lines), "");
        assert_eq!((values(&got, "X"), body(&got)), (vec![&*value], "hi"), "{size}");
    }
    let got = ask(&proxy(&backend, "proxy_buffer_size 64k; proxy_buffers 8 64k;"), "");
    assert_eq!(status(&got), "502 Bad Gateway");
}

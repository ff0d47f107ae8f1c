//! Messages about backends in the error log.

use net::testing::FullListener;

use crate::backend::testing::{TestBackend, TestPeer, closed_port, proxy};
use crate::h1::tests::Server;

const CONTEXT: &str = "client: unix:, server: , request: \"GET /a?b HTTP/1.0\", upstream: ";

/// The last log line of a request, without the text after `upstream: `.
fn line(server: &Server) -> (String, String) {
    server.ask("GET /a?b HTTP/1.0\r\n\r\n");
    server.logged();
    let line = server.log().pop().expect("a line");
    let (message, upstream) = line.split_once(CONTEXT).unwrap_or_else(|| panic!("{line}"));
    (message.to_owned(), upstream.to_owned())
}

fn of_reply(reply: &'static str) -> (String, String) {
    let backend = TestBackend::playing(move |mut peer| {
        peer.request();
        peer.send(reply);
    });
    let (message, upstream) = line(&proxy(&backend, ""));
    assert_eq!(upstream, format!("\"http://{}/a?b\"", backend.address()));
    (message, upstream)
}

#[test]
fn invalid_replies_are_logged_in_nginx_words() {
    let head = "while reading response header from upstream, ";
    let body = "while reading upstream, ";
    for (reply, message, action) in [
        ("", "upstream prematurely closed connection", head),
        ("HTTP/1.1 200 OK\nA: b\n", "upstream prematurely closed connection", head),
        ("ICY 200 OK\n\n", "upstream sent no valid HTTP/1.0 header", head),
        ("HTTP/1.1 200 OK\n A\n\n", "upstream sent invalid header: \"\\x20...\"", head),
        (
            "HTTP/1.1 200 OK\nContent-Length: 1\nContent-length: 2\n\n",
            "upstream sent duplicate header line: \"Content-length: 2\", previous value: \
             \"Content-Length: 1\"",
            head,
        ),
        (
            "HTTP/1.1 200 OK\nContent-Length: x\n\n",
            "upstream sent invalid \"Content-Length\" header: \"Content-Length: x\"",
            head,
        ),
        (
            "HTTP/1.1 200 OK\nTransfer-Encoding: x\n\n",
            "upstream sent unknown \"Transfer-Encoding\": \"x\"",
            head,
        ),
        (
            "HTTP/1.1 200 OK\nContent-Length: 9\n\nabc",
            "upstream prematurely closed connection",
            body,
        ),
        (
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\r\nabc\r\nx",
            "upstream sent invalid chunked response",
            body,
        ),
    ] {
        assert_eq!(of_reply(reply).0, format!("{message} {action}"), "{reply}");
    }
}

#[test]
fn repeated_fields_are_logged_and_ignored() {
    let reply = "HTTP/1.1 200 OK\nETag: \"a\"\nX: 1\netag: \"b\"\nX: 2\nContent-Length: 0\n\n";
    let backend = TestBackend::replying(reply);
    let server = proxy(&backend, "");
    let got = server.ask("GET / HTTP/1.0\r\n\r\n");
    assert!(got.ends_with("\r\nETag: \"a\"\r\nX: 1\r\nX: 2\r\n\r\n"), "{got}");
    let log = server.log().pop().unwrap();
    let message = "upstream sent duplicate header line: \"etag: \"b\"\", previous value: \
                   \"ETag: \"a\"\", ignored while reading response header from upstream, ";
    assert!(log.starts_with(message), "{log}");
}

#[test]
fn connection_refused() {
    let closed = closed_port();
    let server = |lines: &str| Server::start(format!("error_log e.log info; {lines}"));
    let (message, upstream) = line(&server(&format!(
        "server {{ location / {{ proxy_pass http://127.0.0.1:{closed}; }} }}"
    )));
    assert_eq!(
        message,
        "connect() failed (111: Connection refused) while connecting to upstream, "
    );
    assert_eq!(upstream, format!("\"http://127.0.0.1:{closed}/a?b\""));
    let (message, upstream) =
        line(&server("server { location / { proxy_pass http://unix:/none/at/all:/x; } }"));
    let refused = "connect() to unix:/none/at/all failed (2: No such file or directory)";
    assert_eq!(message, format!("{refused} while connecting to upstream, "));
    assert_eq!(upstream, "\"http://unix:/none/at/all:/xa?b\"");
    let (message, upstream) = line(&server(&format!(
        "upstream u {{ server 127.0.0.1:{closed} down; server 127.0.0.2:{closed} down; }}
         server {{ location / {{ proxy_pass http://u; }} }}"
    )));
    assert_eq!(message, "no live upstreams while connecting to upstream, ");
    assert_eq!(upstream, "\"http://u/a?b\"");
}

#[test]
fn reading_a_reply_times_out() {
    let backend = TestBackend::playing(|mut peer| peer.wait_for_end());
    let timing_out = |backend: &TestBackend| {
        let server = proxy(backend, "proxy_read_timeout 100ms;");
        server.start_clock();
        line(&server)
    };
    let (message, _) = timing_out(&backend);
    let timed_out = "upstream timed out (110: Connection timed out)";
    assert_eq!(message, format!("{timed_out} while reading response header from upstream, "));
    let backend = TestBackend::playing(|mut peer: TestPeer| {
        peer.request();
        peer.send("HTTP/1.1 200 OK\nContent-Length: 9\n\nabc");
        peer.wait_for_end();
    });
    let (message, _) = timing_out(&backend);
    assert_eq!(message, format!("{timed_out} while reading upstream, "));
}

#[test]
fn connecting_times_out() {
    let full = FullListener::new();
    let server = Server::start(format!(
        "error_log e.log; proxy_connect_timeout 100ms;
         server {{ location / {{ proxy_pass http://{}; }} }}",
        full.address
    ));
    server.start_clock();
    let (message, _) = line(&server);
    let timed_out = "upstream timed out (110: Connection timed out)";
    assert_eq!(message, format!("{timed_out} while connecting to upstream, "));
}

#[test]
fn a_client_that_leaves_is_logged() {
    for (reply, action) in [
        ("", "while sending request to upstream, "),
        ("HTTP/1.1 200 OK\nContent-Length: 9\n\nabc", "while reading upstream, "),
    ] {
        let backend = TestBackend::playing(move |mut peer| {
            peer.request();
            peer.send(reply);
            peer.wait_for_end();
        });
        let server = proxy(&backend, "proxy_buffering off;");
        let mut client = server.connect();
        client.head("GET /a?b HTTP/1.0\n");
        backend.asked();
        if !reply.is_empty() {
            client.expect_some();
        }
        drop(client);
        assert_eq!(server.logged().0, if reply.is_empty() { 499 } else { 200 });
        let log = server.log().pop().unwrap();
        let message = "epoll_wait() reported that client prematurely closed connection, so \
                       upstream connection is closed too ";
        let upstream = format!("\"http://{}/a?b\"", backend.address());
        assert_eq!(log, format!("{message}{action}{CONTEXT}{upstream}"));
    }
}

#[test]
fn variables_have_the_fields_of_an_incomplete_head() {
    for reply in ["HTTP/1.1 200 OK\nX: y\n", "HTTP/1.1 200 OK\nX: y\n z\n", ""] {
        let backend = TestBackend::playing(move |mut peer| {
            peer.request();
            peer.send(reply);
            if reply.is_empty() {
                peer.send("HTTP/1.1 200 OK\nX: y\n");
                peer.wait_for_end();
            }
        });
        let address = backend.address();
        let server = Server::start(format!(
            "log_format f '*0 $status $upstream_status $upstream_http_x';
             server {{ access_log e.log f; location / {{ proxy_pass http://{address}; }} }}"
        ));
        let mut client = server.connect();
        client.head("GET / HTTP/1.0\n");
        backend.asked();
        if reply.is_empty() {
            // The client leaves while the head is read.
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(client);
        }
        server.logged();
        let expected = if reply.is_empty() { "499 - y" } else { "502 502 y" };
        assert_eq!(server.log().pop().unwrap(), expected);
    }
}

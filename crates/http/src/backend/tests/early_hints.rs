//! Early hints of backends.

use crate::backend::testing::{TestBackend, proxy};

const REPLY: &str = "HTTP/1.1 103 Early\nLink: </a>\nServer: s\nX: y\n\n";

fn backend() -> TestBackend {
    TestBackend::playing(|mut peer| {
        while peer.request().is_some() {
            peer.send(REPLY);
            peer.send("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
        }
    })
}

fn ask(lines: &str, version: &str) -> String {
    let backend = backend();
    let server = proxy(&backend, &format!("proxy_hide_header X; {lines}"));
    server.ask(&format!("GET / HTTP/{version}\r\nHost: h\r\nConnection: close\r\n\r\n"))
}

#[test]
fn early_hints_are_passed_on_if_enabled() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n";
    for wanted in ["$http_host", "$upstream_http_link"] {
        let reply = ask(&format!("early_hints {wanted};"), "1.1");
        assert!(reply.starts_with(hints) && reply.ends_with("\r\n\r\nhi"), "{reply}");
    }
    for (lines, version) in
        [("", "1.1"), ("early_hints 0 $arg_x;", "1.1"), ("early_hints 1;", "1.0")]
    {
        let reply = ask(lines, version);
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(!reply.contains("Link"), "{reply}");
    }
}

#[test]
fn hints_without_fields_or_with_too_many() {
    let lines = "early_hints 1; proxy_hide_header Link;";
    assert!(ask(lines, "1.1").starts_with("HTTP/1.1 200 OK\r\n"));
    let backend = TestBackend::playing(|mut peer| {
        peer.request();
        for _ in 0..3 {
            peer.send(&format!("HTTP/1.1 103 Early\nLink: {}\n\n", "x".repeat(1500)));
        }
        peer.send("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
    });
    let server = proxy(&backend, "early_hints 1;");
    let reply = server.ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(reply.matches(" 103 Early Hints\r\n").count(), 2);
    assert!(reply.ends_with("\r\n\r\nhi"));
    let log = server.log();
    assert!(log.len() == 1 && log[0].starts_with("upstream sent too big early hints"), "{log:?}");
}

#[test]
fn early_hints_without_a_final_reply_are_an_error() {
    let backend = TestBackend::playing(|mut peer| {
        peer.request();
        peer.send(REPLY);
    });
    let server = proxy(&backend, "early_hints 1;");
    let reply = server.ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 103 Early Hints\r\n"), "{reply}");
    assert!(reply.contains("\r\n\r\nHTTP/1.1 502 Bad Gateway\r\n"), "{reply}");
}

use crate::backend::testing::{TestBackend, values};
use crate::h1::tests::Server;

fn asked(answer: &str, lines: &str) -> String {
    let backend = TestBackend::of_bytes(b"\r\n", answer);
    let server = Server::start(format!(
        "server {{ location / {{ set $memcached_key $uri; memcached_pass {}; {lines} }} }}",
        backend.address()
    ));
    let reply = server.ask("GET /a%20b HTTP/1.0\r\n\r\n");
    assert_eq!(backend.asked(), "get /a%20b\\r\\n");
    reply
}

#[test]
fn values_answer() {
    let reply = asked("VALUE /a%20b 2 5\r\nhello\r\nEND\r\n", "memcached_gzip_flag 1;");
    assert!(
        reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("\r\n\r\nhello"),
        "{reply}"
    );
    assert_eq!(values(&reply, "Content-Length"), ["5"]);
    assert!(values(&reply, "Content-Encoding").is_empty());
    let reply = asked("VALUE /a%20b 3 1\r\nx\r\nEND\r\n", "memcached_gzip_flag 1;");
    assert_eq!(values(&reply, "Content-Encoding"), ["gzip"]);
}

#[test]
fn missing_values_and_invalid_replies_are_errors() {
    assert!(asked("END\r\n", "").starts_with("HTTP/1.1 404 Not Found\r\n"));
    let reply = asked("END\r\n", "error_page 404 = @other; } location @other { return 200 other;");
    assert!(reply.ends_with("other"), "{reply}");
    for answer in ["ERROR\r\n", "VALUE /x 0 1\r\n", "VALUE /a%20b 0 x\r\n"] {
        assert!(asked(answer, "").starts_with("HTTP/1.1 502 "), "{answer}");
    }
}

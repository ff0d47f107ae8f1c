//! Reading heads: replies to invalid ones, and the limits of the chosen server.

use super::*;

const HELLO: &str = "server { location / { return 200 hello; } }";

#[test]
fn a_head_may_come_byte_by_byte() {
    let server = Server::start(HELLO);
    let mut client = server.connect();
    for byte in b"\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n" {
        client.send([*byte]);
    }
    client.expect(&text("200 OK", "keep-alive", "hello"));
}

#[test]
fn an_invalid_head_is_answered_and_the_connection_closed() {
    let server = Server::start(HELLO);
    let table = [
        ("get / HTTP/1.1\r\n", page("400 Bad Request")),
        ("GET / HTTP/1.1\r\n\r\n", page("400 Bad Request")),
        ("GET / HTTP/2.0\r\n", page("505 HTTP Version Not Supported")),
        ("GET /%zz HTTP/1.1\r\n", page("400 Bad Request")),
        ("GET /../ HTTP/1.1\r\n", page("400 Bad Request")),
        ("GET / HTTP/1.1\r\nHost: a b\r\n", page("400 Bad Request")),
        ("GET / HTTP/1.1\r\nHost : a\r\n", page("400 Bad Request")),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", page("405 Not Allowed")),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", page("405 Not Allowed")),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", page("501 Not Implemented")),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            page("400 Bad Request"),
        ),
    ];
    for (request, expected) in table {
        let mut client = server.connect();
        client.send(request);
        client.end();
        assert_eq!(client.rest(), expected, "{request:?}");
    }
}

#[test]
fn a_head_over_the_limits_is_refused() {
    let server = Server::start(
        "client_header_buffer_size 64; large_client_header_buffers 1 128; server { }",
    );
    let long = "a".repeat(200);
    let too_large = too_large_page();
    let uri_too_large = page("414 Request-URI Too Large");
    let head_only = uri_too_large.split_inclusive("\r\n\r\n").next().unwrap().to_owned();
    let table = [
        (format!("GET /{long}"), uri_too_large),
        (format!("HEAD /{long}"), head_only),
        (format!("GET / HTTP/1.1\r\nX: {long}"), too_large.clone()),
        ("GET / HTTP/1.1\r\n".to_owned() + &"X: 1\r\n".repeat(40), too_large),
    ];
    for (request, expected) in table {
        let mut client = server.connect();
        client.send(&request);
        client.end();
        assert_eq!(client.rest(), expected, "{request:?}");
    }
}

#[test]
fn http_0_9_and_1_0_are_served() {
    let server = Server::start(HELLO);
    assert_eq!(server.ask("GET /\r\n"), "hello");
    assert_eq!(server.ask("GET / HTTP/1.0\r\n\r\n"), text("200 OK", "close", "hello"));
    let mut client = server.connect();
    client.head("GET / HTTP/1.0\nConnection: keep-alive\n");
    client.expect(&text("200 OK", "keep-alive", "hello"));
    client.head("HEAD / HTTP/1.0\n");
    client.expect(&reply(
        "200 OK",
        "Content-Type: text/plain\nContent-Length: 5\nConnection: close\n",
        "",
    ));
    client.expect_end();
}

#[test]
fn the_server_is_chosen_by_the_target_or_the_host_field() {
    let server = Server::start(
        "server { return 200 first; }
         server { server_name Two.example; max_headers 2; return 200 $host; }",
    );
    let mut client = server.connect();
    let two = text("200 OK", "keep-alive", "two.example");
    client.head("GET / HTTP/1.1\nHost: TWO.example.:80\nA: 1\n");
    client.expect(&two);
    client.head("GET http://two.example:8080/ HTTP/1.1\nHost: other\nA: 1\n");
    client.expect(&two);
    client.head("GET http://two.example HTTP/1.1\nHost: other\n");
    client.expect(&two);
    client.head("GET / HTTP/1.1\nA: 1\nB: 2\nHost: one\nC: 3\n");
    client.expect(&text("200 OK", "keep-alive", "first"));
    client.head("GET / HTTP/1.1\nHost: two.example\nA: 1\nB: 2\nC: 3\n");
    assert_eq!(client.rest(), too_large_page());
}

#[test]
fn an_invalid_head_is_answered_with_the_error_page() {
    let server =
        Server::start("server { error_page 400 /bad; location = /bad { return 200 sorry; } }");
    assert_eq!(server.ask("?\r\n\r\n"), text("400 Bad Request", "close", "sorry"));
}

#[test]
fn an_incomplete_head_times_out() {
    let server = Server::start("client_header_timeout 100ms; server { }");
    let mut client = server.connect();
    server.advance(100);
    client.expect_end();
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost");
    server.advance(100);
    client.expect_end();
    assert_eq!(server.logged(), (408, 0));
    let mut client = server.connect();
    client.send("GET");
    client.end();
    client.expect_end();
    assert_eq!(server.logged(), (400, 0));
}

//! What comes before the first request on a socket of the PROXY protocol.

use std::process::Command;
use std::sync::Arc;

use net::testing::{RelaySide, ToyTransport};

use crate::h1::tests::{Server, text};
use crate::testing::{TRANSPORT, transport};

const SITE: &str = "error_log e.log info; server {
     listen 80 proxy_protocol;
     set_real_ip_from unix:;
     real_ip_header proxy_protocol;
     location / { return 200 $proxy_protocol_addr:$proxy_protocol_port,$proxy_protocol_server_addr:\
$proxy_protocol_server_port,$remote_addr,$pipe; }
     location /tlv { return 200 $proxy_protocol_tlv_alpn,$proxy_protocol_tlv_foo,\
$proxy_protocol_tlv_0xg,$proxy_protocol_tlv_ssl_cn; }
 }";

const HEADER: &str = "PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n";

fn server() -> Server {
    Server::start(SITE)
}

const SAID: &str = "192.0.2.1:123,192.0.2.2:5678,192.0.2.1,.";

#[test]
fn with_the_request_behind_it() {
    let server = server();
    let mut client = server.connect();
    client.send(format!("{HEADER}GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    client.expect(&text("200 OK", "keep-alive", SAID));
    client.head("GET / HTTP/1.1\nHost: h\nConnection: close\n");
    assert_eq!(client.rest(), text("200 OK", "close", SAID));
}

#[test]
fn in_pieces() {
    let server = server();
    let mut client = server.connect();
    for byte in HEADER.bytes() {
        client.send([byte]);
        std::thread::yield_now();
    }
    client.head("GET / HTTP/1.0\n");
    assert_eq!(client.rest(), text("200 OK", "close", SAID));
}

#[test]
fn unknown() {
    let reply = server().ask("PROXY UNKNOWN\r\nGET / HTTP/1.0\r\n\r\n");
    assert_eq!(reply, text("200 OK", "close", ":,:,unix:,."));
}

#[test]
fn version_2() {
    let server = server();
    let mut client = server.connect();
    let tlvs = b"\x01\0\x02h2\x20\0\x05\x01\0\0\0\0";
    client.send(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x19\xc0\0\x02\x01\xc0\0\x02\x02\0\x7b\x16\x2e");
    client.send(tlvs);
    client.head("GET /tlv HTTP/1.0\n");
    assert_eq!(client.rest(), text("200 OK", "close", "h2,,,"));
    let errors = server.log();
    assert!(errors[0].starts_with("unknown PROXY protocol TLV \"foo\", client: 192.0.2.1,"));
    assert!(errors[1].starts_with("invalid PROXY protocol TLV \"0xg\", client: 192.0.2.1,"));
    assert_eq!(errors.len(), 2, "{errors:?}");
}

#[test]
fn without_it_there_is_no_reply() {
    let server = server();
    assert_eq!(server.ask("GET / HTTP/1.0\r\n\r\n"), "");
    let context = "while reading PROXY protocol, client: unix:, server: 0.0.0.0:80";
    assert_eq!(server.log(), [format!("broken header: \"GET / HTTP/1.0\" {context}")]);
    let mut client = server.connect();
    client.end();
    client.expect_end();
    assert_eq!(server.log()[1], format!("client closed connection {context}"));
}

#[test]
fn the_time_for_the_first_head_is_its_time_too() {
    let server = Server::start(format!("client_header_timeout 100ms; {SITE}"));
    let mut client = server.connect();
    client.send(&HEADER[..9]);
    server.advance(100);
    client.expect_end();
    let context = "while reading PROXY protocol, client: unix:, server: 0.0.0.0:80";
    assert_eq!(server.log(), [format!("client timed out (110: Connection timed out) {context}")]);
    let mut client = server.connect();
    server.advance(60);
    client.send(HEADER);
    server.advance(40);
    client.expect_end();
    assert!(server.log()[1].contains(" while waiting for request, "), "{:?}", server.log());
}

#[test]
fn the_header_comes_before_the_handshake() {
    let change = |site: &mut crate::site::Site| {
        site.listens[0].transport = Some(Arc::new(ToyTransport(RelaySide::Server)));
    };
    let site = "error_log e.log info; client_header_timeout 100ms; server {
         listen 80 proxy_protocol;
         location / { return 200 $proxy_protocol_addr,$scheme,$https,$server_port; } }";
    let server = Server::with(site, change, |_| {});
    let mut client = server.connect_secured_after(HEADER);
    for connection in ["keep-alive", "close"] {
        client.head(&format!("GET / HTTP/1.1\nHost: h\nConnection: {connection}\n"));
        client.expect(&text("200 OK", connection, "192.0.2.1,https,on,"));
    }
    client.expect_end();
    let mut client = server.connect_plain();
    client.send(HEADER);
    server.advance(100);
    client.expect_end();
    let context = "while SSL handshaking, client: unix:, server: 0.0.0.0:80";
    let timed_out = "client timed out (110: Connection timed out)";
    assert_eq!(server.log(), [format!("{timed_out} {context}")]);
}

/// All that is tested of the driver and of backends holds over sessions, too: towards clients and
/// towards servers.
#[test]
fn the_suite_passes_over_toy_sessions() {
    if transport(RelaySide::Server).is_some() {
        return;
    }
    // Clients of HTTP/2 in tests have no sessions.
    let skipped = ["the_future_of_a_connection_is_small", "fields_after_a_body_are_passed_on"];
    let suite = Command::new(std::env::current_exe().unwrap())
        .args(["h1::", "backend::"])
        .args(skipped.iter().flat_map(|name| ["--skip", name]))
        .env(TRANSPORT, "toy")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&suite.stdout);
    assert!(suite.status.success(), "{said}\n{}", String::from_utf8_lossy(&suite.stderr));
    assert!(!said.contains("running 0 tests"), "{said}");
}

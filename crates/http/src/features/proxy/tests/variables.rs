//! `$proxy_...` and `$upstream_...`

use crate::backend::testing::{TestBackend, closed_port, values};
use crate::h1::tests::Server;

const REPLY: &str = "HTTP/1.1 200 OK\nX-A: 1\nx_a: 2\nSet-Cookie: n = v ;x\nSet-Cookie: M=w\n\
                     Content-Length: 3\n\nabc";

/// A server that logs the value of a template to `e.log` at the end of a request.
fn logging(template: &str, locations: &str) -> Server {
    Server::start(format!(
        "log_format f '*0 {template}'; server {{ access_log e.log f; {locations} }}"
    ))
}

/// The logged value of a request.
fn logged(server: &Server, request: &str) -> String {
    server.ask(&format!("{request} HTTP/1.0\r\n\r\n"));
    server.logged();
    server.log().pop().unwrap()
}

#[test]
fn variables_describe_the_attempt() {
    let backend = TestBackend::replying(REPLY);
    let (port, closed) = (backend.port, closed_port());
    let server = logging(
        "$upstream_addr|$upstream_status|$upstream_queue_time|\
         $upstream_response_length|$upstream_http_x_a|\
         $upstream_cookie_n$upstream_cookie_m|$upstream_http_none|$proxy_host|$proxy_port",
        &format!(
            "location / {{ proxy_pass http://127.0.0.1:{port}; }}
             location /none {{ return 204; }}
             location /closed {{ proxy_pass http://127.0.0.1:{closed}; }}"
        ),
    );
    for (target, expected) in [
        ("/", format!("127.0.0.1:{port}|200|-|3|1, 2|v w|-|127.0.0.1:{port}|{port}")),
        ("/none", "-|-|-|-|-|--|-|-|-".to_owned()),
        ("/closed", format!("127.0.0.1:{closed}|502|-|0|-|--|-|127.0.0.1:{closed}|{closed}")),
    ] {
        assert_eq!(logged(&server, &format!("GET {target}")), expected);
    }
}

#[test]
fn attempts_are_separated_as_in_nginx() {
    let backend = TestBackend::answering(|request| {
        let redirect = if request.contains("/xar") { "X-Accel-Redirect: /next\n" } else { "" };
        format!("HTTP/1.1 200 OK\n{redirect}Content-Length: 0\n\n")
    });
    let (port, closed) = (backend.port, closed_port());
    let server = Server::start(format!(
        "log_format f '*0 $upstream_addr|$upstream_status|$proxy_host';
         upstream u {{ server 127.0.0.1:{closed}; server 127.0.0.1:{port} backup; }}
         server {{
             access_log e.log f;
             location / {{ proxy_pass http://u; }}
             location /xar {{ proxy_pass http://127.0.0.1:{port}; }}
         }}"
    ));
    let both = format!("127.0.0.1:{closed}, 127.0.0.1:{port}");
    assert_eq!(logged(&server, "GET /"), format!("{both}|502, 200|u"));
    let log = logged(&server, "GET /xar");
    // The group remembers the failed server.
    assert_eq!(log, format!("127.0.0.1:{port} : 127.0.0.1:{port}|200 : 200|u"));
}

#[test]
fn times_and_bytes() {
    let backend = TestBackend::replying(REPLY);
    let address = backend.address();
    let server = logging(
        "$upstream_connect_time $upstream_header_time $upstream_response_time \
         $upstream_queue_time $upstream_bytes_sent $upstream_bytes_received",
        &format!("location / {{ proxy_pass http://{address}; }}"),
    );
    let log = logged(&server, "GET /");
    let words: Vec<&str> = log.split(' ').collect();
    for time in &words[..3] {
        assert!(time.len() == 5 && time.starts_with("0.0"), "{log}");
    }
    let sent = backend.asked().replace('\n', "\r\n").len();
    let received = REPLY.len() + REPLY.matches('\n').count();
    assert_eq!(words[3..], ["-", &*sent.to_string(), &*received.to_string()]);
}

#[test]
fn request_variables_reach_the_backend() {
    let backend = TestBackend::replying(REPLY);
    let address = backend.address();
    let server = Server::start(format!(
        "server {{ location / {{
             proxy_pass http://{address};
             proxy_set_header Host $proxy_host:$proxy_port;
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
             proxy_set_header X-Length $proxy_internal_body_length;
             proxy_set_header X-Chunked $proxy_internal_chunked;
             location /set {{ proxy_pass http://{address}; proxy_set_body four; }}
             location /stream {{ proxy_pass http://{address}; proxy_request_buffering off; }}
         }} }}"
    ));
    let port = backend.port;
    server.ask("GET / HTTP/1.0\r\n\r\n");
    let asked = backend.asked();
    assert_eq!(values(&asked.replace('\n', "\r\n"), "Host"), [format!("{address}:{port}")]);
    assert_eq!(values(&asked.replace('\n', "\r\n"), "X-Forwarded-For"), ["unix:"]);
    assert!(!asked.contains("X-Length") && !asked.contains("X-Chunked"));
    server.ask("GET / HTTP/1.0\r\nX-Forwarded-For: a\r\nX-Forwarded-For: b, c\r\n\r\n");
    let asked = backend.asked().replace('\n', "\r\n");
    assert_eq!(values(&asked, "X-Forwarded-For"), ["a, b, c, unix:"]);
    server.ask("GET /set HTTP/1.0\r\n\r\n");
    assert_eq!(values(&backend.asked().replace('\n', "\r\n"), "X-Length"), ["4"]);
    let chunked = "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n";
    server.ask(&format!("PUT /a HTTP/1.1\r\nHost: h\r\n{chunked}0\r\n\r\n"));
    assert_eq!(values(&backend.asked().replace('\n', "\r\n"), "X-Length"), ["3"]);
    let mut client = server.connect();
    client.send(format!("PUT /stream HTTP/1.1\r\nHost: h\r\n{chunked}"));
    backend.expect_unasked();
    client.send("0\r\n\r\n");
    let asked = backend.asked().replace('\n', "\r\n");
    assert_eq!(values(&asked, "X-Chunked"), ["chunked"]);
    assert!(!asked.contains("X-Length"));
}

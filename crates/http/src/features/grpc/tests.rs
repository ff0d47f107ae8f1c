//! `grpc_pass`, with a server of HTTP/2 behind it and clients of HTTP/1 before it, who get trailers
//! in chunked replies.

use std::thread;
use std::time::{Duration, Instant};

use wire::http2::{FieldWriter, Http2Config, Http2Endpoint, Http2Event, Http2Role, StreamKey};

use crate::backend::testing::{TestBackend, TestPeer, values};
use crate::h1::tests::{PATIENCE, Server};
use crate::testing::{refusal, site};

/// The server's end of one connection. Reports the heads of its requests to the test.
struct GrpcPeer {
    peer: TestPeer,
    endpoint: Http2Endpoint,
}

enum Came {
    Head(StreamKey),
    Data(StreamKey, Vec<u8>),
    End(StreamKey),
}

impl GrpcPeer {
    fn new(peer: TestPeer) -> Self {
        let config = Http2Config { max_concurrent_streams: 100, ..Http2Config::default() };
        Self { peer, endpoint: Http2Endpoint::new(Http2Role::Server, config) }
    }

    /// Calls the script with what arrives, until the connection is closed.
    fn play(mut self, script: impl Fn(&mut Self, Came)) {
        loop {
            self.flush();
            let Some(input) = self.peer.take() else { return };
            let mut at = 0;
            while at < input.len() {
                let received = self.endpoint.receive(&input[at..]).unwrap();
                let part = &input[at..];
                at += received.consumed;
                for came in self.came(received.event, part) {
                    script(&mut self, came);
                }
            }
        }
    }

    fn came(&mut self, event: Option<Http2Event>, input: &[u8]) -> Vec<Came> {
        let (came, stream, ends) = match event {
            Some(Http2Event::Head { stream, end_stream }) => {
                let fields = self.endpoint.fields().iter();
                let line = |(name, value): (&[u8], &[u8])| {
                    format!("{}={}", name.escape_ascii(), value.escape_ascii())
                };
                let head = fields.map(line).collect::<Vec<_>>().join(" ");
                self.peer.report(&head);
                (Came::Head(stream), stream, end_stream)
            }
            Some(Http2Event::Data { stream, range, end_stream }) => {
                (Came::Data(stream, input[range].to_vec()), stream, end_stream)
            }
            Some(Http2Event::Trailers { stream }) => return vec![Came::End(stream)],
            _ => return Vec::new(),
        };
        if ends { vec![came, Came::End(stream)] } else { vec![came] }
    }

    fn flush(&mut self) {
        let output = self.endpoint.output().to_vec();
        self.endpoint.advance_output(output.len());
        self.peer.send_raw(output);
    }

    fn fields(&mut self, stream: StreamKey, ends: bool, write: impl Fn(&mut FieldWriter<'_>)) {
        let mut writer = self.endpoint.begin_fields(stream).unwrap();
        write(&mut writer);
        writer.finish(ends);
    }

    fn head(&mut self, stream: StreamKey, fields: &[(&str, &str)]) {
        self.fields(stream, false, |writer| {
            writer.status(200);
            fields.iter().for_each(|(name, value)| writer.field(name.as_bytes(), value.as_bytes()));
        });
    }

    fn trailers(&mut self, stream: StreamKey, fields: &[(&str, &str)]) {
        self.fields(stream, true, |writer| {
            fields.iter().for_each(|(name, value)| writer.field(name.as_bytes(), value.as_bytes()));
        });
    }

    fn data(&mut self, stream: StreamKey, bytes: &[u8]) {
        self.endpoint.send_data(stream, bytes, false, usize::MAX);
    }
}

/// Begins a reply at once, echoes each piece of the request, and ends with the status 0.
fn echo(peer: &mut GrpcPeer, came: Came) {
    match came {
        Came::Head(stream) => peer.head(stream, &[("content-type", "application/grpc")]),
        Came::Data(stream, data) => peer.data(stream, &data),
        Came::End(stream) => peer.trailers(stream, &[("grpc-status", "0")]),
    }
}

fn echoing() -> TestBackend {
    TestBackend::playing(|peer| GrpcPeer::new(peer).play(echo))
}

fn before(backend: &TestBackend, lines: &str) -> Server {
    let address = backend.address();
    Server::start(format!(
        "error_log e.log info; server {{ location / {{ grpc_pass {address}; {lines} }} }}"
    ))
}

#[test]
fn a_request_has_the_fields_that_nginx_sends() {
    let backend = echoing();
    let address = backend.address();
    let cases = [
        ("", "Host: h\r\nTE: Trailers\r\nX-A: b\r\n", format!("{address} te=trailers x-a=b")),
        ("", "Host: h\r\nTE: deflate\r\nKeep-Alive: 1\r\nExpect: x\r\n", address.clone()),
        ("grpc_set_header Host $host;", "Host: H:1\r\n", "h".into()),
        ("grpc_set_header Host '';", "Host: h\r\n", address.clone()),
        ("grpc_set_header TE '';", "Host: h\r\nTE: trailers\r\n", address.clone()),
        ("grpc_set_header X-A c;", "Host: h\r\nX-A: b\r\n", format!("{address} x-a=c")),
    ];
    for (lines, fields, expected) in cases {
        let server = before(&backend, lines);
        server.ask(&format!("GET /a%41?b HTTP/1.1\r\n{fields}Connection: close\r\n\r\n"));
        let start = ":method=GET :scheme=http :path=/a%41?b :authority=";
        assert_eq!(backend.asked(), format!("{start}{expected}"), "{lines} {fields}");
    }
}

#[test]
fn a_changed_uri_is_escaped_and_a_length_passed_on() {
    let backend = echoing();
    let server = before(&backend, "rewrite ^ /x%20y?c=d break;");
    server.ask("POST /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc");
    let asked = backend.asked();
    assert!(asked.contains(":path=/x%2520y?c=d "), "{asked}");
    assert!(asked.ends_with(" content-length=3"), "{asked}");
}

#[test]
fn both_directions_go_on_until_the_client_ends_its_own() {
    let backend = echoing();
    let server = before(&backend, "");
    let mut client = server.connect_tcp();
    client.head("POST /s/m HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n");
    client.expect_reply_ending("Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n");
    for piece in ["abc", "d"] {
        let chunk = format!("{}\r\n{piece}\r\n", piece.len());
        client.send(&chunk);
        client.expect_raw(&chunk);
    }
    client.send("0\r\n\r\n");
    client.expect_raw("0\r\ngrpc-status: 0\r\n\r\n");
}

#[test]
fn a_status_without_a_message_is_passed_on() {
    let backend = TestBackend::playing(|peer| {
        GrpcPeer::new(peer).play(|peer, came| {
            let Came::End(stream) = came else { return };
            peer.fields(stream, true, |writer| {
                writer.status(200);
                writer.field(b"grpc-status", b"12");
                writer.field(b"server", b"s");
                writer.field(b"x-accel-redirect", b"/");
            });
        });
    });
    let server = before(&backend, "grpc_ignore_headers X-Accel-Redirect;");
    let reply = server.ask("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(reply.contains("\r\ngrpc-status: 12\r\n"), "{reply}");
    assert!(!reply.contains("\r\nserver: s"), "{reply}");
    assert!(!reply.contains("x-accel"), "{reply}");
}

#[test]
fn trailers_above_the_buffer_size_end_the_reply() {
    let backend = TestBackend::playing(|peer| {
        GrpcPeer::new(peer).play(|peer, came| {
            let Came::End(stream) = came else { return };
            peer.head(stream, &[]);
            peer.trailers(stream, &[("x", &"y".repeat(1024))]);
        });
    });
    for (size, passes) in [("1k", false), ("1100", true)] {
        let server = before(&backend, &format!("grpc_buffer_size {size};"));
        let reply = server.ask("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        assert_eq!(reply.contains("\r\nx: y"), passes, "{size}: {reply}");
        let too_big = server.log().iter().any(|line| line.contains("sent too big trailers"));
        assert_eq!(too_big, !passes, "{size}");
    }
}

/// nginx calls it an invalid header, other programs an error: either word is enough.
#[test]
fn a_stream_that_is_reset_may_be_tried_elsewhere() {
    let resetting = TestBackend::playing(|peer| {
        GrpcPeer::new(peer).play(|peer, came| {
            let Came::End(stream) = came else { return };
            peer.endpoint.reset(stream, wire::http2::Http2Code::INTERNAL_ERROR);
        });
    });
    let other = echoing();
    for (words, passes) in [("error", true), ("invalid_header", true), ("timeout", false)] {
        let server = Server::start(format!(
            "error_log e.log info; upstream u {{ server {} max_fails=0; server {} max_fails=0; }}
             server {{ location / {{ grpc_pass grpc://u; grpc_next_upstream {words}; }} }}",
            resetting.address(),
            other.address()
        ));
        let reply = server.ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        assert_eq!(reply.starts_with("HTTP/1.1 200"), passes, "{words}: {reply}");
        if !passes {
            let log = server.log().join("\n");
            assert!(log.contains("upstream rejected request with error 2"), "{log}");
            assert!(log.contains("upstream: \"grpc://127.0.0.1:"), "{log}");
        }
    }
}

#[test]
fn addresses_may_come_from_variables_and_in_ifs() {
    let backend = echoing();
    let address = backend.address();
    let server = Server::start(format!(
        "error_log e.log info; upstream u {{ server {address}; }}
         server {{
             location /v {{ grpc_pass $arg_a; }}
             location /i {{
                 if ($arg_a) {{ grpc_pass $arg_a; }}
                 if ($arg_a = '') {{ return 204; }}
             }}
         }}"
    ));
    let cases = [
        (format!("/v?a={address}"), "200"),
        (format!("/v?a=grpc://{address}"), "200"),
        ("/v?a=u".into(), "200"),
        ("/v?a=grpc://u".into(), "200"),
        ("/v?a=127.0.0.1".into(), "500"),
        ("/i?a=u".into(), "200"),
        ("/i".into(), "204"),
    ];
    for (path, status) in cases {
        let reply = server.ask(&format!("GET {path} HTTP/1.0\r\nHost: h\r\n\r\n"));
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {reply}");
    }
}

#[test]
fn invalid_lines_are_refused_in_nginxs_words() {
    let cases = [
        ("grpc_pass a:1;", "\"grpc_pass\" directive is not allowed here"),
        ("server { location / { grpc_pass a; } }", "no port in upstream \"a\""),
        ("grpc_next_upstream updating;", "invalid value \"updating\""),
        ("grpc_buffering on;", "unknown directive \"grpc_buffering\""),
        (
            "server { location / { limit_except GET { grpc_pass 127.0.0.1:1; } } }",
            "\"grpc_pass\" directive is not allowed here",
        ),
    ];
    for (lines, why) in cases {
        let message = refusal(lines);
        assert!(message.contains(why), "{lines}: {message}");
    }
    site("server { location / { grpc_pass grpcs://unix:/s; grpc_ssl_verify off; } }");
}

/// Replies with a status of HTTP where no call is answered with gRPC's.
#[test]
fn errors_have_the_form_of_grpc_where_that_is_on() {
    let server = Server::start(
        "error_log e.log; grpc_errors on;
         server {
             location / { grpc_pass 127.0.0.1:1; }
             location /none { return 404; }
             location /denied { deny all; grpc_pass 127.0.0.1:1; }
             location /off { grpc_pass 127.0.0.1:1; grpc_errors off; }
             location /page { grpc_pass 127.0.0.1:1; error_page 502 = @sorry; }
             location @sorry { return 200 sorry; }
             location /loop { grpc_pass 127.0.0.1:1; error_page 502 = @gone; }
             location @gone { return 410; }
         }",
    );
    let cases = [
        ("/", "application/grpc", "200 OK", "14", "HTTP 502 Bad Gateway"),
        ("/", "application/grpc+proto", "200 OK", "14", "HTTP 502 Bad Gateway"),
        ("/none", "application/grpc", "200 OK", "12", "HTTP 404 Not Found"),
        ("/denied", "Application/GRPC;x", "200 OK", "7", "HTTP 403 Forbidden"),
        ("/loop", "application/grpc", "200 OK", "2", "HTTP 410 Gone"),
        ("/off", "application/grpc", "502 Bad Gateway", "", ""),
        ("/page", "application/grpc", "200 OK", "", ""),
        ("/", "application/grpc-web", "502 Bad Gateway", "", ""),
        ("/", "text/plain", "502 Bad Gateway", "", ""),
    ];
    for (path, content_type, status, code, message) in cases {
        let reply = server.ask(&format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: {content_type}\r\n\
             Connection: close\r\n\r\n"
        ));
        let of = |name| values(&reply, name).join("|");
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{path}: {reply}");
        assert_eq!((&*of("grpc-status"), &*of("grpc-message")), (code, message), "{path}");
        if !code.is_empty() {
            assert_eq!(of("Content-Type"), "application/grpc");
            assert!(reply.ends_with("\r\n\r\n"), "{reply}");
        }
    }
}

/// The log's line with this beginning, once it is there.
fn await_line(server: &Server, start: &str) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let lines = server.lines();
        if let Some(line) = lines.iter().find(|line| line.starts_with(start)) {
            return line.clone();
        }
        assert!(Instant::now() < end, "{start:?} in {lines:#?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A server that answers the calls of health checks with these fields and this message.
fn checked(status: &'static str, message: &'static [u8]) -> TestBackend {
    TestBackend::playing(move |peer| {
        GrpcPeer::new(peer).play(|peer, came| match came {
            Came::Data(stream, data) => {
                peer.peer.report(&data.escape_ascii().to_string());
                if !message.is_empty() {
                    peer.head(stream, &[("content-type", "application/grpc")]);
                    peer.data(stream, message);
                    return peer.trailers(stream, &[("grpc-status", status)]);
                }
                peer.fields(stream, true, |writer| {
                    writer.status(200);
                    writer.field(b"grpc-status", status.as_bytes());
                });
            }
            Came::Head(_) | Came::End(_) => {}
        });
    })
}

fn checking(backend: &TestBackend, parameters: &str) -> Server {
    let server = Server::start(format!(
        "error_log e.log info; upstream u {{ server {}; }}
         server {{ location / {{
             grpc_pass u; grpc_set_header Host h; grpc_set_header X-A b;
             health_check mandatory interval=20ms type=grpc {parameters};
         }} }}",
        backend.address()
    ));
    server.start_clock();
    server
}

#[test]
fn a_health_check_calls_the_service_for_health() {
    let backend = checked("0", b"\0\0\0\0\x02\x08\x01");
    let server = checking(&backend, "grpc_service=a.B");
    let head = ":method=POST :scheme=http :path=/grpc.health.v1.Health/Check :authority=h \
                x-a=b content-length=10 te=trailers content-type=application/grpc";
    assert_eq!(backend.asked(), head);
    assert_eq!(backend.asked(), r"\x00\x00\x00\x00\x05\n\x03a.B");
    await_line(&server, "[notice] peer is healthy while checking serving status");
}

#[test]
fn the_status_of_the_call_and_of_the_service_decide_about_health() {
    let not_serving: &[u8] = b"\0\0\0\0\x02\x08\x02";
    let cases: [(&str, &[u8], &str, &str); 6] = [
        ("0", not_serving, "", "[error] unexpected status 2 while checking serving status"),
        ("12", b"", "", "[error] unexpected status 12 while checking gRPC status"),
        ("5", b"", "grpc_status=12", "[error] unexpected status 5 while checking gRPC status"),
        ("12", b"", "grpc_status=12", "[notice] peer is healthy while checking gRPC status"),
        ("0", b"\0\0\0\0\x02\x08\x01", "grpc_status=12", "[notice] peer is healthy"),
        ("0", b"\0\0\0\0\x09\x08\x01", "", "[error] invalid message while checking serving"),
    ];
    for (status, message, parameters, line) in cases {
        let backend = checked(status, message);
        let server = checking(&backend, parameters);
        await_line(&server, line);
    }
}

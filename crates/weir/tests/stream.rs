//! `stream {}` in the real program: next to `http {}`, through reloads, and at its limits.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use server::crowd::Crowd;
use testing::{Folder, Peer, Server, complaint, connect, eventually, free_address};

/// Everything that a client is sent, after it has sent `input`.
fn exchange(address: &SocketAddr, input: &[u8]) -> String {
    let mut stream = connect(address);
    stream.write_all(input).unwrap();
    rest(&mut stream)
}

fn rest(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// `stream {}` with a server that returns a text.
fn returns(address: SocketAddr, text: &str) -> String {
    format!("stream {{ server {{ listen {address}; return {text}; }} }}")
}

/// Waits for a log file with exactly these lines.
fn await_lines(server: &Server, file: &str, lines: &str) {
    let read = || server.folder.read(file);
    let len = lines.len();
    eventually(&format!("{len} bytes in {file}"), || (read().len() >= len).then_some(()));
    assert_eq!(read(), lines);
}

#[test]
fn a_configuration_may_have_stream_alone() {
    let address = free_address();
    let user = if testing::is_root() { "user root; " } else { "" };
    let stream = returns(address, "alone");
    let server = Server::start_as(&format!(
        "{user}daemon off; pid nginx.pid; error_log error.log info; events {{}} {stream}"
    ));
    server.await_log("start worker process ", 1);
    assert_eq!(exchange(&address, b""), "alone");
}

#[test]
fn http_and_stream_have_separate_names() {
    let address = free_address();
    let stream = format!(
        "stream {{
             upstream app {{ server 127.0.0.1:1 down; server 127.0.0.1:2; }}
             map $protocol $kind {{ TCP stream-map; }}
             geo $where {{ default nowhere; 127.0.0.0/8 stream-geo; }}
             log_format line 'stream $kind $where $status';
             access_log stream.log line;
             server {{ listen {address}; return '$kind $where'; }}
         }}"
    );
    let http = "upstream app { server unix:DIR/app.sock; }
         map $request_method $kind { GET http-map; }
         geo $where { default nowhere; 127.0.0.0/8 http-geo; }
         log_format line 'http $kind $where $status';
         server { listen unix:DIR/app.sock; location / { return 200 backend; } }
         server {
             listen ADDRESS; access_log http.log line;
             location / { return 200 '$kind $where'; }
             location /app { proxy_pass http://app; }
         }";
    let server = Server::start(&stream, http);
    assert_eq!(exchange(&address, b""), "stream-map stream-geo");
    assert_eq!(server.get("/"), "http-map http-geo");
    assert_eq!(server.get("/app"), "backend");
    await_lines(&server, "stream.log", "stream stream-map stream-geo 200\n");
    await_lines(&server, "http.log", &"http http-map http-geo 200\n".repeat(2));
}

#[test]
fn every_session_is_logged_with_its_status_and_bytes() {
    let [open, closed, proxied, idle] = [(); 4].map(|()| free_address());
    let server = Server::start(
        &format!(
            "stream {{
                 log_format line '$server_port $status $bytes_sent $bytes_received '
                                 '$proxy_protocol_addr';
                 access_log stream.log line;
                 server {{ listen {open}; allow 127.0.0.0/8; deny all;
                           set $text 'hello $remote_addr'; return $text; }}
                 server {{ listen {closed}; deny 127.0.0.0/8; return secret; }}
                 server {{ listen {proxied} proxy_protocol;
                           return '$proxy_protocol_addr:$proxy_protocol_port'; }}
                 server {{ listen {idle}; }}
             }}"
        ),
        "",
    );
    let hello = "hello 127.0.0.1";
    assert_eq!(exchange(&open, b""), hello);
    assert_eq!(exchange(&closed, b""), "");
    let header = b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n";
    assert_eq!(exchange(&proxied, header), "192.0.2.1:123");
    let mut broken = connect(&proxied);
    broken.write_all(b"GET / HTTP/1.0\r\n").unwrap();
    // A reset, if it comes before the end, is as good.
    let _ = broken.read(&mut [0]);
    assert_eq!(exchange(&idle, b""), "");
    let (open, proxied) = (open.port(), proxied.port());
    let lines = format!(
        "{open} 200 {len} 0 -\n{closed} 403 0 0 -\n\
         {proxied} 200 13 0 192.0.2.1\n{proxied} 400 0 0 -\n{idle} 500 0 0 -\n",
        len = hello.len(),
        closed = closed.port(),
        idle = idle.port(),
    );
    // All clients have seen their connections end, and so the lines are there.
    assert_eq!(server.folder.read("stream.log"), lines);
}

/// What a server returns, unless the connection fails.
fn text(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(testing::PATIENCE))?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map(|_| text)
}

#[test]
fn reloads_lose_no_connection() {
    let address = free_address();
    let globals =
        |workers: u32, text| format!("worker_processes {workers};") + &returns(address, text);
    let server = Server::start(&globals(1, "old"), "");
    let crowd = Crowd::start(move || text(address));
    for workers in [4, 1, 3, 1, 2] {
        crowd.await_answers(50);
        server.configure(&globals(workers, "new"), "");
        server.reload();
    }
    crowd.await_answers(50);
    assert_eq!(crowd.end(), [""; 0]);
    assert_eq!(exchange(&address, b""), "new");
}

#[test]
fn a_reload_adds_and_removes_listeners() {
    let (first, second) = (free_address(), free_address());
    let http = "server { listen ADDRESS; location / { return 200 http; } }";
    let server = Server::start("", http);
    assert!(TcpStream::connect(first).is_err());
    server.configure(&returns(first, "first"), http);
    server.reload();
    assert_eq!(exchange(&first, b""), "first");
    server.configure(&returns(second, "second"), http);
    server.reload();
    assert_eq!(exchange(&second, b""), "second");
    eventually("a closed port", || TcpStream::connect(first).is_err().then_some(()));
    // The address changes hands.
    let taker = format!("server {{ listen {second}; location / {{ return 200 b; }} }}");
    server.configure("", &(http.to_owned() + &taker));
    server.reload();
    assert!(exchange(&second, b"GET / HTTP/1.0\r\n\r\n").ends_with("\r\n\r\nb"));
    server.configure(&returns(second, "c"), http);
    server.reload();
    assert_eq!(exchange(&second, b""), "c");
    assert_eq!(server.get("/"), "http");
}

const WAITING: &[u8] = b"PROXY TCP4 192.0.2.1 ";
const REST: &[u8] = b"192.0.2.2 123 5678\r\n";

/// A session that waits for the rest of its PROXY header, once the server has it.
fn begin(server: &Server, address: &SocketAddr, number: usize) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(WAITING).unwrap();
    server.await_log(" connected to ", number);
    stream
}

#[test]
fn a_session_keeps_its_configuration_and_a_graceful_stop_waits_for_it() {
    let address = free_address();
    let waits = |text| returns(address, text).replace("; return", " proxy_protocol; return");
    let says = |text| format!("server {{ listen ADDRESS; location / {{ return 200 {text}; }} }}");
    let server = Server::start(&waits("old"), &says("old"));
    let mut old = begin(&server, &address, 1);
    server.configure(&waits("new"), &says("new"));
    server.signal("HUP");
    eventually("the new configuration", || (server.get("/") == "new").then_some(()));
    let mut new = begin(&server, &address, 2);
    server.signal("QUIT");
    server.await_log("gracefully shutting down", 1);
    for (stream, text) in [(&mut old, "old"), (&mut new, "new")] {
        stream.write_all(REST).unwrap();
        assert_eq!(rest(stream), text);
    }
    let pid = server.folder.join("nginx.pid");
    eventually("the end", || (!pid.exists()).then_some(()));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn sessions_count_as_worker_connections() {
    let address = free_address();
    let stream = format!("stream {{ server {{ listen {address} proxy_protocol; return x; }} }}");
    let globals = format!("events {{ worker_connections 3; }} {stream}");
    let http = "server { listen ADDRESS; location / { return 200 http; } }";
    let server = Server::start_any(&globals, http);
    let mut begun: Vec<_> = (1..=3).map(|number| begin(&server, &address, number)).collect();
    let mut turned_away = server.connect();
    turned_away.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert!(matches!(turned_away.read(&mut [0]), Ok(0) | Err(_)));
    server.await_log("[alert]", 1);
    assert!(server.log().contains("3 worker_connections are not enough\n"));
    assert!(matches!(connect(&address).read(&mut [0]), Ok(0) | Err(_)));
    drop(begun.pop());
    eventually("room", || {
        let mut reply = String::new();
        let mut stream = server.connect();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
        stream.read_to_string(&mut reply).ok()?;
        reply.ends_with("http").then_some(())
    });
    for stream in &mut begun {
        stream.write_all(REST).unwrap();
        assert_eq!(rest(stream), "x");
    }
}

/// As in nginx, zones of both subsystems have their names in common.
#[test]
fn a_zone_belongs_to_one_subsystem() {
    let test = |stream: &str| {
        let folder = Folder::new();
        let conf = format!(
            "events {{}}
             http {{ limit_conn_zone $remote_addr zone=a:1m;
                     server {{ listen unix:{0}/h.sock; limit_conn a 1; }} }}
             stream {{ {stream} server {{ listen unix:{0}/s.sock; limit_conn b 1; return x; }} }}",
            folder.display()
        );
        folder.write("nginx.conf", &conf);
        complaint(&folder.run(&["-t", "-c", "nginx.conf"]))
    };
    let said = test("limit_conn_zone $remote_addr zone=b:1m;");
    assert!(said.contains("test is successful"), "{said}");
    let said = test("limit_conn_zone $remote_addr zone=a:1m;");
    let message = "the shared memory zone \"a\" is already declared for a different use";
    assert!(said.contains(message), "{said}");
    let said = test("");
    assert!(said.contains("zero size shared memory zone \"b\""), "{said}");
}

#[test]
fn unsupported_directives_of_stream_are_refused() {
    let folder = Folder::new();
    folder.write("nginx.conf", "events {}\nstream {\n    geoip_country a.dat;\n}\n");
    let output = folder.run(&["-t", "-c", "nginx.conf"]);
    assert_eq!(output.status.code(), Some(1));
    let said = complaint(&output);
    let message = "[emerg] directive \"geoip_country\" is not supported by this version of weir";
    assert!(said.contains(message) && said.contains("nginx.conf:3"), "{said}");
}

/// Waits until a file of the server's folder has this text so many times.
fn await_text(server: &Server, file: &str, text: &str, times: usize) {
    let count = || server.folder.read(file).matches(text).count();
    eventually(&format!("{times} times {text} in {file}"), || (count() >= times).then_some(()));
}

/// Reads up to a line's end, answers, and closes.
fn line_backend() -> SocketAddr {
    Peer::playing(|mut connection| {
        let line = connection.until(b"\n").unwrap_or_default();
        connection.send_raw([b"got ", &line[..]].concat());
    })
    .address
}

fn reset(client: TcpStream) {
    net::Stream::new(client.into()).reset_on_close().unwrap();
}

#[test]
fn a_client_that_leaves_the_queue_gives_its_place_up_and_one_that_half_closes_keeps_it() {
    let (backend, address) = (line_backend(), free_address());
    let config = |half_close: &str| {
        format!(
            "error_log DIR/queue.log info;
             stream {{
                 log_format f '$status $bytes_received'; access_log DIR/access.log f;
                 upstream u {{ server {backend} max_conns=1; queue 10 timeout=1h; }}
                 server {{ listen {address}; proxy_pass u; proxy_half_close {half_close}; }}
             }}"
        )
    };
    for (half_close, ended) in [("off", "499 0\n"), ("on", "")] {
        let server = Server::start(&config(half_close), "");
        let mut first = connect(&address);
        await_text(&server, "queue.log", "connected to 127", 2);

        // One that has sent nothing and is gone, one that is reset after it has sent something.
        let mut idle = connect(&address);
        idle.shutdown(Shutdown::Write).unwrap();
        let mut broken = connect(&address);
        broken.write_all(b"abc").unwrap();
        // One that has ended its side, and waits.
        let mut patient = connect(&address);
        patient.write_all(b"hello\n").unwrap();
        patient.shutdown(Shutdown::Write).unwrap();
        await_text(&server, "queue.log", "request is queued at position", 3);
        reset(broken);
        await_text(&server, "access.log", "499 3\n", 1);
        if !ended.is_empty() {
            await_text(&server, "access.log", ended, 1);
        }
        first.write_all(b"first\n").unwrap();
        assert_eq!(rest(&mut first), "got first\n");
        drop(first);
        assert_eq!(rest(&mut idle), if half_close == "on" { "got " } else { "" });
        // Without half-closed connections, the server gets the bytes and the client no answer.
        let answer = rest(&mut patient);
        assert_eq!(answer, if half_close == "on" { "got hello\n" } else { "" });
        await_text(&server, "access.log", "200 6\n", 2);
    }
}

/// A backend that says its name to whoever connects.
fn named_backend(name: &'static str) -> SocketAddr {
    Peer::playing(move |mut connection| connection.send_raw(name)).address
}

#[test]
fn servers_that_fail_their_checks_get_no_sessions_before_and_after_a_reload() {
    let (sick, well, address) = (named_backend("sick"), named_backend("well"), free_address());
    let every = |lines: &str| {
        format!(
            "worker_processes 2;
             stream {{
                 match ready {{ expect well; }}
                 upstream u {{ server {sick}; server {well}; }}
                 server {{ listen {address}; proxy_pass u; {lines} }}
             }}"
        )
    };
    let checked = "health_check match=ready interval=50ms";
    let server = Server::start(&every(&format!("{checked};")), "");
    server.await_log("peer is unhealthy while checking data, health check \"ready\"", 1);
    let avoids_the_sick = || (0..10).all(|_| exchange(&address, b"") == "well");
    assert!(avoids_the_sick());
    server.configure(&every(&format!("{checked} fails=3;")), "");
    server.reload();
    assert!(avoids_the_sick());
    assert_eq!(server.log().matches("peer is unhealthy").count(), 1);
    server.configure(&every(""), "");
    server.reload();
    assert!((0..10).any(|_| exchange(&address, b"") == "sick"));
}

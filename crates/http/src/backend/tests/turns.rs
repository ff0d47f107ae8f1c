//! A backend that sends fast does not keep other tasks from running.

use std::io::Read as _;

use crate::backend::testing::TestBackend;
use crate::h1::tests::Server;

/// The bytes that each backend sends without a pause.
const SENT: usize = 4 << 20;
/// The most work of one poll: the task's share plus the step that exceeds it.
const POLL_MAX: u64 = 1 << 20;

fn chunked(chunk: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = chunk.repeat(SENT / chunk.len());
    [head, &chunks, "0\r\n\r\n"].concat().into()
}

fn record(kind: u8, data: &[u8]) -> Vec<u8> {
    [&[1, kind, 0, 1, 0, data.len() as u8, 0, 0], data].concat()
}

fn records_of_a_byte() -> Vec<u8> {
    let bytes = record(6, b"a").repeat(SENT / 9);
    [record(6, b"Content-Type: text/plain\r\n\r\n"), bytes, record(3, &[0; 8])].concat()
}

fn gzipped(body: &[u8]) -> Vec<u8> {
    let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
    [head, body].concat()
}

/// The beginning of a gzip member that expands by 1,032.
const BOMB: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\
    \xec\xc1\x01\x01\0\0\0\x80\x90\xfe\xaf\xee\x08\x0a";

/// A gzip member that expands to nothing.
const EMPTY_MEMBER: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";

/// The most work in one poll while a client reads such a reply, and the bytes it has read.
fn ask(reply: Vec<u8>, end: &'static [u8], lines: &str, accepted: &str) -> (u64, usize) {
    let backend = TestBackend::of_bytes(end, reply);
    let lines = lines.replace("BACKEND", &backend.address());
    let server = Server::start(format!("error_log e.log; server {{ location / {{ {lines} }} }}"));
    let mut client = server.connect_tcp();
    client.head(&format!(
        "GET / HTTP/1.1\nHost: h\nAccept-Encoding: {accepted}\nConnection: close\n"
    ));
    let mut received = Vec::new();
    client.0.read_to_end(&mut received).unwrap();
    (server.longest_poll(), received.len())
}

const HTTP: &[u8] = b"\r\n\r\n";
const STDIN_END: &[u8] = b"\x01\x05\0\x01\0\0\0\0";

#[test]
fn tiny_pieces_let_other_tasks_run() {
    let proxy = "proxy_pass http://BACKEND; proxy_http_version 1.1; proxy_max_temp_file_size 0;";
    let fastcgi = "fastcgi_pass BACKEND; fastcgi_max_temp_file_size 0;";
    let table = [
        ("chunks", chunked("1\r\na\r\n"), HTTP, proxy.to_owned()),
        ("large chunks", chunked(&format!("fff\r\n{:4095}\r\n", 0)), HTTP, proxy.to_owned()),
        ("unbuffered", chunked("1\r\na\r\n"), HTTP, format!("{proxy} proxy_buffering off;")),
        ("records", records_of_a_byte(), STDIN_END, fastcgi.to_owned()),
    ];
    for (name, reply, end, lines) in table {
        let (longest, received) = ask(reply, end, &lines, "");
        assert!(received > SENT / 10, "{name}: {received}");
        assert!(longest <= POLL_MAX, "{name}: {longest}");
    }
}

#[test]
fn coded_bodies_let_other_tasks_run() {
    let proxy = "proxy_pass http://BACKEND; proxy_http_version 1.1; proxy_max_temp_file_size 0;";
    // A block whose last codes mean 1,032 bytes each: all zeros.
    let bomb = [BOMB, &[0; SENT / 512]].concat();
    let name = [b"\x1f\x8b\x08\x08\0\0\0\0\0\x03", &[b'a'; SENT][..]].concat();
    let table = [
        ("compressed", chunked("1\r\na\r\n"), "gzip on; gzip_types *;", "gzip"),
        ("a gzip bomb", gzipped(&bomb), "gunzip on;", ""),
        ("a gzip name", gzipped(&name), "gunzip on;", ""),
        ("gzip members", gzipped(&EMPTY_MEMBER.repeat(10_000)), "gunzip on;", ""),
    ];
    for (name, reply, lines, accepted) in table {
        let (longest, _) = ask(reply, HTTP, &format!("{proxy} {lines}"), accepted);
        assert!(longest <= POLL_MAX, "{name}: {longest}");
    }
}

//! Where the system has no more memory, a large body costs its own request and nothing else.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use testing::{Server, eventually};

const MB: usize = 1024 * 1024;
/// A body, and the buffer it is to be held in.
const BODY: usize = 24 * MB;
/// Memory that the worker process may take in addition to its own, in bytes.
const MORE: usize = 64 * MB;
const UPLOADS: usize = 8;

const SITE: &str = "client_max_body_size 64m; keepalive_timeout 60s;
     server {
         listen ADDRESS;
         location / { return 200 here; }
         location /upload { client_body_buffer_size 32m; proxy_pass http://ADDRESS/; }
     }";

/// Limits the address space of a process to what it has and some more.
fn limit_memory(pid: i32) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    let limit = kilobytes * 1024 + MORE;
    let set = Command::new("prlimit")
        .args([format!("--pid={pid}"), format!("--as={limit}:{limit}")])
        .status();
    assert!(set.unwrap().success());
}

fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    status(stream)
}

fn status(stream: &mut TcpStream) -> String {
    let mut reply = [0; 4096];
    let length = stream.read(&mut reply).unwrap();
    String::from_utf8_lossy(&reply[9.min(length)..12.min(length)]).into_owned()
}

/// An upload, up to its last byte. An answer may come before that.
fn begin_upload(server: &Server) -> TcpStream {
    let mut stream = server.connect();
    let head = format!("POST /upload HTTP/1.1\r\nHost: test\r\nContent-Length: {BODY}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let piece = vec![b'x'; MB];
    (0..BODY / MB - 1).all(|_| stream.write_all(&piece).is_ok());
    stream
}

#[test]
fn a_body_without_memory_is_answered_with_500_and_others_are_served() {
    let server = Server::start("worker_processes 2;", SITE);
    let mut kept: Vec<_> = (0..4).map(|_| server.connect()).collect();
    assert!(kept.iter_mut().all(|stream| ask(stream) == "200"));
    let worker = server.worker_process();
    limit_memory(worker);
    let mut uploads: Vec<_> = (0..UPLOADS).map(|_| begin_upload(&server)).collect();
    eventually("a refusal", || server.log().contains("malloc(").then_some(()));
    assert!(kept.iter_mut().all(|stream| ask(stream) == "200"));
    let refused = uploads.iter_mut().filter_map(|stream| {
        // Those that found room wait for their last bytes.
        stream.write_all(&vec![b'x'; MB]).ok()?;
        (status(stream) == "500").then_some(())
    });
    assert!(refused.count() > 0);
    assert!(server.log().contains("failed (12: Cannot allocate memory), client: 127.0.0.1"));
    drop(uploads);
    assert!(kept.iter_mut().all(|stream| ask(stream) == "200"));
    assert_eq!((server.get("/").as_str(), server.worker_process()), ("here", worker));
}

//! Every folder of examples/ is started as it stands, but for its ports and logs, and asked.
//!
//! `weir backend` plays the applications; `cargo xtask examples` runs the real ones.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use server::backend::{Backend, number};
use testing::{Folder, Server, connect, eventually, kill};

const TESTED: [&str; 8] = [
    "load-balancing",
    "node",
    "php",
    "python",
    "rate-limit",
    "single-page-app",
    "static-site",
    "websocket",
];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Starts an example; `ports` are its backends and what stands for them.
fn start(name: &str, ports: &[(&str, &str)]) -> Server {
    Server::start_with(|folder, address| {
        copy(&examples().join(name), folder, "");
        let mut conf = folder.read("nginx.conf");
        let logs = [("error_log stderr", "error_log error.log"), ("/dev/stdout", "access.log")];
        for (here, test) in [("127.0.0.1:8080", address)].iter().chain(&logs).chain(ports) {
            assert!(conf.contains(here), "{name} has no {here}");
            conf = conf.replace(here, test);
        }
        folder.write("nginx.conf", format!("pid nginx.pid;\n{conf}"));
    })
}

fn copy(from: &Path, folder: &Folder, below: &str) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(folder.join(&name)).unwrap();
            copy(&entry.path(), folder, &format!("{name}/"));
        } else {
            fs::copy(entry.path(), folder.join(&name)).unwrap();
        }
    }
}

/// The whole reply to a GET with these further header lines.
fn get(server: &Server, path: &str, lines: &str) -> String {
    let mut stream = server.connect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{lines}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn assert_reply(reply: &str, status: &str, parts: &[&str]) {
    assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
    for part in parts {
        assert!(reply.contains(part), "no {part:?} in {reply}");
    }
}

#[test]
fn every_example_is_tested_and_described() {
    let folders = fs::read_dir(examples()).unwrap().map(Result::unwrap);
    let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut names: Vec<_> = folders.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, TESTED);
    let readme = fs::read_to_string(examples().join("README.md")).unwrap();
    for name in TESTED {
        assert!(readme.contains(&format!("    weir -c examples/{name}/nginx.conf\n")), "{name}");
        let path = examples().join(name).join("nginx.conf");
        let text = fs::read(&path).unwrap();
        let formatted = conf::fmt::format(&text);
        assert!(formatted.is_ok_and(|formatted| formatted == text), "{name} is not formatted");
    }
}

#[test]
fn static_site() {
    let server = start("static-site", &[]);
    assert_reply(&get(&server, "/", ""), "200", &["Content-Type: text/html", "A static site</h1>"]);
    assert_reply(&get(&server, "/guide", ""), "200", &["<h1>Guide</h1>"]);
    let style = get(&server, "/style.css", "");
    assert_reply(&style, "200", &["Content-Type: text/css", "Cache-Control: max-age=86400"]);
    assert_reply(&get(&server, "/missing", ""), "404", &["<h1>Not found</h1>"]);
    server.folder.write("site/.secret.css", "secret");
    assert_reply(&get(&server, "/.secret.css", ""), "403", &[]);
}

#[test]
fn single_page_app() {
    let backend = Backend::start("--listen 0 --body orders");
    let server = start("single-page-app", &[("127.0.0.1:3000", backend.address(0))]);
    for path in ["/", "/index.html", "/orders/17"] {
        let reply = get(&server, path, "");
        assert_reply(&reply, "200", &["<div id=\"app\">", "Cache-Control: no-cache"]);
    }
    let asset = get(&server, "/assets/app-4f2a91.js", "");
    assert_reply(&asset, "200", &["application/javascript", "immutable"]);
    assert_reply(&get(&server, "/assets/app-000000.js", ""), "404", &[]);
    assert_reply(&get(&server, "/api/orders", ""), "200", &["orders"]);
}

#[test]
fn node() {
    let backend = Backend::start("--listen 0 --body answered");
    let server = start("node", &[("127.0.0.1:3000", backend.address(0))]);
    assert_reply(&get(&server, "/", ""), "200", &["answered"]);
    assert_reply(&get(&server, "/events", ""), "200", &["answered"]);
    backend.stop();
    assert_reply(&get(&server, "/", ""), "503", &["The application is restarting."]);
}

#[test]
fn php() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (asked, requests) = mpsc::channel();
    let application = thread::spawn(move || {
        for mut stream in listener.incoming().flatten().take(3) {
            asked.send(answer_fastcgi(&mut stream)).unwrap();
        }
    });
    let conf = examples().join("../conf").canonicalize().unwrap();
    let conf = [("127.0.0.1:9000", address.as_str()), ("../../conf", conf.to_str().unwrap())];
    let server = start("php", &conf);
    assert_reply(&get(&server, "/style.css", ""), "200", &["text/css", "font-family"]);
    assert_reply(&get(&server, "/.secret", ""), "403", &[]);
    assert_reply(&get(&server, "/missing.php", ""), "404", &[]);
    for (target, path, path_info) in [
        ("/", "SCRIPT_NAME/index.php", "PATH_INFO"),
        ("/orders?a=b", "QUERY_STRINGa=b", "PATH_INFO"),
        ("/index.php/orders/17", "SCRIPT_NAME/index.php", "PATH_INFO/orders/17"),
    ] {
        assert_reply(&get(&server, target, ""), "200", &["an answer"]);
        let asked = requests.recv().unwrap();
        assert!(asked.contains(path) && asked.contains(path_info), "{asked}");
    }
    application.join().unwrap();
    assert_reply(&get(&server, "/", ""), "503", &["PHP is restarting."]);
}

/// Answers a request as an application behind FastCGI, and says what was asked.
fn answer_fastcgi(stream: &mut TcpStream) -> String {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\x01\x05\0\x01\0\0\0\0") {
        stream.read_exact(&mut byte).unwrap();
        request.push(byte[0]);
    }
    let text = b"Content-Type: text/plain\n\nan answer";
    let stdout = [1, 6, 0, 1, 0, text.len() as u8, 0, 0];
    let end = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    stream.write_all(&[&stdout[..], text, &end].concat()).unwrap();
    String::from_utf8_lossy(&request).into_owned()
}

#[test]
fn python() {
    let backend = Backend::start("--listen 0 --body answered --sleep 50ms");
    let server = start("python", &[("127.0.0.1:8000", backend.address(0))]);
    assert_reply(&get(&server, "/static/style.css", ""), "200", &["text/css", "max-age=3600"]);
    assert_eq!(backend.stat("requests"), 0);
    ask_at_once(&server, 20);
    assert_eq!(backend.stat("requests"), 20);
    assert_eq!(backend.stat("highest"), 4);
}

/// Many requests, of which all are answered with 200.
fn ask_at_once(server: &Server, count: usize) {
    let ask = |_| {
        let mut stream = server.connect();
        stream.write_all(b"GET / HTTP/1.0\r\nHost: test\r\n\r\n").unwrap();
        stream
    };
    let streams: Vec<TcpStream> = (0..count).map(ask).collect();
    for mut stream in streams {
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert_reply(&reply, "200", &[]);
    }
}

#[test]
fn load_balancing() {
    let [first, second, backup] =
        ["first", "second", "backup"].map(|word| format!("--listen 0 --sleep 200ms --body {word}"));
    let [first, second, backup] = [first, second, backup].map(|options| Backend::start(&options));
    let ports = [
        ("127.0.0.1:9001", first.address(0)),
        ("127.0.0.1:9002", second.address(0)),
        ("127.0.0.1:9003", backup.address(0)),
        // Fewer than what this test can ask at once.
        ("limit=50", "limit=20"),
    ];
    let server = start("load-balancing", &ports);
    ask_at_once(&server, 100);
    for backend in [&first, &second, &backup] {
        // One more may be a health check, which the limit does not count.
        assert!(number(&backend.stats(), "highest") <= 21, "{}", backend.stats());
    }
    let log = eventually("the access log", || {
        let log = server.folder.read("access.log");
        (log.lines().count() >= 100).then_some(log)
    });
    assert!(log.contains("waited=0.") && log.contains("in_progress="), "{log}");
    first.stop();
    second.stop();
    assert_reply(&get(&server, "/", ""), "200", &["backup"]);
    server.await_log("peer is unhealthy", 2);
    assert_reply(&get(&server, "/", ""), "200", &["backup"]);
}

#[test]
fn websocket() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(|| upgrade_or_answer(stream));
        }
    });
    let server = start("websocket", &[("127.0.0.1:3000", &address)]);
    assert_reply(&get(&server, "/", ""), "200", &["a page"]);

    let mut tunnel = connect(&server.address);
    let request =
        "GET /chat HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    tunnel.write_all(request.as_bytes()).unwrap();
    assert_reply(&head(&mut tunnel), "101", &["Upgrade: websocket\r\n"]);
    assert_eq!(echoed(&mut tunnel), "to and fro");
    kill(server.pid(), "HUP");
    assert_reply(&get(&server, "/", ""), "200", &["a page"]);
    assert_eq!(echoed(&mut tunnel), "to and fro");
}

/// What comes back through a tunnel.
fn echoed(tunnel: &mut TcpStream) -> String {
    tunnel.write_all(b"to and fro").unwrap();
    let mut echo = [0; 10];
    tunnel.read_exact(&mut echo).unwrap();
    String::from_utf8_lossy(&echo).into_owned()
}

/// Reads one head, byte by byte, since what follows is another's.
fn head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// A backend: an echo for who asks for an upgrade, a page for others.
fn upgrade_or_answer(mut stream: TcpStream) {
    let head = head(&mut stream);
    if !head.contains("Upgrade: websocket\r\n") || !head.contains("Connection: upgrade\r\n") {
        let reply = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\na page";
        return stream.write_all(reply.as_bytes()).unwrap();
    }
    let reply =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    stream.write_all(reply.as_bytes()).unwrap();
    let mut other = stream.try_clone().unwrap();
    let _ = std::io::copy(&mut stream, &mut other);
}

#[test]
fn rate_limit() {
    let server = start("rate-limit", &[]);
    let mut stream = server.connect();
    let request = "GET /hello.txt HTTP/1.1\r\nHost: test\r\n\r\n".repeat(39)
        + "GET /hello.txt HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut replies = String::new();
    stream.read_to_string(&mut replies).unwrap();
    let statuses: Vec<_> =
        replies.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).collect();
    assert_eq!(statuses.len(), 40, "{replies}");
    assert!(statuses[..11].iter().all(|status| status.starts_with("200 ")), "{statuses:?}");
    assert!(statuses.iter().any(|status| status.starts_with("429 ")), "{statuses:?}");

    assert_reply(&get(&server, "/download/small.txt", ""), "200", &["a download"]);
    assert_reply(&get(&server, "/status", ""), "200", &["Active connections: "]);
}

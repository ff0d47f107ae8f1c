//! Every folder of examples/ is started as it stands, but for its ports and logs, and asked.
//!
//! `weir backend` plays the applications; `cargo xtask examples` runs the real ones.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use server::backend::{Backend, number};
use testing::{Folder, Peer, PeerConnection, Server, eventually, kill};

const TESTED: [&str; 9] = [
    "load-balancing",
    "node",
    "php",
    "python",
    "rate-limit",
    "several-machines",
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
fn the_static_site_serves_pages_and_hides_dot_files() {
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
fn the_single_page_app_serves_one_page_for_all_paths() {
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
fn the_node_example_proxies_and_explains_a_restart() {
    let backend = Backend::start("--listen 0 --body answered");
    let server = start("node", &[("127.0.0.1:3000", backend.address(0))]);
    assert_reply(&get(&server, "/", ""), "200", &["answered"]);
    assert_reply(&get(&server, "/events", ""), "200", &["answered"]);
    backend.stop();
    assert_reply(&get(&server, "/", ""), "503", &["The application is restarting."]);
}

#[test]
fn the_php_example_runs_scripts_and_serves_files() {
    let application = Peer::playing(answer_fastcgi);
    let address = application.address.to_string();
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
        let asked = application.asked();
        assert!(asked.contains(path) && asked.contains(path_info), "{asked}");
    }
    application.kill();
    assert_reply(&get(&server, "/", ""), "503", &["PHP is restarting."]);
}

/// Answers a request as an application behind FastCGI.
fn answer_fastcgi(mut connection: PeerConnection) -> Option<()> {
    let request = connection.until(b"\x01\x05\0\x01\0\0\0\0")?;
    connection.report(&String::from_utf8_lossy(&request));
    let text = b"Content-Type: text/plain\n\nan answer";
    let stdout = [1, 6, 0, 1, 0, text.len() as u8, 0, 0];
    let end = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    connection.send_raw([&stdout[..], text, &end].concat())
}

#[test]
fn the_python_example_limits_requests_in_progress() {
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
fn the_load_balancing_example_limits_and_fails_over() {
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
fn the_websocket_example_keeps_tunnels_over_a_reload() {
    let backend = Peer::playing(upgrade_or_answer);
    let server = start("websocket", &[("127.0.0.1:3000", &backend.address.to_string())]);
    assert_reply(&get(&server, "/", ""), "200", &["a page"]);

    let mut tunnel = PeerConnection::to(&server.address);
    tunnel.send("GET /chat HTTP/1.1\nHost: test\nUpgrade: websocket\nConnection: Upgrade\n\n");
    let head = String::from_utf8(tunnel.until(b"\r\n\r\n").unwrap()).unwrap();
    assert_reply(&head, "101", &["Upgrade: websocket\r\n"]);
    assert_eq!(echoed(&mut tunnel), "to and fro");
    kill(server.pid(), "HUP");
    assert_reply(&get(&server, "/", ""), "200", &["a page"]);
    assert_eq!(echoed(&mut tunnel), "to and fro");
}

/// What comes back through a tunnel.
fn echoed(tunnel: &mut PeerConnection) -> String {
    tunnel.send_raw("to and fro").unwrap();
    String::from_utf8(tunnel.exactly(10).unwrap()).unwrap()
}

/// A backend: an echo for who asks for an upgrade, a page for others.
fn upgrade_or_answer(mut connection: PeerConnection) -> Option<()> {
    let head = connection.request()?;
    if !head.contains("Upgrade: websocket\n") || !head.contains("Connection: upgrade\n") {
        connection.send("HTTP/1.1 200 OK\nContent-Length: 6\nConnection: close\n\na page");
        return None;
    }
    connection
        .send("HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\nConnection: Upgrade\n\n");
    loop {
        let input = connection.take()?;
        connection.send_raw(input)?;
    }
}

#[test]
fn the_several_machines_example_is_ready_until_it_is_told_otherwise() {
    let [one, two] =
        ["one", "two"].map(|word| Backend::start(&format!("--listen 0 --body {word}")));
    let ports = [
        ("127.0.0.1:9001", one.address(0)),
        ("127.0.0.1:9002", two.address(0)),
        // A port that a test cannot be sure of.
        ("    listen 127.0.0.1:8081 proxy_protocol;\n", ""),
        ("/tmp/weir.sock", "ctl.sock"),
    ];
    let server = start("several-machines", &ports);
    assert_reply(&get(&server, "/ready", ""), "200", &["ready"]);
    let first = get(&server, "/", "");
    assert_reply(&first, "200", &["X-Machine: ", "Set-Cookie: srv="]);
    let (_, cookie) = first.split_once("Set-Cookie: ").unwrap();
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let body = |reply: &str| testing::body(reply).to_owned();
    for _ in 0..4 {
        assert_eq!(body(&get(&server, "/", &cookie)), body(&first));
    }
    let conf = server.folder.name("nginx.conf");
    let mut ctl = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
    ctl.args(["ctl", "-c", &conf, "ready", "off"]);
    assert!(testing::output(ctl).status.success());
    eventually("the page says so", || {
        get(&server, "/ready", "").starts_with("HTTP/1.1 503 ").then_some(())
    });
    assert_reply(&get(&server, "/", ""), "200", &[]);
}

#[test]
fn the_rate_limit_example_answers_429() {
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

//! Changes of upstream groups while the program serves.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Output;
use std::thread;

use testing::{PATIENCE, Server, body, eventually, kill};

const SOCKET: &str = "control_socket unix:DIR/ctl.sock;";

/// A backend that answers with its name.
fn backend(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, name)));
    address
}

fn answer(mut stream: TcpStream, name: &str) {
    // A client that has gone is no concern of the backend.
    let _ = stream.read(&mut [0; 4096]);
    let reply = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
    let _ = stream.write_all(reply.as_bytes());
}

/// A proxy to a group, with a control socket.
fn proxy(globals: &str, lines: &str) -> Server {
    Server::start_with(|folder, address| {
        let globals = format!("events {{}} {globals} {SOCKET}");
        let globals = globals.replace("DIR", &folder.to_string_lossy());
        folder.configure(address, &globals, &group(lines));
    })
}

fn group(lines: &str) -> String {
    format!(
        "upstream app {{ {lines} }}
         server {{ listen ADDRESS; location / {{ proxy_pass http://app; }} }}"
    )
}

/// Sends a request to the control socket; the status and the body of the reply.
fn request(server: &Server, method: &str, path: &str, json: &str) -> (u16, String) {
    let (status, reply) = whole(server, method, path, "application/json", json);
    (status, body(&reply).to_owned())
}

fn whole(server: &Server, method: &str, path: &str, kind: &str, json: &str) -> (u16, String) {
    let socket = server.folder.join("ctl.sock");
    let mut stream = eventually("the socket", || UnixStream::connect(&socket).ok());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = json.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {length}\r\n\r\n{json}"
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    (reply[9..12].parse().unwrap(), reply)
}

const SERVERS: &str = "/9/http/upstreams/app/servers";

fn add(server: &Server, address: SocketAddr) -> (u16, String) {
    request(server, "POST", SERVERS, &format!("{{\"server\":\"{address}\"}}"))
}

/// The names of the backends that answer.
fn answers(server: &Server) -> Vec<String> {
    let mut names: Vec<_> = (0..8).map(|_| server.get("/")).collect();
    names.sort();
    names.dedup();
    names
}

fn weir(server: &Server, arguments: &[&str]) -> Output {
    let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("weir");
    let mut command = std::process::Command::new(program);
    command.arg("ctl").arg("-c").arg(server.folder.join("nginx.conf")).args(arguments);
    testing::output(command)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn servers_come_and_go_without_a_reload() {
    for globals in ["", "master_process off;"] {
        let (one, two) = (backend("one"), backend("two"));
        let server = proxy(globals, &format!("server {one};"));
        assert_eq!(answers(&server), ["one"]);
        let (status, added) = add(&server, two);
        assert_eq!((status, added.starts_with("{\"id\":1,")), (201, true), "{added}");
        assert_eq!(answers(&server), ["one", "two"]);
        let path = format!("{SERVERS}/0");
        assert_eq!(request(&server, "PATCH", &path, "{\"drain\":true}").0, 200);
        assert_eq!(answers(&server), ["two"]);
        assert_eq!(request(&server, "DELETE", &path, "").0, 200);
        assert_eq!(request(&server, "GET", &path, "").0, 404);
        server.await_log("upstream \"app\": server 0 was removed, by user", 1);
        let (status, reply) = whole(&server, "PATCH", &format!("{SERVERS}/1"), "text/plain", "{}");
        assert_eq!((status, reply.contains("\"code\":\"JsonError\"")), (415, true), "{reply}");
        assert_eq!(request(&server, "GET", "/ready", "").0, 200);
    }
}

/// Sends a request to the server itself; the whole reply.
fn ask(server: &Server, method: &str, path: &str, fields: &str, json: &str) -> String {
    let mut stream = server.connect();
    let length = json.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: weir.test\r\nConnection: close\r\n{fields}\
         Content-Length: {length}\r\n\r\n{json}"
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn a_location_with_the_api_changes_servers() {
    const JSON: &str = "Content-Type: application/json\r\n";
    for globals in ["", "master_process off;"] {
        let (one, two) = (backend("one"), backend("two"));
        let http = format!(
            "upstream app {{ server {one}; }}
             server {{
                 listen ADDRESS;
                 location / {{ proxy_pass http://app; }}
                 location /api {{ api write=on; }}
                 location /look {{ api; }}
             }}"
        );
        let server = Server::start_any(&format!("events {{}} {globals}"), &http);
        let servers = "/api/9/http/upstreams/app/servers";
        let json = format!("{{\"server\":\"{two}\"}}");
        let added = ask(&server, "POST", servers, JSON, &json);
        assert!(added.starts_with("HTTP/1.1 201") && added.contains("\"id\":1"), "{added}");
        assert!(added.contains("\r\nWeir-Persistence: none\r\n"), "{added}");
        assert_eq!(answers(&server), ["one", "two"]);
        let removed = ask(&server, "DELETE", &format!("{servers}/0"), "", "");
        assert!(removed.starts_with("HTTP/1.1 200"), "{removed}");
        assert_eq!(answers(&server), ["two"]);
        server.await_log("server 0 was removed, by client 127.0.0.1", 1);
        let listed = ask(&server, "GET", "/look/9/http/upstreams/app/servers", "", "");
        assert!(body(&listed).starts_with("[{\"id\":1,"), "{listed}");
        let foreign = format!("{JSON}Origin: https://evil.test\r\n");
        for (method, path, fields, code) in [
            ("POST", servers, &*foreign, "ForeignOrigin"),
            ("POST", servers, "", "JsonError"),
            ("POST", "/look/9/http/upstreams/app/servers", JSON, "MethodDisabled"),
            ("POST", "/api/9/http/upstreams/none/servers", JSON, "UpstreamNotFound"),
            ("GET", "/api/9/http/upstreams/app/servers/7", "", "UpstreamServerNotFound"),
        ] {
            let refused = ask(&server, method, path, fields, "{}");
            assert!(refused.contains(&format!("\"code\":\"{code}\"")), "{refused}");
        }
    }
}

#[test]
fn changes_are_kept_by_reloads_and_by_a_new_worker_process() {
    let (one, two) = (backend("one"), backend("two"));
    let lines = format!("server {one};");
    let server = proxy("", &lines);
    let (status, reply) =
        whole(&server, "POST", SERVERS, "application/json", &format!("{{\"server\":\"{two}\"}}"));
    assert!(reply.starts_with("HTTP/1.1 201 Created\r\n"), "{reply}");
    assert_eq!((status, reply.contains("\r\nWeir-Persistence: none\r\n")), (201, true));
    server.signal("HUP");
    server.await_log("generation 1 of worker process", 1);
    assert_eq!(answers(&server), ["one", "two"]);
    kill(server.worker_process(), "KILL");
    server.await_log("start worker process ", 2);
    assert_eq!(answers(&server), ["one", "two"]);
    let folder = server.folder.to_string_lossy().into_owned();
    let globals = SOCKET.replace("DIR", &folder);
    server.configure(&format!("{globals} worker_processes 2;"), &group(&lines));
    server.reload();
    assert_eq!(answers(&server), ["one", "two"], "in another process");
    server.configure(&globals, &group(&format!("{lines} keepalive 8;")));
    server.reload();
    assert_eq!(answers(&server), ["one"], "the text of the block has changed");
}

#[test]
fn a_state_file_keeps_what_was_answered() {
    let (one, two) = (backend("one"), backend("two"));
    let mut state = std::path::PathBuf::new();
    let server = Server::start_with(|folder, address| {
        state = folder.join("state.conf");
        let globals = format!("events {{}} {SOCKET}");
        let globals = globals.replace("DIR", &folder.to_string_lossy());
        folder.configure(address, &globals, &group("state DIR/state.conf;"));
    });
    assert_eq!(request(&server, "GET", SERVERS, "").1, "[]");
    let (status, reply) =
        whole(&server, "POST", SERVERS, "application/json", &format!("{{\"server\":\"{one}\"}}"));
    assert_eq!((status, reply.contains("Weir-Persistence")), (201, false), "{reply}");
    assert_eq!(std::fs::read_to_string(&state).unwrap(), format!("server {one};\n"));
    add(&server, two);
    request(&server, "PATCH", &format!("{SERVERS}/1"), "{\"weight\":3}");
    server.reload();
    let (_, kept) = request(&server, "GET", &format!("{SERVERS}/1"), "");
    assert!(kept.contains("\"weight\":3"), "{kept}");
    assert_eq!(answers(&server), ["one", "two"]);
    // A state file that cannot be replaced refuses the change.
    std::fs::remove_file(&state).unwrap();
    std::fs::create_dir(&state).unwrap();
    let (status, refused) = request(&server, "DELETE", &format!("{SERVERS}/0"), "");
    assert_eq!((status, refused.contains("StateNotWritten")), (500, true), "{refused}");
    assert_eq!(answers(&server), ["one", "two"]);
}

#[test]
fn a_group_has_one_owner() {
    let (one, two) = (backend("one"), backend("two"));
    let server = proxy("", &format!("server {one};"));
    let two = two.to_string();
    assert!(weir(&server, &["-o", "discovery", "add", "app", &two]).status.success());
    let refused = weir(&server, &["drain", "app", &two]);
    assert!(!refused.status.success());
    assert!(testing::complaint(&refused).contains("belong to \"discovery\""));
    assert!(weir(&server, &["-o", "discovery", "drain", "app", &two]).status.success());
    assert_eq!(request(&server, "DELETE", "/9/http/upstreams/app/owner", "").0, 204);
    assert!(weir(&server, &["up", "app", &two]).status.success());
}

#[test]
fn a_list_of_servers_reaches_every_process_and_its_state_file() {
    for globals in ["", "master_process off;"] {
        let (one, two) = (backend("one"), backend("two"));
        let server = proxy(globals, "state DIR/app.conf;");
        let put = |version: &str, addresses: &[SocketAddr]| {
            let entries = addresses.iter().map(|address| format!("{{\"server\":\"{address}\"}}"));
            let json = format!("[{}]", entries.collect::<Vec<_>>().join(","));
            let kind = format!("application/json\r\nWeir-Owner: d\r\nWeir-Version: {version}");
            whole(&server, "PUT", SERVERS, &kind, &json)
        };
        assert_eq!(put("1", &[one, two]).0, 200);
        assert_eq!(answers(&server), ["one", "two"]);
        assert_eq!(put("2", &[two]).0, 200);
        assert_eq!(answers(&server), ["two"]);
        assert_eq!(server.folder.read("app.conf"), format!("server {two};\n"));
        let (_, reply) = whole(&server, "GET", SERVERS, "", "");
        assert!(reply.contains("Weir-Version: 2\r\n"), "{reply}");
        let (_, listed) = request(&server, "GET", "/upstreams", "");
        assert!(listed.contains("\"owner\":\"d\",\"version\":\"2\""), "{listed}");
        server.await_log("1 added, 0 changed, 1 removed", 0);
    }
}

#[test]
fn weir_ctl_replaces_all_servers() {
    let (one, two) = (backend("one"), backend("two"));
    let server = proxy("", &format!("server {one};"));
    server.folder.write("list", format!("# mine\n{two} weight=2\n"));
    let list = server.folder.join("list");
    let list = list.to_str().unwrap();
    assert_eq!(
        stdout(&weir(&server, &["servers", "app", list])),
        "1 added, 0 changed, 1 removed\n"
    );
    assert_eq!(answers(&server), ["two"]);
    server.folder.write("list", "");
    let refused = weir(&server, &["servers", "app", list]);
    assert!(testing::complaint(&refused).contains("the list is empty"));
    assert!(weir(&server, &["servers", "--allow-empty", "app", list]).status.success());
}

#[test]
fn weir_ctl_shows_and_changes() {
    let (one, two) = (backend("one"), backend("two"));
    let server = proxy("", &format!("server {one};"));
    eventually("an open socket", || server.folder.join("ctl.sock").exists().then_some(()));
    let mode = std::fs::metadata(server.folder.join("ctl.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let add = weir(&server, &["add", "app", &two.to_string(), "weight=2", "max_conns=9"]);
    assert!(stdout(&add).contains("weight=2  max_conns=9"), "{}", stdout(&add));
    assert!(testing::complaint(&add).contains("the next start undoes this change"));
    assert!(weir(&server, &["drain", "app", &one.to_string()]).status.success());
    assert_eq!(answers(&server), ["two"]);
    let shown = stdout(&weir(&server, &["upstreams", "app"]));
    assert!(shown.starts_with("app\n  0    127.0.0.1:") && shown.contains("draining"), "{shown}");
    let json = stdout(&weir(&server, &["--json", "upstreams"]));
    assert!(json.starts_with("{\"http\":{\"app\":{"), "{json}");
    assert!(weir(&server, &["ready"]).status.success());
    assert!(stdout(&weir(&server, &["status"])).contains("is serving"));
    let unknown = weir(&server, &["down", "ap", "1"]);
    assert!(testing::complaint(&unknown).contains("upstream not found"));
}

/// The proxy's lines, with a page that says whether it is ready.
fn with_readiness(server: SocketAddr) -> String {
    let page = "location = /ready { ready; } location / {";
    group(&format!("server {server};")).replace("location / {", page)
}

/// Sends a request on a connection that may stay open; the head of the reply.
fn head(stream: &mut TcpStream, path: &str) -> String {
    write!(stream, "HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn a_server_that_is_not_ready_goes_on_to_serve_and_lets_connections_end() {
    for globals in ["", "master_process off;"] {
        let one = backend("one");
        let server = Server::start_with(|folder, address| {
            let globals = format!("events {{}} {globals} {SOCKET}");
            let globals = globals.replace("DIR", &folder.to_string_lossy());
            folder.configure(address, &globals, &with_readiness(one));
        });
        let mut kept = server.connect();
        assert!(head(&mut kept, "/ready").starts_with("HTTP/1.1 200"));
        assert_eq!(request(&server, "DELETE", "/ready", "").0, 200);
        let unready = eventually("the page says so", || {
            let reply = ask(&server, "GET", "/ready", "", "");
            reply.starts_with("HTTP/1.1 503").then_some(reply)
        });
        assert!(unready.ends_with("draining\n"), "{unready}");
        assert_eq!(request(&server, "GET", "/ready", "").0, 503);
        let last = head(&mut kept, "/");
        assert!(last.starts_with("HTTP/1.1 200") && last.contains("Connection: close"), "{last}");
        assert_eq!(answers(&server), ["one"]);
        let foreign = "application/json\r\nOrigin: http://evil.test";
        assert_eq!(whole(&server, "POST", "/ready", foreign, "").0, 403);
        server.reload();
        assert_eq!(request(&server, "GET", "/ready", "").0, 503, "a reload changes nothing");
        assert!(stdout(&weir(&server, &["ready", "on"])).contains("ready"));
        eventually("the page says so", || {
            ask(&server, "GET", "/ready", "", "").starts_with("HTTP/1.1 200").then_some(())
        });
    }
}

#[test]
fn a_new_worker_process_knows_that_the_server_is_not_ready() {
    let one = backend("one");
    let server = Server::start_with(|folder, address| {
        let globals = format!("events {{}} {SOCKET}").replace("DIR", &folder.to_string_lossy());
        folder.configure(address, &globals, &with_readiness(one));
    });
    assert!(weir(&server, &["ready", "off"]).status.success());
    let status = request(&server, "GET", "/status", "").1;
    let (_, pid) = status.rsplit_once("\"pid\":").unwrap();
    kill(pid.split(',').next().unwrap().parse().unwrap(), "KILL");
    server.await_log("start worker process ", 2);
    let reply = eventually("a reply", || {
        let reply = ask(&server, "GET", "/ready", "", "");
        (!reply.is_empty()).then_some(reply)
    });
    assert!(reply.starts_with("HTTP/1.1 503"), "{reply}");
}

#[test]
fn a_delayed_end_serves_until_it_is_told_again() {
    for globals in ["", "master_process off;"] {
        let one = backend("one");
        let server = Server::start_with(|folder, address| {
            let globals = format!("events {{}} shutdown_delay 1h; {globals} {SOCKET}");
            let globals = globals.replace("DIR", &folder.to_string_lossy());
            folder.configure(address, &globals, &with_readiness(one));
        });
        server.signal("QUIT");
        server.await_log("shutting down in 3600.0s", 1);
        eventually("the page says so", || {
            ask(&server, "GET", "/ready", "", "").starts_with("HTTP/1.1 503").then_some(())
        });
        assert_eq!(request(&server, "POST", "/ready", ""), (200, server_is_not_ready()));
        assert_eq!(answers(&server), ["one"]);
        let stopped = server.stop("QUIT");
        assert_eq!(stopped.status.code(), Some(0));
    }
}

fn server_is_not_ready() -> String {
    "{\"ready\":false,\"generation\":1}".to_owned()
}

#[test]
fn a_short_delay_ends_by_itself() {
    let server = Server::start("shutdown_delay 100ms;", "server { listen ADDRESS; return 204; }");
    let stopped = server.stop("QUIT");
    assert_eq!(stopped.status.code(), Some(0));
    assert!(
        stopped.log.contains("[notice]") && stopped.log.contains("shutting down in "),
        "{}",
        stopped.log
    );
}

#[test]
fn weir_ctl_reload_tells_the_result() {
    let one = backend("one");
    let server = proxy("", &format!("server {one};"));
    let done = weir(&server, &["reload"]);
    assert!(done.status.success(), "{}", testing::complaint(&done));
    assert!(stdout(&done).contains("[notice] reconfiguring"), "{}", stdout(&done));
    let text = server.folder.read("nginx.conf");
    server.folder.write("nginx.conf", text.replace("proxy_pass", "proxy_pas"));
    let socket = server.folder.join("ctl.sock");
    let failed = weir(&server, &["-s", &socket.to_string_lossy(), "reload"]);
    assert!(!failed.status.success());
    assert!(stdout(&failed).contains("unknown directive \"proxy_pas\""), "{}", stdout(&failed));
    assert_eq!(server.get("/"), "one");
}

#[test]
fn the_control_socket_has_the_pages_of_the_status() {
    for globals in ["", "master_process off;"] {
        let one = backend("one");
        let server = proxy(globals, &format!("server {one};"));
        let get = |path: &str| request(&server, "GET", path, "");
        let page = |path: &str| {
            let (status, page) = get(path);
            assert_eq!(status, 200, "{path}: {page}");
            page
        };
        assert!(page("/stub_status").starts_with("{\"active\":"));
        assert_eq!(server.get("/"), "one");
        let peers = page("/9/http/upstreams/app");
        assert!(peers.contains("\"requests\":1,"), "it counts from the first page on: {peers}");
        assert_eq!(page("/9/http/upstreams/?fields="), "[\"app\"]");
        assert!(page("/metrics").contains("\nnginx_http_requests_total 1\n"));
        assert!(whole(&server, "GET", "/metrics", "", "").1.contains("Content-Type: text/plain;"));
        assert!(page("/tree/http/upstreams/app").contains("\"peers\":{\"127.0.0.1:"));
        for path in ["/none", "/10/http", "/tree/none", "/9/http/upstreams/none"] {
            let (status, refused) = get(path);
            assert_eq!((status, refused.contains("\"code\":\"")), (404, true), "{path}: {refused}");
        }
    }
}

#[test]
fn the_status_tells_the_last_reload() {
    for globals in ["", "master_process off;"] {
        let one = backend("one");
        let server = proxy(globals, &format!("server {one};"));
        let status = || request(&server, "GET", "/status", "").1;
        assert!(status().contains("\"last_reload\":null"), "{}", status());
        let text = server.folder.read("nginx.conf");
        server.folder.write("nginx.conf", text.replace("proxy_pass", "proxy_pas"));
        server.signal("HUP");
        let failed = "\"last_reload\":{\"success\":false,\"time\":\"";
        let told = eventually("a result", || Some(status()).filter(|told| told.contains(failed)));
        assert!(told.contains("\"message\":\"[emerg] unknown directive"), "{told}");
        server.folder.write("nginx.conf", text);
        assert_eq!(request(&server, "POST", "/reload", "").0, 200);
        assert!(status().contains("\"last_reload\":{\"success\":true,"), "{}", status());
    }
}

#[test]
fn counters_begin_anew() {
    const ZERO_HANDSHAKES: &str = "{\"handshakes\":0,\"handshakes_failed\":0,\"session_reuses\":0}";
    for globals in ["worker_processes 2;", "master_process off;"] {
        let one = backend("one");
        let server = proxy(globals, &format!("server {one};"));
        let (group, requests) = ("/9/http/upstreams/app", "/9/http/requests");
        let page = |path: &str| request(&server, "GET", path, "").1;
        page(group);
        (0..3).for_each(|_| assert_eq!(server.get("/"), "one"));
        assert!(page(group).contains("\"requests\":3,"), "{}", page(group));
        assert_eq!(request(&server, "DELETE", group, ""), (204, String::new()));
        let peers = page(group);
        assert!(peers.contains("\"requests\":0,") && peers.contains("\"received\":0,"), "{peers}");
        assert_eq!(request(&server, "DELETE", requests, "").0, 204);
        assert_eq!(server.get("/"), "one");
        let shown = eventually("the end of the request", || {
            Some(page(requests)).filter(|shown| shown.contains("\"current\":0"))
        });
        assert!(shown.contains("\"total\":1,"), "{shown}");
        assert!(page(group).contains("\"requests\":1,"), "{}", page(group));
        server.await_log("the counters of http/upstreams/app begin anew, by user", 1);
        assert_eq!(request(&server, "DELETE", "/9/ssl", "").0, 204);
        assert_eq!(page("/9/ssl"), ZERO_HANDSHAKES);
        for path in ["http/upstreams/none", "http/server_zones/none", "slabs/none", "ssl/x"] {
            let (status, refused) = request(&server, "DELETE", &format!("/9/{path}"), "");
            assert_eq!((status, refused.contains("\"code\":\"")), (404, true), "{path}: {refused}");
        }
    }
}

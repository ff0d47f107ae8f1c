//! Tables of `keyval` in the running program: read from their files, and kept over reloads.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use testing::{PATIENCE, Server, body, complaint, eventually, is_root, kill};

/// Two workers that say what they find for the client's address, in a zone of that size.
fn site(size: &str) -> String {
    format!(
        "keyval_zone zone=z:{size} type=ip state=z.json;
         keyval $remote_addr $found zone=z;
         server {{ listen ADDRESS; return 200 [$found]; }}"
    )
}

#[test]
fn a_new_zone_begins_with_its_file_and_a_reload_keeps_it() {
    let globals = "worker_processes 2;";
    let server = Server::start_with(|folder, address| {
        folder.write("z.json", "{\n\"127.0.0.0/8\": \"kept\"\n}\n");
        folder.configure(address, &format!("events {{}} {globals}"), &site("32k"));
    });
    assert_eq!(server.get("/"), "[kept]");
    server.folder.write("z.json", "{\n\"127.0.0.0/8\": \"new\"\n}\n");
    server.reload();
    assert_eq!(server.get("/"), "[kept]");
    server.configure(globals, &site("64k"));
    server.reload();
    assert_eq!(server.get("/"), "[new]");
    server.folder.write("z.json", "{\n\"localhost\": \"new\"\n}\n");
    server.signal("HUP");
    server.await_log("\"localhost\" is neither an address nor a network in ", 1);
    assert_eq!(server.get("/"), "[new]");
}

#[test]
fn a_broken_file_is_an_error_of_the_test_with_its_line() {
    let server = Server::start("", "server { listen ADDRESS; }");
    server.configure("", &site("32k"));
    let test = || complaint(&server.folder.run(&["-t", "-c", "nginx.conf"]));
    let said = test();
    assert!(said.contains("test is successful"), "{said}");
    server.folder.write("z.json", "{\n\"::1\": \"1\",\n\"::2\"\n}\n");
    let said = test();
    let place = format!("a colon is expected in {}:4", server.folder.name("z.json"));
    assert!(said.contains(&place) && said.contains("test failed"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn the_api_shows_tables() {
    let server = Server::start_with(|folder, address| {
        folder.write("z.json", "{\n\"127.0.0.0/8\": \"a\\\"b\"\n}\n");
        let site = "keyval_zone zone=z:32k type=ip state=z.json;
            server { listen ADDRESS; location /api { api; } }";
        folder.configure(address, "events {}", site);
    });
    let ask = |path: &str| server.get(&format!("/api/9/http/keyvals{path}"));
    assert_eq!(ask("/"), r#"{"z":{"127.0.0.0/8":"a\"b"}}"#);
    assert_eq!(ask("/?fields="), r#"["z"]"#);
    assert_eq!(ask("/z?key=127.0.0.0%2f8"), r#"{"127.0.0.0/8":"a\"b"}"#);
    assert!(ask("/z?key=127.0.0.1").contains(r#""code":"KeyvalKeyNotFound""#));
    assert!(ask("/y?key=a").contains(r#""code":"KeyvalNotFound""#));
    assert!(ask("/y").contains(r#""code":"KeyvalNotFound""#));
}

#[test]
fn sessions_of_stream_have_tables_too() {
    let server = Server::start_with(|folder, address| {
        folder.write("z.json", "{\"127.\": \"hello\"}");
        let stream = "stream {
                keyval_zone zone=z:32k type=prefix state=z.json;
                keyval $remote_addr $greeting zone=z;
                server { listen ADDRESS; return $greeting; }
            }";
        let user = if is_root() { "user root;" } else { "" };
        let conf = format!("{user} pid nginx.pid; daemon off; events {{}} {stream}");
        folder.write("nginx.conf", conf.replace("ADDRESS", address));
    });
    let mut said = String::new();
    server.connect().read_to_string(&mut said).unwrap();
    assert_eq!(said, "hello");
}

const JSON: &str = "Content-Type: application/json\r\n";

/// Sends a request; the status and the body of the reply.
fn exchange(mut stream: impl Read + Write, method: &str, path: &str, json: &str) -> (u16, String) {
    let length = json.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: weir.test\r\nConnection: close\r\n{JSON}\
         Content-Length: {length}\r\n\r\n{json}"
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    (reply[9..12].parse().unwrap(), body(&reply).to_owned())
}

/// A server with a table, an API and a control socket.
struct Steered(Server);

impl Steered {
    fn start(globals: &str, zone: &str) -> Self {
        Self(Server::start_with(|folder, address| {
            let globals = format!("events {{}} control_socket unix:DIR/ctl; {globals}");
            let globals = globals.replace("DIR", &folder.to_string_lossy());
            folder.configure(address, &globals, &Self::site(zone));
        }))
    }

    fn site(zone: &str) -> String {
        format!(
            "keyval_zone zone=z:{zone};
             keyval $arg_k $found zone=z;
             server {{
                 listen ADDRESS;
                 location / {{ return 200 [$found]; }}
                 location /api {{ api write=on; client_body_buffer_size 1k; }}
             }}"
        )
    }

    fn configure(&self, globals: &str, zone: &str) {
        let folder = self.0.folder.to_string_lossy().into_owned();
        let globals = format!("control_socket unix:{folder}/ctl; {globals}");
        self.0.configure(&globals, &Self::site(zone));
    }

    fn found(&self, key: &str) -> String {
        self.0.get(&format!("/?k={key}"))
    }

    /// Sends a request to the location.
    fn ask(&self, method: &str, path: &str, json: &str) -> (u16, String) {
        let stream = self.0.connect();
        exchange(stream, method, &format!("/api/9/http/keyvals/{path}"), json)
    }

    /// Sends a request to the control socket.
    fn control(&self, method: &str, path: &str, json: &str) -> (u16, String) {
        let socket = self.0.folder.join("ctl");
        let stream = eventually("the socket", || UnixStream::connect(&socket).ok());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        exchange(stream, method, &format!("/9/http/keyvals/{path}"), json)
    }
}

#[test]
fn the_api_changes_tables() {
    for globals in ["worker_processes 2;", "master_process off;"] {
        let server = Steered::start(globals, "32k timeout=1h");
        let done = |(status, json): (u16, String)| {
            assert_eq!(json, "");
            status
        };
        assert_eq!(done(server.ask("POST", "z", r#"{"a":"1","b":"2","c/d":"3"}"#)), 201);
        assert_eq!([server.found("a"), server.found("c/d")], ["[1]", "[3]"]);
        assert_eq!(done(server.control("PATCH", "z", r#"{"a":"one"}"#)), 204);
        assert_eq!(server.found("a"), "[one]");
        assert_eq!(done(server.ask("PATCH", "z", r#"{"a":null}"#)), 204);
        assert_eq!(done(server.control("DELETE", "z/c%2fd", "")), 204);
        assert_eq!(
            [server.found("a"), server.found("b"), server.found("c/d")],
            ["[]", "[2]", "[]"]
        );
        assert_eq!(done(server.control("POST", "z", r#"{"e":{"value":"4","expire":1}}"#)), 201);
        eventually("an end of the entry", || (server.found("e") == "[]").then_some(()));
        server.0.await_log("keyval zone \"z\": key \"a\" was removed, by client 127.0.0.1", 1);
        let long = "x".repeat(4000);
        assert_eq!(done(server.ask("POST", "z", &format!("{{\"f\":\"{long}\"}}"))), 201);
        assert_eq!(server.found("f"), format!("[{long}]"));
        for (method, path, json, code) in [
            ("POST", "z", r#"{"b":"1"}"#, "KeyvalKeyExists"),
            ("PATCH", "z", r#"{"none":"1"}"#, "KeyvalKeyNotFound"),
            ("DELETE", "z/none", "", "KeyvalKeyNotFound"),
            ("DELETE", "z?key=b", "", "KeyvalFormatError"),
            ("POST", "none", r#"{"b":"1"}"#, "KeyvalNotFound"),
            ("PUT", "z", "{}", "MethodDisabled"),
        ] {
            for (status, refused) in
                [server.ask(method, path, json), server.control(method, path, json)]
            {
                assert!(refused.contains(&format!("\"code\":\"{code}\"")), "{status} {refused}");
            }
        }
        assert_eq!(done(server.ask("DELETE", "z", "")), 204);
        assert_eq!([server.found("b"), server.found("f")], ["[]", "[]"]);
    }
}

#[test]
fn changes_of_tables_reach_every_worker_process() {
    let server = Steered::start("", "32k");
    assert_eq!(server.control("POST", "z", r#"{"a":"1"}"#).0, 201);
    kill(server.0.worker_process(), "KILL");
    server.0.await_log("start worker process ", 2);
    assert_eq!(server.found("a"), "[1]", "the next process has it");
    server.configure("worker_processes 2;", "32k");
    server.0.reload();
    assert_eq!(server.found("a"), "[1]", "and that of other settings");
    server.configure("worker_processes 2;", "64k");
    server.0.signal("HUP");
    server.0.await_log("generation 2 of worker process", 1);
    assert_eq!(server.found("a"), "[]", "a table of another size begins anew");
    assert_eq!(server.control("POST", "z", r#"{"a":"2"}"#).0, 201);
    assert_eq!(server.found("a"), "[2]");
}

#[test]
fn the_state_file_has_each_change_that_was_answered() {
    let server = Steered::start("", "32k timeout=1h state=z.json");
    let state = || server.0.folder.read("z.json");
    assert_eq!(server.control("POST", "z", r#"{"a":"1"}"#).0, 201);
    assert!(state().starts_with("{\n\"a\": {\"value\": \"1\", \"expires_at\": "), "{}", state());
    server.configure("", "32k state=y.json");
    server.0.reload();
    let kept = || std::fs::read_to_string(server.0.folder.join("y.json")).ok();
    eventually("the other file", || kept().filter(|text| text.contains("\"a\"")));
    assert_eq!(server.control("PATCH", "z", r#"{"a":"2"}"#).0, 204);
    assert_eq!(kept().unwrap(), "{\n\"a\": \"2\"\n}\n");
    std::fs::remove_file(server.0.folder.join("y.json")).unwrap();
    std::fs::create_dir(server.0.folder.join("y.json")).unwrap();
    let (status, refused) = server.control("DELETE", "z", "");
    assert_eq!((status, refused.contains("StateNotWritten")), (500, true), "{refused}");
    assert_eq!(server.found("a"), "[2]");
}

#[test]
fn weir_ctl_shows_and_changes_tables() {
    let server = Steered::start("", "32k timeout=1h");
    let conf = server.0.folder.name("nginx.conf");
    let weir = |arguments: &[&str]| {
        let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("weir");
        let mut command = std::process::Command::new(program);
        command.args(["ctl", "-c", &conf]).args(arguments);
        testing::output(command)
    };
    let says = |arguments: &[&str]| {
        let output = weir(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", complaint(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    eventually("an open socket", || server.0.folder.join("ctl").exists().then_some(()));
    assert_eq!(says(&["keyval", "list"]), "z\n");
    assert_eq!(says(&["keyval", "set", "z", "a/b", "1"]), "");
    assert_eq!(says(&["keyval", "set", "z", "a/b", "2", "expire=1h"]), "");
    assert_eq!(says(&["keyval", "get", "z", "a/b"]), "2\n");
    assert_eq!(says(&["keyval", "list", "z"]), "a/b\t2\n");
    assert_eq!(says(&["--json", "keyval", "list", "z"]), "{\"a/b\":\"2\"}\n");
    assert_eq!(server.found("a/b"), "[2]");
    assert_eq!(says(&["keyval", "delete", "z", "a/b"]), "");
    let unknown = weir(&["keyval", "get", "z", "a/b"]);
    assert!(complaint(&unknown).contains("keyval key not found"), "{}", complaint(&unknown));
    assert!(complaint(&weir(&["keyval", "get", "z"])).contains("wrong arguments of \"keyval\""));
}

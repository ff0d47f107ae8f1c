//! Tables of `keyval` in the running program: read from their files, and kept over reloads.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Read;

use testing::{Server, complaint, is_root};

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

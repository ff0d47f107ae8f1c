//! Replies that are saved as files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use testing::Folder;

use crate::backend::testing::{TestBackend, TestPeer};
use crate::h1::tests::{PATIENCE, Server};

fn server(folder: &Folder, backend: &TestBackend, lines: &str) -> Server {
    let (address, folder) = (backend.address(), folder.display());
    Server::start(format!(
        "error_log e.log; server {{ root {folder}/root; proxy_temp_path {folder}/temp 1;
         location / {{ proxy_pass http://{address}; proxy_store on; {lines} }} }}"
    ))
}

/// The number of temporary files.
fn temporary(folder: &Folder) -> usize {
    fn files(folder: &Path) -> usize {
        let entries = fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
        entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
    }
    files(&folder.join("temp"))
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_complete_reply_is_stored_before_the_client_has_it() {
    let long = "x".repeat(300_000);
    for (framing, body) in [
        ("Content-Length: 5\n\nhello".to_owned(), "hello"),
        ("Content-Length: 0\n\n".to_owned(), ""),
        ("Transfer-Encoding: chunked\n\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n".to_owned(), "abc"),
        (format!("\n{long}"), &*long),
        (format!("Content-Length: 300000\n\n{long}"), &*long),
    ] {
        let folder = Folder::new();
        let modified = "Last-Modified: Mon, 28 Sep 1970 06:00:00 GMT";
        let reply = format!("HTTP/1.1 200 OK\n{modified}\n{framing}");
        let backend = TestBackend::playing(move |mut peer| {
            peer.request();
            peer.send(&reply);
        });
        let server = server(&folder, &backend, "proxy_store_access user:rw group:rw all:r;");
        let got = server.ask("GET /a/b%20c?d HTTP/1.0\r\n\r\n");
        let is_whole = got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with(body);
        assert!(is_whole, "{framing:.80}: {} bytes, {got:.300} {:?}", got.len(), server.log());
        assert_eq!(folder.read("root/a/b c"), body, "{framing}");
        let known = fs::metadata(folder.join("root/a/b c")).unwrap();
        assert_eq!(known.permissions().mode() & 0o777, 0o664);
        let time = known.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(time.as_secs(), 23_349_600);
        assert_eq!(temporary(&folder), 0);
    }
}

#[test]
fn errors_and_incomplete_replies_are_not_stored() {
    for (request, reply, lines) in [
        ("GET", "HTTP/1.1 404 Not Found\nContent-Length: 1\n\na", ""),
        ("GET", "HTTP/1.1 200 OK\nContent-Length: 9\n\na", ""),
        ("HEAD", "HTTP/1.1 200 OK\n\n", ""),
        ("GET", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", "proxy_buffering off;"),
        (
            "GET",
            "HTTP/1.1 200 OK\nX-Accel-Redirect: /x\nContent-Length: 1\n\na",
            "proxy_method PUT;",
        ),
    ] {
        let folder = Folder::new();
        let backend = TestBackend::playing(move |mut peer| {
            let asked = peer.request();
            if asked.is_some_and(|asked| asked.contains(" /a ")) {
                peer.send(reply);
            }
        });
        server(&folder, &backend, lines).ask(&format!("{request} /a HTTP/1.0\r\n\r\n"));
        let is_stored = folder.join("root/a").exists();
        assert_eq!((is_stored, temporary(&folder)), (false, 0), "{request} {reply}");
    }
}

#[test]
fn a_computed_path_may_be_empty_or_invalid() {
    let folder = Folder::new();
    let backend = TestBackend::replying("HTTP/1.1 200 OK\nX-Name: n\nContent-Length: 1\n\na");
    let at = format!("{}/$arg_x/$upstream_http_x_name", folder.display());
    let (address, dot) = (backend.address(), folder.join("root"));
    let server = Server::start(format!(
        "error_log e.log; server {{ proxy_temp_path {}/temp;
         location / {{ proxy_pass http://{address}; proxy_store {at}; }}
         location /empty {{ proxy_pass http://{address}; proxy_store $arg_none; }}
         location /root {{ proxy_pass http://{address}; proxy_store {}; }} }}",
        folder.display(),
        dot.display(),
    ));
    server.ask("GET /?x=y HTTP/1.0\r\n\r\n");
    assert_eq!(folder.read("y/n"), "a");
    assert!(server.ask("GET /empty HTTP/1.0\r\n\r\n").ends_with("\r\n\r\na"));
    fs::create_dir_all(&dot).unwrap();
    assert!(server.ask("GET /root HTTP/1.0\r\n\r\n").ends_with("\r\n\r\na"));
    let log = server.log().pop().unwrap();
    let to = format!(
        "\" to \"{}\" failed (21: Is a directory) while reading upstream, client: ",
        dot.display()
    );
    assert!(log.starts_with("rename() \"") && log.contains(&to), "{log}");
    assert_eq!(temporary(&folder), 0);
}

#[test]
fn a_stored_reply_survives_a_client_that_leaves() {
    let folder = Folder::new();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let backend = TestBackend::playing(move |mut peer: TestPeer| {
        peer.request();
        peer.send("HTTP/1.1 200 OK\nContent-Length: 300000\n\n");
        peer.send_raw("x".repeat(100_000));
        wait.lock().unwrap().recv().unwrap();
        peer.send_raw("x".repeat(200_000));
    });
    let server = server(&folder, &backend, "");
    let mut client = server.connect();
    client.head("GET /a HTTP/1.0\n");
    client.expect_some();
    drop(client);
    assert!(!folder.join("root/a").exists());
    go.send(()).unwrap();
    wait_until("stored", || folder.join("root/a").exists());
    assert_eq!(folder.read("root/a").len(), 300_000);
    assert_eq!(temporary(&folder), 0);
}

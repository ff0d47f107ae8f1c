//! What the program serves where it has no configuration.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::process::{Command, Output};
use std::thread;

use testing::{Folder, Server, complaint};

const ADDRESS: &str = "127.0.0.1:8080";

/// `weir -T -q`, whose temporary files are in the folder.
fn dump(folder: &Folder) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let arguments = ["-T", "-q", "--port", "8080"];
    command.args(arguments).env("TMPDIR", folder).output().unwrap()
}

/// The same configuration at an address of the test's, since the built-in ones may be taken.
fn configuration(folder: &Folder) -> String {
    let text = String::from_utf8(dump(folder).stdout).unwrap();
    let text = text.replace(ADDRESS, "ADDRESS").replace("127.0.0.2:8080", "unix:DIR/blue.sock");
    let text = text.replace("127.0.0.3:8080", "unix:DIR/green.sock");
    let text = text.replace("error_log stderr;", "error_log DIR/error.log notice;");
    text.replace("events {}", "events {} pid nginx.pid;")
}

#[test]
fn the_built_in_configuration_is_printed_without_creating_files() {
    let folder = Folder::new();
    let output = dump(&folder);
    // That the address is taken on this machine is fine.
    assert!(output.status.success(), "{}", complaint(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("listen {ADDRESS};")), "{text}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn the_built_in_page_links_to_two_balanced_backends() {
    let server = Server::start_as(&configuration(&Folder::new()));
    let page = server.get("/");
    assert!(page.contains("It works.") && page.contains("<a href=\"/balanced/\">"), "{page}");
    let answers = [(); 4].map(|()| server.get("/balanced/"));
    assert_eq!(answers[..2], ["blue answered\n", "green answered\n"]);
    assert_eq!(answers[..2], answers[2..]);
}

#[test]
fn the_built_in_dashboard_shows_the_built_in_sites() {
    let server = Server::start_as(&configuration(&Folder::new()));
    server.get("/balanced/");
    assert!(server.get("/").contains("<a href=\"/dashboard/\">"));
    assert!(server.get("/dashboard/").contains("<title>Weir</title>"));
    let data = server.get("/dashboard/data");
    for name in ["welcome", "balanced", "blue", "green", "backends"] {
        assert!(data.contains(&format!("\"{name}\":{{")), "{name} in {data}");
    }
}

#[test]
fn each_built_in_backend_has_two_requests_at_a_time() {
    let server = Server::start_as(&configuration(&Folder::new()));
    let answers = thread::scope(|scope| {
        let clients = [(); 6].map(|()| scope.spawn(|| server.get("/balanced/slow")));
        clients.map(|client| client.join().unwrap())
    });
    let of = |name: &str| answers.iter().filter(|answer| answer.starts_with(name)).count();
    let (blue, green) = (of("blue took"), of("green took"));
    assert!(blue + green == answers.len() && blue.min(green) >= 2, "{answers:?}");
    // Four were given a server at once, two when one came free.
    assert_eq!(server.log().matches("request is queued at position").count(), 2);
}

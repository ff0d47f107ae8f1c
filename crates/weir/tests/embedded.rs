//! What the program serves where it has no configuration.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use server::{Folder, Server, complaint};

const ADDRESS: &str = "127.0.0.1:8080";

/// `weir -T -q`, whose temporary files are in the folder; none where this machine has a
/// configuration.
fn dump(folder: &Folder) -> Option<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = command.args(["-T", "-q"]).env("TMPDIR", folder.path()).output().unwrap();
    (!Path::new("/etc/weir/nginx.conf").exists()).then_some(output)
}

/// The same configuration at an address of the test's, since the built-in one may be taken.
fn configuration(folder: &Folder) -> Option<String> {
    let text = String::from_utf8(dump(folder)?.stdout).unwrap();
    let (_, socket) = text.split_once("\"unix:").unwrap();
    let home = Path::new(socket.split('"').next().unwrap()).parent().unwrap();
    let text = text.replace(home.to_str().unwrap(), "DIR").replace(ADDRESS, "ADDRESS");
    Some(text.replace("weir.pid", "nginx.pid"))
}

#[test]
fn it_is_printed_and_leaves_nothing_behind() {
    let folder = Folder::new();
    fs::remove_dir(folder.join("logs")).unwrap();
    let Some(output) = dump(&folder) else { return };
    // That the address is taken on this machine is fine.
    assert!(output.status.success(), "{}", complaint(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("listen {ADDRESS};")), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn its_page_tells_of_two_backends_that_take_turns() {
    let Some(text) = configuration(&Folder::new()) else { return };
    let server = Server::start_as(&text);
    let page = server.get("/");
    assert!(page.contains("It works.") && page.contains("<a href=\"/balanced/\">"), "{page}");
    let answers = [(); 4].map(|()| server.get("/balanced/"));
    assert_eq!(answers[..2], ["blue answered\n", "green answered\n"]);
    assert_eq!(answers[..2], answers[2..]);
}

#[test]
fn each_backend_has_two_requests_at_a_time_and_the_rest_waits() {
    let Some(text) = configuration(&Folder::new()) else { return };
    let server = Server::start_as(&text);
    let begin = Instant::now();
    let answers = thread::scope(|scope| {
        let clients = [(); 6].map(|()| scope.spawn(|| server.get("/balanced/slow")));
        clients.map(|client| client.join().unwrap())
    });
    let of = |name: &str| answers.iter().filter(|answer| answer.starts_with(name)).count();
    let (blue, green) = (of("blue took"), of("green took"));
    assert!(blue + green == answers.len() && blue.min(green) >= 2, "{answers:?}");
    // Four in one second, two in the next.
    assert!(begin.elapsed() > Duration::from_millis(1500), "{:?}", begin.elapsed());
}

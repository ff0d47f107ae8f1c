//! `weir` and `weir-discover` together: lists in files, the server, requests.
//!
//! Cargo builds only this crate's programs for a test, so the discovery is this test's own program
//! once more: it runs the other one's library ([`plays_discovery`]).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;

use testing::{Folder, PATIENCE, Running, body, eventually};

const ARGUMENTS: &str = "WEIR_TEST_DISCOVERY";

/// Is the discovery where a test has started it, and nothing elsewhere.
#[test]
fn plays_discovery() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    let _ = discover::run(&arguments);
    // Its standard output is not that of a test.
    std::process::exit(1);
}

/// A server that answers with its name.
fn backend(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = move |mut stream: TcpStream| {
        // A client that has gone is no concern of the backend.
        let _ = stream.read(&mut [0; 4096]);
        let reply = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
        let _ = stream.write_all(reply.as_bytes());
    };
    thread::spawn(move || listener.incoming().flatten().for_each(answer));
    address
}

/// A folder with lists, and the programs that run there.
struct Pair {
    folder: Folder,
    server: Running,
    discovery: Option<Running>,
}

impl Pair {
    /// Starts both; lists are `NAME TEXT`.
    fn start(groups: &[&str]) -> Self {
        let folder = Folder::new();
        let blocks = groups.iter().map(|name| {
            let state = folder.name(&format!("{name}.state"));
            format!("upstream {name} {{ state {state}; }}\n")
        });
        let places = groups
            .iter()
            .map(|name| format!("location = /{name} {{ proxy_pass http://{name}; }}\n"));
        let (blocks, places) = (blocks.collect::<String>(), places.collect::<String>());
        let (pid, log) = (folder.name("weir.pid"), folder.name("error.log"));
        let (control, listen) = (folder.name("control.sock"), folder.name("http.sock"));
        folder.write(
            "nginx.conf",
            format!(
                "daemon off; pid {pid}; error_log {log} info; control_socket unix:{control};
                 events {{}}
                 http {{
                     access_log off; {blocks}
                     server {{ listen unix:{listen}; {places} }}
                 }}"
            ),
        );
        std::fs::create_dir(folder.join("lists")).unwrap();
        let server = serve(&folder);
        Self { folder, server, discovery: None }
    }

    fn discover(&mut self) {
        self.discovery = Some(self.discovery("--empty-after 100ms"));
    }

    fn discovery(&self, options: &str) -> Running {
        let (lists, socket) = (self.folder.name("lists"), self.folder.name("control.sock"));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["plays_discovery", "--exact", "--nocapture"]);
        command.env(ARGUMENTS, format!("files {lists} -s unix:{socket} {options}"));
        let log = self.folder.join("discovery.log");
        let log = std::fs::File::options().append(true).create(true).open(log).unwrap();
        Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    /// Replaces a list at once.
    fn list(&self, group: &str, text: impl std::fmt::Display) {
        let next = self.folder.write("lists/next.tmp", text.to_string());
        std::fs::rename(next, self.folder.join(format!("lists/{group}.txt"))).unwrap();
    }

    /// Kills the master process and its worker processes, which would outlive it.
    fn kill_server(&mut self) {
        let children = format!("/proc/{0}/task/{0}/children", self.server.0.id());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let _ = self.server.0.kill();
        let _ = self.server.0.wait();
        children.split_whitespace().for_each(|pid| testing::kill(pid.parse().unwrap(), "KILL"));
    }

    /// Ends the server as a crash of the machine does.
    fn crash(&mut self) {
        self.kill_server();
        for socket in ["control.sock", "http.sock"] {
            std::fs::remove_file(self.folder.join(socket)).unwrap();
        }
    }

    /// The body of a reply, or the whole reply if it is an error.
    fn ask(&self, group: &str) -> String {
        let reply = self.request("http.sock", &format!("GET /{group}"), "");
        if reply.starts_with("HTTP/1.1 200") { body(&reply).to_owned() } else { reply }
    }

    fn request(&self, socket: &str, line: &str, json: &str) -> String {
        let socket = self.folder.join(socket);
        let mut stream = eventually("the socket", || UnixStream::connect(&socket).ok());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = json.len();
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    fn await_answer(&self, group: &str, expected: &str) {
        eventually(&format!("{expected} from {group}"), || {
            (self.ask(group) == expected).then_some(())
        });
    }

    fn upstreams(&self) -> String {
        body(&self.request("control.sock", "GET /upstreams", "")).to_owned()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.kill_server();
    }
}

fn serve(folder: &Folder) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("-c").arg(folder.join("nginx.conf")).stdin(Stdio::null());
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn lists_in_files_reach_requests() {
    let (one, two) = (backend("one"), backend("two"));
    let mut pair = Pair::start(&["app", "api"]);
    pair.list("app", one);
    pair.list("api", two);
    pair.discover();
    pair.await_answer("app", "one");
    pair.await_answer("api", "two");
    pair.list("app", two);
    pair.await_answer("app", "two");
    pair.list("app", "no server at all");
    pair.list("api", one);
    eventually("the error", || {
        pair.folder.read("discovery.log").contains("app.txt: line 1").then_some(())
    });
    assert_eq!((pair.ask("app"), pair.ask("api")), ("two".into(), "two".into()), "all is refused");
    pair.list("app", one);
    pair.await_answer("app", "one");
    pair.await_answer("api", "one");
}

#[test]
fn a_server_that_was_killed_has_its_lists_and_gets_new_ones() {
    let (one, two) = (backend("one"), backend("two"));
    let mut pair = Pair::start(&["app"]);
    pair.list("app", one);
    pair.discover();
    pair.await_answer("app", "one");
    pair.crash();
    pair.list("app", two);
    eventually("the discovery notices", || {
        pair.folder.read("discovery.log").contains("the server does not answer").then_some(())
    });
    pair.server = serve(&pair.folder);
    let first = pair.ask("app");
    assert!(["one", "two"].contains(&&*first), "{first}");
    pair.await_answer("app", "two");
    eventually("the owner", || pair.upstreams().contains("\"owner\":\"files\"").then_some(()));
}

#[test]
fn a_discovery_that_was_killed_leaves_its_lists_and_the_next_one_goes_on() {
    let (one, two) = (backend("one"), backend("two"));
    let mut pair = Pair::start(&["app", "gone"]);
    pair.list("app", one);
    pair.list("gone", one);
    pair.discover();
    pair.await_answer("app", "one");
    pair.await_answer("gone", "one");
    drop(pair.discovery.take());
    pair.list("app", two);
    std::fs::remove_file(pair.folder.join("lists/gone.txt")).unwrap();
    assert_eq!((pair.ask("app"), pair.ask("gone")), ("one".into(), "one".into()));
    pair.discover();
    pair.await_answer("app", "two");
    eventually("the group that is not named any more has no owner", || {
        (pair.upstreams().matches("\"owner\":\"files\"").count() == 1).then_some(())
    });
    assert!(pair.ask("gone").starts_with("HTTP/1.1 502"));
}

#[test]
fn a_group_has_one_owner() {
    let (one, two) = (backend("one"), backend("two"));
    let mut pair = Pair::start(&["app"]);
    pair.list("app", one);
    pair.discover();
    pair.await_answer("app", "one");
    let servers = "/9/http/upstreams/app/servers";
    let other = format!("[{{\"server\":\"{two}\"}}]");
    let refused = pair.request("control.sock", &format!("PUT {servers}"), &other);
    assert!(refused.starts_with("HTTP/1.1 409") && refused.contains("UpstreamOwned"), "{refused}");
    let mut second = pair.discovery("--once -o second");
    let status = eventually("its end", || second.0.try_wait().unwrap());
    assert!(!status.success());
    let log = pair.folder.read("discovery.log");
    assert!(log.contains("belong to \"files\""), "{log}");
    assert_eq!(pair.ask("app"), "one");
}

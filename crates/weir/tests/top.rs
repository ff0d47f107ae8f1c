//! `weir top --once` with servers that answer what a script says.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use testing::{Folder, Peer, Server, complaint, field};

fn top(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["top", "--once", "-d", "0.01"]).args(arguments);
    testing::output(command)
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", complaint(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn reply(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// A tree that is a second older and has 50 requests more each time.
fn tree(number: u64) -> String {
    let (now, requests) = (1_800_000_000_000 + number * 1000, number * 50);
    let body = format!(
        "{{\"weir\":{{\"version\":\"9.9\",\"now_at\":{now}}},\
         \"http\":{{\"requests\":{{\"total\":{requests}}},\"server_zones\":{{\"site\":\
         {{\"requests\":{{\"total\":{requests}}},\"responses\":{{\"200\":{requests}}}}}}}}}}}"
    );
    reply("200 OK", "application/json", &body)
}

/// A server whose data are at one path; all others answer 404.
fn serving(data: &'static str) -> Peer {
    let number = AtomicU64::new(0);
    Peer::answering(move |request| {
        let path = request.split(' ').nth(1).unwrap();
        match path == data {
            true => tree(number.fetch_add(1, Ordering::Relaxed)),
            false => reply("404 Not Found", "text/html", "<html>no</html>"),
        }
    })
}

#[test]
fn a_dashboard_is_found_with_and_without_a_slash() {
    for path in ["/dashboard/", "/dashboard"] {
        let peer = serving("/dashboard/data");
        let text = text(&top(&[&format!("http://{}{path}", peer.address)]));
        assert!(text.starts_with("Weir  9.9\nrequests 50/s "), "{text}");
        assert!(text.contains("\nsite                              50 "), "{text}");
    }
}

/// All three pages of one server say the same.
#[test]
fn a_real_server_is_shown_by_its_dashboard_and_its_apis() {
    let server = Server::start(
        "",
        "server { listen ADDRESS; status_zone site; location /x { return 204; }
         location /dashboard/ { dashboard; } location /api/ { api; }
         location /status/ { api /status/; } }",
    );
    server.get("/x");
    for path in ["/dashboard/", "/status/", "/api/"] {
        let text = text(&top(&[&format!("http://{}{path}", server.address)]));
        assert!(text.contains("\nsite "), "{path}: {text}");
        assert!(text.contains("\nno upstream servers: "), "{path}: {text}");
    }
}

#[test]
fn a_status_tree_is_asked_for_its_extensions() {
    let peer = serving("/status/?extended");
    let text = text(&top(&[&format!("{}/status/", peer.address)]));
    assert!(text.contains("requests 50/s "), "{text}");
}

#[test]
fn the_api_of_nginx_plus_is_read_path_by_path() {
    let number = AtomicU64::new(0);
    let peer = Peer::answering(move |request| {
        let body = match request.split(' ').nth(1).unwrap() {
            "/api/?extended" => "[1,2,9]".to_owned(),
            "/api/9/nginx" => "{\"version\":\"1.27.4\"}".to_owned(),
            "/api/9/connections" => "{\"active\":3,\"idle\":1}".to_owned(),
            "/api/9/http/requests" => {
                format!("{{\"total\":{}}}", number.fetch_add(7, Ordering::Relaxed))
            }
            _ => return reply("404 Not Found", "application/json", "{}"),
        };
        reply("200 OK", "application/json", &body)
    });
    let text = text(&top(&[&format!("http://{}/api/", peer.address)]));
    assert!(text.starts_with("NGINX Plus  1.27.4\nrequests "), "{text}");
    assert!(text.contains("connections 3   idle 1 "), "{text}");
}

#[test]
fn a_password_in_the_url_is_sent_and_not_shown() {
    let peer = Peer::answering(|request| match field(request, "Authorization") {
        Some("Basic YTpi") => tree(1),
        _ => reply("401 Unauthorized", "text/html", ""),
    });
    assert!(text(&top(&[&format!("http://a:b@{}/", peer.address)])).starts_with("Weir  9.9\n"));
    let refused = top(&[&format!("http://a:wrong@{}/x/", peer.address)]);
    let said = complaint(&refused);
    assert!(said.contains("answers 401") && !said.contains("wrong"), "{said}");
}

#[test]
fn what_is_wrong_is_said() {
    let peer = Peer::answering(|_| reply("200 OK", "text/html", "<html>hello</html>"));
    let nowhere = format!("http://{}/", testing::free_address());
    let folder = Folder::new();
    let no_socket = format!("unix:{}:/", folder.name("none.sock"));
    for (arguments, words) in [
        (&[&*format!("http://{}/", peer.address)][..], "no data at http://"),
        (&[&*nowhere], "unable to connect to "),
        (&[&*no_socket], "none.sock"),
        (&["tcp://127.0.0.1:1"], "is not the URL of an HTTP server"),
        (&["-d", "0"], "\"0\" is not a number of seconds"),
        (&["-d"], "needs a number of seconds"),
        (&["--onse"], "invalid option: \"--onse\""),
        (&["a", "b"], "unexpected argument \"b\""),
    ] {
        let output = top(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(complaint(&output).contains(words), "{arguments:?}: {}", complaint(&output));
    }
}

#[test]
fn a_pipe_is_not_a_terminal() {
    let peer = serving("/dashboard/data");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["top", &format!("http://{}/dashboard/", peer.address)]);
    let output = testing::output(command);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("--once prints to a pipe"), "{}", complaint(&output));
}

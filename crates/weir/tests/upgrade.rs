//! Binary upgrade: two masters, one set of sockets.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic, and tell why")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use testing::{Folder, PATIENCE, body, eventually, kill};

const GLOBALS: &str = "daemon on; events {}";
const OLD: &str = "nginx.pid.oldbin";

/// A server in the background, which listens on a Unix socket: its name is taken by nobody else.
struct Background(Folder);

impl Background {
    fn start(word: &str) -> Self {
        let background = Self(Folder::new());
        background.configure(word);
        let output = background.0.run(&["-c", "nginx.conf"]);
        assert!(output.status.success(), "{}", testing::complaint(&output));
        background
    }

    fn configure(&self, word: &str) {
        let http =
            format!("server {{ listen unix:DIR/a.sock; location / {{ return 200 {word}; }} }}");
        let stream = format!("stream {{ server {{ listen unix:DIR/s.sock; return {word}; }} }}");
        self.0.configure("", &format!("{GLOBALS} {stream}"), &http);
        let text = self.0.read("nginx.conf").replace("daemon off;\n", "");
        self.0.write("nginx.conf", &text);
    }

    fn get(&self) -> String {
        let mut stream = UnixStream::connect(self.0.join("a.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        body(&reply).to_owned()
    }

    /// The text that the server of `stream {}` returns.
    fn session(&self) -> String {
        let mut stream = UnixStream::connect(self.0.join("s.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn pid(&self) -> i32 {
        eventually("a pid file", || self.0.pid("nginx.pid"))
    }

    /// Starts the upgrade; answers the numbers of the old and the new master.
    fn upgrade(&self) -> (i32, i32) {
        let old = self.pid();
        kill(old, "USR2");
        let new = eventually("another pid file", || {
            self.0.pid("nginx.pid").filter(|new| *new != old && self.0.pid(OLD) == Some(old))
        });
        (old, new)
    }

    fn await_log(&self, words: &str) {
        eventually(words, || self.0.read("error.log").contains(words).then_some(()));
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0.read("error.log"));
        }
        // Both are read before either ends: the survivor takes the other's file.
        let masters: Vec<_> =
            ["nginx.pid", OLD].iter().filter_map(|name| self.0.pid(name)).collect();
        masters.into_iter().for_each(|pid| kill(pid, "TERM"));
        let gone =
            || (self.0.pid("nginx.pid").is_none() && self.0.pid(OLD).is_none()).then_some(());
        if !std::thread::panicking() {
            eventually("the end", gone);
        }
    }
}

#[test]
fn a_new_binary_takes_the_sockets_over() {
    let background = Background::start("old");
    assert_eq!((background.get(), background.session()), ("old".into(), "old".into()));
    background.configure("new");
    let (old, _) = background.upgrade();
    background.await_log("using inherited sockets from");
    kill(old, "QUIT");
    eventually("the old master's end", || background.0.pid(OLD).is_none().then_some(()));
    assert_eq!(background.get(), "new", "the socket's file is still there");
    assert_eq!(background.session(), "new");
}

#[test]
fn the_old_binary_takes_over_again_when_the_new_one_ends() {
    let background = Background::start("old");
    background.configure("new");
    let (old, new) = background.upgrade();
    kill(old, "WINCH");
    background.await_log("stop accepting connections");
    background.await_log("exited with code 0");
    assert_eq!((background.get(), background.session()), ("new".into(), "new".into()));
    kill(new, "TERM");
    eventually("the old name", || (background.pid() == old).then_some(()));
    assert_eq!((background.get(), background.session()), ("old".into(), "old".into()));
}

#[test]
fn a_second_change_is_ignored_while_both_run() {
    let background = Background::start("old");
    let (old, new) = background.upgrade();
    kill(old, "USR2");
    background.await_log("the changing binary signal is ignored");
    kill(new, "USR2");
    // Its own line: before that, the old master may not be gone.
    background.await_log(&format!("{new}#{new}: signal 12 (SIGUSR2) received from"));
    assert_eq!(background.0.pid("nginx.pid"), Some(new));
}

/// Sends a request to the control socket; the status of the reply, 0 without one, and its text.
fn control(background: &Background, method: &str, path: &str, json: &str) -> (u16, String) {
    let Ok(mut stream) = UnixStream::connect(background.0.join("ctl")) else {
        return (0, String::new());
    };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = json.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}"
    );
    let mut reply = String::new();
    // A master that ends closes the connection.
    let sent = stream.write_all(request.as_bytes());
    let _ = sent.and_then(|()| stream.read_to_string(&mut reply));
    (reply.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0), reply)
}

#[test]
fn an_upgrade_that_is_taken_back_keeps_the_changes_of_the_new_master() {
    const SERVERS: &str = "/9/http/upstreams/app/servers";
    let background = Background(Folder::new());
    let globals = format!("{GLOBALS} control_socket unix:DIR/ctl;");
    let http = "keyval_zone zone=z:32k state=z.json;
        keyval $request_method $found zone=z;
        upstream app { state app.conf; }
        server { listen unix:DIR/a.sock; return 200 [$found]; }";
    let folder = background.0.to_string_lossy().into_owned();
    background.0.configure("", &globals.replace("DIR", &folder), http);
    let text = background.0.read("nginx.conf").replace("daemon off;\n", "");
    background.0.write("nginx.conf", &text);
    assert!(background.0.run(&["-c", "nginx.conf"]).status.success());
    let changes = |method: &str, path: &str, json: &str, status: u16| {
        eventually("a reply", || {
            let (given, reply) = control(&background, method, path, json);
            // Between the two masters there is none, or 503.
            (given != 0 && given != 503).then(|| assert_eq!(given, status, "{reply}"))
        });
    };
    changes("POST", "/9/http/keyvals/z", r#"{"GET":"old"}"#, 201);
    changes("POST", SERVERS, r#"{"server":"10.0.0.1:1"}"#, 201);
    let (_, new) = background.upgrade();
    eventually("the new master's socket", || {
        control(&background, "GET", "/status", "")
            .1
            .contains(&format!("\"pid\":{new},"))
            .then_some(())
    });
    changes("PATCH", "/9/http/keyvals/z", r#"{"GET":"new"}"#, 204);
    changes("POST", SERVERS, r#"{"server":"10.0.0.2:1"}"#, 201);
    kill(new, "TERM");
    eventually("the old master", || background.0.pid(OLD).is_none().then_some(()));
    eventually("the new value", || (background.get() == "[new]").then_some(()));
    changes("PATCH", &format!("{SERVERS}/1"), r#"{"weight":2}"#, 200);
    let kept = background.0.read("app.conf");
    assert_eq!(kept, "server 10.0.0.1:1;\nserver 10.0.0.2:1 weight=2;\n");
}

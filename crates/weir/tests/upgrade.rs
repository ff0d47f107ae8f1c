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

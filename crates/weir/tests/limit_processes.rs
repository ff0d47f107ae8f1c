//! The limit towards a backend holds over all worker processes: the old and the new one of a reload
//! or an upgrade, and those that were killed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use server::counting::{Backend, reply, send};
use testing::{Folder, PATIENCE, Server, eventually, kill};

const LIMIT: usize = 3;

/// A site whose `/limit` tells which configuration is served.
fn site(backend: &Backend, word: &str, max: usize, queue: &str) -> String {
    format!(
        "upstream backend {{ server {} max_conns={max}; {queue} }}
         limit_upstream_log_level notice;
         server {{
             listen ADDRESS;
             location / {{ proxy_pass http://backend; }}
             location = /limit {{ return 200 {word}; }}
         }}",
        backend.address
    )
}

const QUEUE: &str = "queue 100 timeout=20s;";

/// Starts a server with so many requests in progress and waiting.
fn with_a_queue(backend: &Backend, waiting: usize) -> (Server, VecDeque<TcpStream>) {
    let server = Server::start("worker_processes 2;", &site(backend, "old", LIMIT, QUEUE));
    let mut sent: VecDeque<_> = (0..LIMIT).map(|_| send(&server, "/old")).collect();
    backend.await_in_progress(LIMIT);
    sent.extend((0..waiting).map(|_| send(&server, "/old")));
    server.await_log("limit upstream: request is queued", waiting);
    (server, sent)
}

/// Reloads into another worker process, and waits until that one alone accepts connections.
fn reload_into(server: &Server, globals: &str, http: &str) {
    const IN_A_ROW: usize = 20;
    let left = server.log().matches("gracefully shutting down").count();
    server.configure(globals, http);
    server.signal("HUP");
    server.await_log("gracefully shutting down", left + 1);
    eventually("what it serves", || {
        (0..IN_A_ROW).all(|_| server.get("/limit") == "new").then_some(())
    });
}

#[test]
fn a_reload_into_another_process_keeps_to_the_limit_and_answers_all_that_wait() {
    let mut changes = vec!["worker_processes 3;"];
    if testing::is_root() {
        changes.push("worker_processes 2; user nobody nogroup;");
    }
    for globals in changes {
        let backend = Backend::start();
        let (server, mut sent) = with_a_queue(&backend, 9);
        reload_into(&server, globals, &site(&backend, "new", LIMIT, QUEUE));
        sent.extend((0..9).map(|_| send(&server, "/new")));
        server.await_log("limit upstream: request is queued", 18);
        // One after the other, so that each that ends must be seen by whoever is next.
        for answered in 1..=sent.len() {
            backend.allow(1);
            let more = (sent.len() - answered).min(LIMIT);
            let came = (answered + LIMIT).min(sent.len());
            eventually("the next", || {
                let is_next = backend.counts(|c| c.came.len() == came && c.in_progress == more);
                is_next.then_some(())
            });
        }
        assert!(sent.into_iter().all(|stream| reply(stream).starts_with("HTTP/1.1 200 ")));
        let (most, came) = backend.counts(|counts| (counts.most, counts.came.clone()));
        assert_eq!((most, came.len()), (LIMIT, 2 * 9 + LIMIT), "{globals}");
        let first_new = came.iter().position(|path| path == "/new").unwrap();
        assert!(came[first_new..].contains(&"/old".to_owned()), "they take turns: {came:?}");
    }
}

#[test]
fn the_newest_configuration_s_maximum_holds_for_both() {
    let backend = Backend::start();
    let (server, sent) = with_a_queue(&backend, 4);
    reload_into(&server, "worker_processes 3;", &site(&backend, "new", 1, QUEUE));
    let new = send(&server, "/new");
    server.await_log("limit upstream: request is queued", 5);
    assert_eq!(backend.count_most_anew(), LIMIT);
    // Three of the old one are in progress still. Only the last of them lets another in.
    for left in [2, 1] {
        backend.allow(1);
        backend.await_in_progress(left);
    }
    assert_eq!(backend.counts(|counts| counts.came.len()), LIMIT);
    backend.count_most_anew();
    backend.allow(usize::MAX / 2);
    assert!(sent.into_iter().all(|stream| reply(stream).starts_with("HTTP/1.1 200 ")));
    assert!(reply(new).ends_with("/new"));
    assert_eq!(backend.counts(|counts| counts.most), 1);
}

#[test]
fn max_conns_without_a_queue_refuses_what_is_too_much_for_both() {
    let backend = Backend::start();
    let server = Server::start("worker_processes 2;", &site(&backend, "old", 2, ""));
    let mut sent: VecDeque<_> = (0..2).map(|_| send(&server, "/old")).collect();
    backend.await_in_progress(2);
    reload_into(&server, "worker_processes 3;", &site(&backend, "new", 2, ""));
    assert!(reply(send(&server, "/new")).starts_with("HTTP/1.1 502 "));
    backend.allow(1);
    // Which of them is answered is the backend's choice.
    backend.await_in_progress(1);
    let third = eventually("a place", || {
        let stream = send(&server, "/new");
        stream.set_nonblocking(true).unwrap();
        eventually("a reply or a place", || {
            let is_in = backend.counts(|counts| counts.came.len() == 3);
            (is_in || stream.peek(&mut [0]).is_ok()).then_some(())
        });
        stream.set_nonblocking(false).unwrap();
        backend.counts(|counts| counts.came.len() == 3).then_some(stream)
    });
    sent.push_back(third);
    assert!(reply(send(&server, "/new")).starts_with("HTTP/1.1 502 "));
    backend.allow(2);
    assert!(sent.into_iter().all(|stream| reply(stream).starts_with("HTTP/1.1 200 ")));
    assert_eq!(backend.counts(|counts| counts.most), 2);
}

#[test]
fn the_other_process_takes_over_the_slots_of_a_killed_one() {
    let backend = Backend::start();
    let (server, sent) = with_a_queue(&backend, 2);
    let old = server.worker_process();
    reload_into(&server, "worker_processes 3;", &site(&backend, "new", LIMIT, QUEUE));
    let new: Vec<_> = (0..LIMIT + 1).map(|_| send(&server, "/new")).collect();
    server.await_log("limit upstream: request is queued", 2 + new.len());
    assert_eq!(backend.counts(|counts| counts.came.len()), LIMIT);
    kill(old, "KILL");
    server.await_log(&format!("worker process {old} exited on signal 9"), 1);
    eventually("all slots", || backend.counts(|c| c.came.len() == 2 * LIMIT).then_some(()));
    backend.allow(usize::MAX / 2);
    assert!(new.into_iter().all(|stream| reply(stream).ends_with("/new")));
    drop(sent);
}

#[test]
fn ten_killed_processes_lose_no_slots() {
    let backend = Backend::start();
    let server = Server::start("worker_processes 2;", &site(&backend, "old", LIMIT, QUEUE));
    let mut lost = Vec::new();
    for killed in 1..=10 {
        lost.extend((0..LIMIT + 2).map(|_| send(&server, "/lost")));
        eventually("all slots", || {
            backend.counts(|counts| counts.came.len() == LIMIT * killed).then_some(())
        });
        server.await_log("limit upstream: request is queued", 2 * killed);
        kill(server.worker_process(), "KILL");
        server.await_log("exited on signal 9", killed);
        server.await_log("start worker process ", killed + 1);
    }
    let sent: Vec<_> = (0..LIMIT + 1).map(|_| send(&server, "/sent")).collect();
    server.await_log("limit upstream: request is queued", 21);
    eventually("all slots", || {
        backend.counts(|counts| counts.came.len() >= 11 * LIMIT).then_some(())
    });
    assert_eq!(backend.counts(|counts| counts.came.len()), 11 * LIMIT);
    backend.allow(usize::MAX / 2);
    assert!(sent.into_iter().all(|stream| reply(stream).ends_with("/sent")));
}

#[test]
fn many_reloads_in_a_row_under_load_keep_to_the_limit() {
    const RELOADS: usize = 20;
    const CLIENTS: usize = 12;
    let backend = Backend::start();
    backend.allow(usize::MAX / 2);
    let server = Server::start("worker_processes 1;", &site(&backend, "new", 1, QUEUE));
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(server.get("/path"), "/path");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for turn in 0..RELOADS {
            let workers = format!("worker_processes {};", 2 - turn % 2);
            reload_into(&server, &workers, &site(&backend, "new", 1, QUEUE));
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(backend.counts(|counts| counts.most), 1);
    assert!(answered.into_inner() > RELOADS);
    server.await_log("exited with code 0", RELOADS);
    assert!(!server.log().contains("[warn]") && !server.log().contains("[alert]"));
}

#[test]
fn an_upgrade_keeps_to_the_limit_and_answers_all_that_wait() {
    let backend = Backend::start();
    let folder = Folder::new();
    let http =
        |word: &str| site(&backend, word, LIMIT, QUEUE).replace("ADDRESS", "unix:DIR/a.sock");
    let configure = |word: &str| {
        folder.configure("", "daemon on; events {} worker_processes 2;", &http(word));
        let text = folder.read("nginx.conf").replace("daemon off;\n", "");
        folder.write("nginx.conf", &text);
    };
    configure("old");
    let output = folder.run(&["-c", "nginx.conf"]);
    assert!(output.status.success(), "{}", testing::complaint(&output));
    let get = |path: &str| {
        let mut stream = UnixStream::connect(folder.join("a.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        stream
    };
    let await_blocked = |times: usize| {
        eventually("those that wait", || {
            let blocked = folder.read("error.log").matches("request is queued").count();
            (blocked >= times).then_some(())
        });
    };
    let old = eventually("a pid file", || folder.pid("nginx.pid"));
    let mut sent: Vec<_> = (0..LIMIT + 5).map(|_| get("/old")).collect();
    backend.await_in_progress(LIMIT);
    await_blocked(5);
    configure("new");
    kill(old, "USR2");
    let new = eventually("another pid file", || folder.pid("nginx.pid").filter(|new| *new != old));
    kill(old, "WINCH");
    eventually("the new one", || reply(get("/limit")).ends_with("new").then_some(()));
    sent.extend((0..LIMIT + 5).map(|_| get("/new")));
    await_blocked(5 + LIMIT + 5);
    assert_eq!(backend.counts(|counts| counts.came.len()), LIMIT, "the old one has all");
    // The way back: the old master's worker process serves again, beside the two that answer what
    // they have accepted.
    kill(old, "HUP");
    eventually("a third worker process", || {
        let started = folder.read("error.log").matches("start worker process ").count();
        (started >= 3).then_some(())
    });
    kill(new, "QUIT");
    eventually("the old one again", || reply(get("/limit")).ends_with("old").then_some(()));
    sent.extend((0..5).map(|_| get("/again")));
    await_blocked(5 + LIMIT + 5 + 5);
    assert_eq!(backend.counts(|counts| counts.came.len()), LIMIT, "they all wait");
    backend.allow(usize::MAX / 2);
    assert!(sent.into_iter().all(|stream| reply(stream).starts_with("HTTP/1.1 200 ")));
    assert_eq!(backend.counts(|counts| (counts.most, counts.came.len())), (LIMIT, 21));
    eventually("the old name", || (folder.pid("nginx.pid") == Some(old)).then_some(()));
    kill(old, "TERM");
    eventually("the end", || folder.pid("nginx.pid").is_none().then_some(()));
    assert!(!folder.read("error.log").contains("not shared"));
}

#[test]
fn shared_memory_of_an_unknown_format_is_replaced_and_logged() {
    let folder = Folder::new();
    folder.configure("unix:DIR/a.sock", "events {}", "server { listen ADDRESS; return 200 x; }");
    folder.write("other", "not a table");
    let command = "exec 9<>\"$0/other\"; export WEIR_LIMITS=9; exec \"$0/nginx\" -p \"$0\" \
                   -c nginx.conf -e error.log";
    folder.nginx();
    let mut shell = std::process::Command::new("sh");
    let child = shell.args(["-c", command]).arg(&folder).spawn().unwrap();
    let _running = testing::Running(child);
    eventually("a line in the log", || {
        let log = folder.read("error.log");
        log.contains("not shared with the previous program: not the expected memory").then_some(())
    });
    eventually("a worker process", || {
        folder.read("error.log").contains("start worker process ").then_some(())
    });
    kill(folder.pid("nginx.pid").unwrap(), "TERM");
    eventually("the end", || folder.pid("nginx.pid").is_none().then_some(()));
}

//! Purging in the running program: a purge that was acknowledged holds, whatever happens next.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::process::{Command, Output};

use testing::{PATIENCE, Server, body, complaint, eventually, kill};

/// A server that caches what it answers itself: each time something else.
fn site(cache: &str, lines: &str) -> String {
    let tags = match cache.contains("tags=") {
        true => "proxy_cache_purge_tags one $arg_tags; allow 127.0.0.1; deny all;",
        false => "return 404;",
    };
    format!(
        "proxy_cache_path cache keys_zone=one:1m {cache};
         server {{
             listen ADDRESS;
             location /own {{
                 add_header Surrogate-Key t; add_header Vary X-Kind; return 200 $request_id;
             }}
             location / {{
                 proxy_pass http://ADDRESS/own;
                 proxy_cache one; proxy_cache_key $uri; proxy_cache_valid 1h; {lines}
             }}
             location = /tags {{ {tags} }}
         }}"
    )
}

const MODULE: &str = "proxy_cache_purge PURGE from 127.0.0.1;";

fn start(cache: &str, lines: &str, globals: &str) -> Server {
    let site = site(cache, lines);
    Server::start_with(|folder, address| {
        std::fs::create_dir(folder.join("cache")).unwrap();
        let globals = format!("events {{}} control_socket unix:DIR/control; {globals}");
        folder.configure(address, &globals, &site);
    })
}

fn ask(server: &Server, method: &str, path: &str) -> (u16, String) {
    let mut stream = server.connect();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    (reply.split(' ').nth(1).unwrap().parse().unwrap(), body(&reply).to_owned())
}

/// Runs `weir ctl cache`.
fn ctl(server: &Server, words: &str) -> Output {
    let conf = server.folder.name("nginx.conf");
    let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("weir");
    let mut command = Command::new(program);
    command.args(["ctl", "-c", &conf, "cache"]).args(words.split(' '));
    testing::output(command)
}

/// Kills the worker process, and waits until another one serves.
fn restart(server: &Server) {
    let before = server.worker_process();
    kill(before, "KILL");
    eventually("another worker process", || {
        Some(()).filter(|()| server.worker_process() != before)
    });
}

#[test]
fn what_was_purged_stays_purged_after_a_crash() {
    let server = start("tags=Surrogate-Key", MODULE, "");
    for (method, path, status) in
        [("PURGE", "/a", 200), ("PURGE", "/*", 200), ("GET", "/tags?tags=t", 204)]
    {
        let first = server.get("/a");
        let kept = server.get("/b");
        assert_eq!(server.get("/a"), first);
        assert_eq!(ask(&server, method, path).0, status);
        restart(&server);
        assert_ne!(server.get("/a"), first, "{path}");
        assert_eq!(server.get("/b") == kept, path == "/a", "{path}");
    }
}

#[test]
fn a_purge_holds_over_reloads() {
    let server = start("tags=Surrogate-Key", MODULE, "worker_processes 2;");
    let first = server.get("/a");
    assert_eq!(ask(&server, "PURGE", "/a*").0, 200);
    server.reload();
    let second = server.get("/a");
    assert_ne!(second, first);
    server.reload();
    assert_eq!(server.get("/a"), second);
    // With another number of workers, another process serves.
    assert_eq!(ask(&server, "PURGE", "/a").0, 200);
    let globals = "worker_processes 1; control_socket unix:DIR/control;";
    server.configure(globals, &site("tags=Surrogate-Key", MODULE));
    server.reload();
    assert_ne!(server.get("/a"), second);
}

#[test]
fn purged_files_are_removed_by_the_purger() {
    let server = start("purger=on tags=Surrogate-Key", MODULE, "");
    server.get("/a");
    let files = || {
        let entries = std::fs::read_dir(server.folder.join("cache")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().file_name().len() == 32).count()
    };
    eventually("the file", || (files() == 1).then_some(()));
    assert_eq!(ask(&server, "GET", "/tags?tags=t").0, 204);
    eventually("the end of the file", || (files() == 0).then_some(()));
}

#[test]
fn the_control_socket_purges() {
    let server = start("tags=Surrogate-Key", "", "");
    let ctl = |words: &str| ctl(&server, words);
    eventually("an open socket", || server.folder.join("control").exists().then_some(()));
    for words in ["purge one /a", "purge one /x /*", "purge-tag one t", "purge-all one"] {
        let first = server.get("/a");
        assert_eq!(server.get("/a"), first);
        let output = ctl(words);
        assert!(output.status.success(), "{words}: {}", complaint(&output));
        assert_ne!(server.get("/a"), first, "{words}");
    }
    server.await_log("cache \"one\": 1 purge, by ", 3);
    for (words, said) in
        [("purge two /a", "cache not found"), ("purge one", "wrong arguments of \"cache\"")]
    {
        let output = ctl(words);
        assert!(!output.status.success() && complaint(&output).contains(said), "{words}");
    }
}

#[test]
fn a_cache_without_tags_is_not_purged_by_tag() {
    let server = start("", "", "");
    eventually("an open socket", || server.folder.join("control").exists().then_some(()));
    let said = complaint(&ctl(&server, "purge-tag one t"));
    assert!(said.contains("the cache has no \"tags=\""), "{said}");
}

#[test]
fn only_allowed_clients_purge() {
    let server = start("", "proxy_cache_purge PURGE from 10.0.0.0/8;", "");
    let first = server.get("/a");
    assert_eq!(ask(&server, "PURGE", "/a").0, 403);
    assert_eq!(server.get("/a"), first);
}

#[test]
fn a_purge_at_the_control_socket_that_cannot_be_kept_is_an_error_and_holds_nevertheless() {
    for globals in ["", "master_process off;"] {
        let server = start("tags=Surrogate-Key", "", globals);
        eventually("an open socket", || server.folder.join("control").exists().then_some(()));
        let journal = server.folder.join("cache/weir-purges");
        std::fs::create_dir(&journal).unwrap();
        for words in ["purge one /a", "purge-tag one t", "purge-all one"] {
            let first = server.get("/a");
            let output = ctl(&server, words);
            let said = complaint(&output);
            assert!(!output.status.success(), "{words}");
            assert!(said.contains("the journal of cache \"one\" cannot be written"), "{said}");
            assert_ne!(server.get("/a"), first, "{words}");
        }
        std::fs::remove_dir(&journal).unwrap();
        assert!(ctl(&server, "purge one /a").status.success());
    }
}

#[test]
fn a_purge_that_the_worker_process_does_not_live_to_make_is_no_success() {
    let server = start("", "", "");
    eventually("an open socket", || server.folder.join("control").exists().then_some(()));
    let first = server.get("/a");
    let worker = server.worker_process();
    kill(worker, "STOP");
    let output = std::thread::scope(|scope| {
        let purge = scope.spawn(|| ctl(&server, "purge one /a"));
        server.await_log("cache \"one\": 1 purge, by ", 1);
        kill(worker, "KILL");
        purge.join().unwrap()
    });
    let said = complaint(&output);
    assert!(!output.status.success() && said.contains("no worker process has made"), "{said}");
    assert_eq!(server.get("/a"), first);
    assert!(ctl(&server, "purge one /a").status.success());
    assert_ne!(server.get("/a"), first);
}

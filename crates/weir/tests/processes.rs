//! Start, reload, crash, upgrade, end: the life of the processes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use testing::{PATIENCE, Server, eventually, kill};

fn hello(word: &str) -> String {
    format!("server {{ listen ADDRESS; location / {{ return 200 {word}; }} }}")
}

/// One request on a connection that stays open.
fn ask(stream: &mut TcpStream) -> std::io::Result<String> {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")?;
    let mut reply = Vec::new();
    while !reply.windows(4).any(|four| four == b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        reply.push(byte[0]);
    }
    let head = String::from_utf8(reply).unwrap().to_ascii_lowercase();
    let (_, length) = head.split_once("content-length: ").unwrap();
    let mut body = vec![0; length.split_once('\r').unwrap().0.parse().unwrap()];
    stream.read_exact(&mut body)?;
    Ok(String::from_utf8(body).unwrap())
}

/// Whether the other end is closed.
fn is_closed(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0]), Ok(0))
}

#[test]
fn it_starts_serves_and_stops() {
    for signal in ["QUIT", "TERM", "INT"] {
        let server = Server::start("", &hello("hello"));
        assert_eq!(server.get("/"), "hello");
        let stopped = server.stop(signal);
        assert_eq!(stopped.status.code(), Some(0));
        assert!(!stopped.pid_file, "the pid file is taken away");
        assert!(!stopped.log.contains("[alert]") && !stopped.log.contains("[emerg]"));
        assert!(stopped.log.contains(&format!("(SIG{signal}) received from")));
        assert!(stopped.log.trim_end().ends_with("exit"), "{}", stopped.log);
    }
}

#[test]
fn it_serves_without_a_master() {
    let server = Server::start_any("events {} master_process off;", &hello("alone"));
    assert_eq!(server.get("/"), "alone");
    server.configure("master_process off;", &hello("changed"));
    server.reload();
    assert_eq!(server.get("/"), "changed");
    let stopped = server.stop("QUIT");
    assert_eq!(stopped.status.code(), Some(0));
    assert!(!stopped.pid_file);
}

#[test]
fn process_titles_are_those_of_nginx() {
    let server = Server::start("", &hello("hello"));
    let title = |pid: i32| {
        let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned()
    };
    let master = title(server.pid());
    assert!(master.starts_with("nginx: master process /"), "{master}");
    assert!(master.ends_with("-c nginx.conf -e error.log"), "{master}");
    let worker = server.worker_process();
    eventually("title", || (title(worker) == "nginx: worker process").then_some(()));
}

#[test]
fn every_process_and_thread_has_the_name_of_the_program() {
    let server = Server::start("worker_processes 2;", &hello("hello"));
    let worker = server.worker_process();
    let name = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    for pid in [server.pid(), worker] {
        let path = format!("/proc/{pid}/comm");
        eventually("name", || (name(&path) == "nginx").then_some(()));
    }
    eventually("names of threads", || {
        let tasks = std::fs::read_dir(format!("/proc/{worker}/task")).unwrap();
        let comm = |task: std::fs::DirEntry| name(&task.path().join("comm").to_string_lossy());
        let names: Vec<_> = tasks.flatten().map(comm).collect();
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        (has("nginx worker 0") && has("nginx worker 1")).then_some(())
    });
}

#[test]
fn a_reload_changes_the_answers_in_place() {
    let server = Server::start("", &hello("one"));
    let worker = server.worker_process();
    let mut open = server.connect();
    assert_eq!(ask(&mut open).unwrap(), "one");
    server.configure("", &hello("two"));
    server.reload();
    assert_eq!(ask(&mut open).unwrap(), "two", "an open connection takes the newest");
    assert_eq!(server.get("/"), "two");
    assert_eq!(server.worker_process(), worker, "the process is the same");
    server.await_log("reconfiguring", 2);
    server.await_log("exited with code 0", 1);
}

#[test]
fn a_bad_configuration_changes_nothing() {
    let server = Server::start("", &hello("one"));
    server.configure("", "server { listen ADDRESS; lisen 80; }");
    server.signal("HUP");
    server.await_log("[emerg]", 1);
    assert_eq!(server.get("/"), "one");
    // An address of documentation, which no machine has.
    server.configure("", "server { listen ADDRESS; listen 192.0.2.1:80; return 200 two; }");
    server.signal("HUP");
    server.await_log("bind() to 192.0.2.1:80 failed", 1);
    assert_eq!(server.get("/"), "one");
    server.configure("", &hello("three"));
    server.reload();
    assert_eq!(server.get("/"), "three");
}

#[test]
fn no_request_fails_while_it_reloads() {
    const RELOADS: usize = 40;
    let hello = |word| format!("keepalive_requests 1000000; {}", hello(word));
    let server = Arc::new(Server::start("worker_processes 2;", &hello("even")));
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let (server, over) = (server.clone(), over.clone());
            std::thread::spawn(move || {
                let mut asked = 0;
                let mut open = server.connect();
                while !over.load(Ordering::Relaxed) {
                    let word = match number % 2 {
                        0 => ask(&mut open).unwrap(),
                        _ => server.get("/"),
                    };
                    assert!(word == "even" || word == "odd", "{word:?}");
                    asked += 1;
                }
                asked
            })
        })
        .collect();
    for turn in 0..RELOADS {
        server.configure("worker_processes 2;", &hello(["odd", "even"][turn % 2]));
        server.reload();
    }
    over.store(true, Ordering::Relaxed);
    let asked: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert!(asked > RELOADS, "{asked} requests");
}

#[test]
fn another_number_of_workers_takes_another_process_and_loses_nothing() {
    let server = Server::start("worker_processes 1;", &hello("one"));
    let first = server.worker_process();
    let mut open = server.connect();
    assert_eq!(ask(&mut open).unwrap(), "one");
    server.configure("worker_processes 3;", &hello("three"));
    server.signal("HUP");
    server.await_log(&format!("worker process {first} exited with code 0"), 1);
    assert_ne!(server.worker_process(), first);
    assert_eq!(server.get("/"), "three");
    assert!(is_closed(&mut open), "the old process closed its idle connection");
}

#[test]
fn a_worker_process_that_is_killed_is_replaced_and_no_connection_refused() {
    let server = Server::start("worker_processes 2;", &hello("hello"));
    for round in 1..=3 {
        assert_eq!(server.get("/"), "hello");
        kill(server.worker_process(), "KILL");
        assert_eq!(server.get("/"), "hello", "it waited for the next process");
        server.await_log("exited on signal 9", round);
        server.await_log("start worker process ", round + 1);
    }
}

#[test]
fn logs_are_opened_anew() {
    let http = "server { access_log access.log; listen ADDRESS; return 200 x; }";
    let server = Server::start("", http);
    server.get("/first");
    let logged = |name: &str, word: &str| {
        eventually(&format!("{word} in {name}"), || {
            server.folder.read(name).contains(word).then_some(())
        });
    };
    logged("access.log", "/first");
    for name in ["access.log", "error.log"] {
        std::fs::rename(server.folder.join(name), server.folder.join(format!("{name}.1"))).unwrap();
    }
    server.signal("USR1");
    // The master and the worker process each say so, in the log that was.
    eventually("new logs", || server.folder.join("access.log").exists().then_some(()));
    logged("error.log.1", "reopening logs");
    eventually("the worker's new log", || {
        server.get("/second");
        server.folder.read("access.log").contains("/second").then_some(())
    });
    assert!(!server.folder.read("access.log").contains("/first"));
    assert!(server.folder.read("access.log.1").contains("/first"));
}

#[test]
fn graceful_end_answers_what_was_asked() {
    let server = Server::start("", &hello("hello"));
    let mut idle = server.connect();
    assert_eq!(ask(&mut idle).unwrap(), "hello");
    let mut begun = server.connect();
    begun.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    // It is the server's once another connection, later in the queue, is answered.
    assert_eq!(server.get("/"), "hello");
    server.signal("QUIT");
    server.await_log("gracefully shutting down", 1);
    assert!(is_closed(&mut idle), "an idle connection is closed");
    begun.write_all(b"Host: test\r\n\r\n").unwrap();
    let mut reply = String::new();
    begun.read_to_string(&mut reply).unwrap();
    assert!(reply.contains("Connection: close") && reply.ends_with("hello"), "{reply}");
    server.await_log("exited with code 0", 1);
}

/// Workers that are told to end before they have accepted anything serve who waits in the queue.
#[test]
fn clients_that_wait_when_it_ends_are_served() {
    for _ in 0..4 {
        let server = Server::start_any("events {}", &hello("hello"));
        let mut waiting = server.connect();
        waiting.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        server.signal("QUIT");
        let mut reply = String::new();
        waiting.read_to_string(&mut reply).unwrap();
        assert!(reply.ends_with("hello"), "{reply}");
    }
}

#[test]
fn the_shutdown_timeout_ends_what_does_not_end() {
    let server = Server::start("worker_shutdown_timeout 50ms;", &hello("hello"));
    let mut begun = server.connect();
    begun.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    assert_eq!(server.get("/"), "hello");
    server.signal("QUIT");
    assert!(is_closed(&mut begun));
    server.await_log("exited with code 0", 1);
}

#[test]
fn the_shutdown_timeout_ends_old_requests_after_a_reload_and_keeps_connections() {
    let server = Server::start("worker_shutdown_timeout 50ms;", &hello("one"));
    let [mut kept, mut begun] = [(); 2].map(|()| server.connect());
    assert_eq!(ask(&mut kept).unwrap(), "one");
    assert_eq!(ask(&mut begun).unwrap(), "one");
    begun.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    assert_eq!(server.get("/"), "one");
    server.configure("", &hello("two"));
    server.reload();
    assert!(is_closed(&mut begun));
    assert_eq!(ask(&mut kept).unwrap(), "two");
}

#[test]
fn connections_of_a_removed_address_are_closed() {
    let server = Server::start("", &hello("x"));
    let path = server.folder.join("a.sock");
    server.configure("", "server { listen ADDRESS; listen unix:DIR/a.sock; return 200 x; }");
    server.reload();
    let mut unix = std::os::unix::net::UnixStream::connect(&path).unwrap();
    unix.set_read_timeout(Some(PATIENCE)).unwrap();
    unix.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut reply = [0; 15];
    unix.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"HTTP/1.1 200 OK");
    server.configure("", &hello("x"));
    server.reload();
    let mut rest = Vec::new();
    unix.read_to_end(&mut rest).unwrap();
    eventually("the socket's end", || (!path.exists()).then_some(()));
    server.await_log("deleting socket", 1);
}

#[test]
fn a_full_worker_turns_connections_away_and_says_so() {
    let server = Server::start_any("events { worker_connections 2; }", &hello("hello"));
    let mut begun: Vec<_> = (0..2).map(|_| server.connect()).collect();
    begun.iter_mut().for_each(|stream| stream.write_all(b"GET / HTTP/1.1\r\n").unwrap());
    let mut turned_away = server.connect();
    turned_away.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert!(matches!(turned_away.read(&mut [0]), Ok(0) | Err(_)));
    server.await_log("[alert]", 1);
    assert!(server.log().contains("2 worker_connections are not enough\n"));
    drop(begun.pop());
    eventually("room", || {
        let mut stream = server.connect();
        ask(&mut stream).is_ok_and(|word| word == "hello").then_some(())
    });
}

#[test]
fn a_full_worker_gives_the_places_of_idle_connections_to_new_ones() {
    let server = Server::start_any("events { worker_connections 2; }", &hello("hello"));
    let mut idle: Vec<_> = (0..2).map(|_| server.connect()).collect();
    idle.iter_mut().for_each(|stream| assert_eq!(ask(stream).unwrap(), "hello"));
    assert_eq!(server.get("/"), "hello");
    let told = "2 worker_connections are not enough, reusing connections";
    server.await_log(told, 1);
    assert!(!server.log().contains("[alert]"));
}

/// Connections of HTTP/2 once kept their places for `lingering_timeout`, and those with half of a
/// header block for ever.
#[test]
fn idle_and_half_begun_connections_of_http_2_give_their_places_to_new_ones() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    const GET: &[u8] = b"\0\0\x08\x01\x05\0\0\0\x01\x82\x86\x84\x41\x03one";
    let http = hello("hello").replace("server {", "server { http2 on; lingering_timeout 1h;");
    let server = Server::start_any("events { worker_connections 2; }", &http);
    for begun in [&GET[..0], &GET[..12], GET] {
        let mut clients: Vec<_> = (0..2).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.write_all(&[PREFACE, begun].concat()).unwrap();
            client.read_exact(&mut [0; 9]).unwrap();
        }
        eventually("room", || {
            let mut stream = server.connect();
            ask(&mut stream).is_ok_and(|word| word == "hello").then_some(())
        });
    }
}

#[test]
fn running_out_of_descriptors_is_logged_and_survived() {
    let globals = "worker_rlimit_nofile 24;";
    let server = Server::start(globals, &hello("hello"));
    let crowd: Vec<_> = (0..40).map(|_| server.connect()).collect();
    server.await_log("accept4() failed (24: Too many open files)", 1);
    drop(crowd);
    assert_eq!(server.get("/"), "hello");
}

#[test]
fn a_taken_port_is_tried_five_times() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = testing::Folder::new();
    folder.configure(&address, "events {}", &hello("hello"));
    let output = folder.run(&["-c", "nginx.conf"]);
    let failed =
        format!("nginx: [emerg] bind() to {address} failed (98: Address already in use)\n");
    let said = testing::complaint(&output);
    assert_eq!(said.matches(&failed).count(), 5, "{said}");
    let (_, hint) = said.split_once("nginx: [emerg] still could not bind()\n").unwrap();
    assert!(hint.contains(&format!("process {} (", std::process::id())), "{said}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.join("nginx.pid").exists());
}

#[test]
fn process_settings_apply_to_the_worker_process() {
    let globals = "worker_processes 2; worker_cpu_affinity 01 01; worker_priority 5; \
                   worker_rlimit_core 4096; worker_rlimit_nofile 512; working_directory DIR;";
    let server = Server::start(globals, &hello("hello"));
    assert_eq!(server.get("/"), "hello");
    let process = server.worker_process();
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap();
    let directory = std::fs::read_link(format!("/proc/{process}/cwd")).unwrap();
    assert_eq!(directory, server.folder.canonicalize().unwrap());
    let (_, fields) = read("stat").rsplit_once(") ").map(|(a, b)| (a.len(), b.to_owned())).unwrap();
    assert_eq!(fields.split(' ').nth(16), Some("5"), "nice");
    let limits = read("limits");
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(limit("Max core file size"), "4096");
    assert_eq!(limit("Max open files"), "1024", "512 for each worker");
    // Each thread binds itself when it begins.
    eventually("two workers bound to a processor", || {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
        let bound = tasks.filter(|task| {
            let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap();
            read("comm").contains(" worker ") && read("status").contains("allowed_list:\t0\n")
        });
        (bound.count() == 2).then_some(())
    });
}

#[test]
fn the_worker_process_is_an_ordinary_user() {
    if !testing::is_root() {
        return;
    }
    let server = Server::start("user nobody nogroup;", &hello("hello"));
    assert_eq!(server.get("/"), "hello");
    let uid = |process: i32| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("Uid:")).unwrap().to_owned();
        line.split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!(uid(server.pid()), "0");
    assert_ne!(uid(server.worker_process()), "0");
    // It cannot open the log itself, and is given it.
    server.configure("user nobody nogroup;", "server { listen ADDRESS; error_log secret.log; }");
    server.reload();
    server.get("/missing");
    let is_told = || server.folder.read("secret.log").contains("/missing").then_some(());
    eventually("a line in the log", is_told);
}

//! Reloads: what they must not leave behind, and what clients must not notice.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use server::crowd::Crowd;
use testing::{Server, body, connect, eventually, free_address, kill};

/// How often a process has each file open, by the file's name; sockets are `socket:`.
fn descriptors(pid: i32) -> BTreeMap<String, usize> {
    let mut open = BTreeMap::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        if let Ok(target) = std::fs::read_link(entry.path()) {
            let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
            *open.entry(name.split('[').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    open
}

/// A server with many ways to log: plain, buffered, compressed, named by a variable, and to syslog.
fn logging(syslog: &std::net::UdpSocket) -> String {
    let syslog = syslog.local_addr().unwrap();
    format!(
        "open_log_file_cache max=10;
         server {{
             listen ADDRESS; root DIR; error_log e.log; return 200 x;
             access_log a.log; access_log b.log combined buffer=32k;
             access_log c.log.gz combined gzip flush=1h; access_log d$arg_x.log;
             access_log syslog:server={syslog};
         }}"
    )
}

#[test]
fn a_reload_leaves_no_log_open() {
    const WORKERS: usize = 4;
    const RELOADS: usize = 24;
    let syslog = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = Server::start(&format!("worker_processes {WORKERS};"), &logging(&syslog));
    for number in 0..RELOADS {
        // Every third reload finds workers that have written nothing since the last.
        if !number.is_multiple_of(3) {
            be_busy(&server);
        }
        server.reload();
    }
    be_busy(&server);
    let worker = server.worker_process();
    eventually("the descriptors of one configuration", || {
        let open = descriptors(worker);
        let count = |name: &str| open.get(name).copied().unwrap_or_default();
        let logs = ["a.log", "b.log", "c.log.gz", "e.log"].map(count);
        // The listening socket, the master's, and one to syslog for each worker.
        let is_one = count("socket:") <= 2 + WORKERS && count("d.log") <= WORKERS;
        (logs == [1; 4] && is_one).then_some(())
    });
}

/// Asks on so many connections at once that every worker has some of them.
fn be_busy(server: &Server) {
    let mut streams: Vec<_> = (0..16).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    }
    streams.iter_mut().for_each(|stream| assert_eq!(&status(stream), "200"));
}

fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

fn hello(address: SocketAddr, word: &str) -> String {
    format!("server {{ listen {address}; location / {{ return 200 {word}; }} }}")
}

fn ask(address: &SocketAddr) -> std::io::Result<String> {
    let mut stream = connect(address);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(body(&reply).to_owned())
}

#[test]
fn a_reload_that_fails_for_a_taken_port_loses_no_connection() {
    let (address, taken) = (free_address(), TcpListener::bind("127.0.0.1:0").unwrap());
    let server = Server::start("worker_processes 1;", &hello(address, "old"));
    let worker = server.worker_process();
    let crowd = Crowd::start(move || ask(&address));
    crowd.await_answers(100);
    let both = hello(address, "new") + &hello(taken.local_addr().unwrap(), "new");
    server.configure("worker_processes 4;", &both);
    server.signal("HUP");
    server.await_log("try again to bind() after 500ms", 1);
    // Between two tries the master does what else it is told.
    server.signal("USR1");
    server.await_log("reopening logs", 2);
    assert!(!server.log().contains("still could not bind()"), "{}", server.log());
    crowd.await_answers(100);
    server.await_log("still could not bind()", 1);
    crowd.await_answers(100);
    assert_eq!(crowd.end(), [""; 0]);
    assert_eq!(server.worker_process(), worker);
    assert_eq!(ask(&address).unwrap(), "old");
}

#[test]
fn a_reload_takes_the_place_of_one_that_waits_for_a_port() {
    let (address, taken) = (free_address(), TcpListener::bind("127.0.0.1:0").unwrap());
    let server = Server::start("", &hello(address, "old"));
    let both = hello(address, "new") + &hello(taken.local_addr().unwrap(), "new");
    server.configure("", &both);
    server.signal("HUP");
    server.await_log("try again to bind() after 500ms", 1);
    server.configure("", &hello(address, "new"));
    server.reload();
    assert_eq!(ask(&address).unwrap(), "new");
    assert!(!server.log().contains("still could not bind()"));
}

#[test]
fn a_port_that_becomes_free_is_taken() {
    for globals in ["", "master_process off;"] {
        let (address, second) = (free_address(), free_address());
        let taken = TcpListener::bind(second).unwrap();
        let server = Server::start_any(&format!("events {{}} {globals}"), &hello(address, "old"));
        eventually("an answer", || (ask(&address).ok()? == "old").then_some(()));
        server.configure(globals, &(hello(address, "new") + &hello(second, "new")));
        server.signal("HUP");
        server.await_log("try again to bind() after 500ms", 1);
        assert_eq!(ask(&address).unwrap(), "old");
        drop(taken);
        eventually("the new address", || {
            TcpStream::connect(second).ok()?;
            (ask(&second).ok()? == "new").then_some(())
        });
        assert_eq!(ask(&address).unwrap(), "new");
    }
}

#[test]
fn other_numbers_of_workers_lose_no_connection() {
    let address = free_address();
    let server = Server::start("worker_processes 1;", &hello(address, "old"));
    let crowd = Crowd::start(move || ask(&address));
    for workers in [4, 1, 3, 1, 4, 2, 1, 4, 1] {
        crowd.await_answers(50);
        server.configure(&format!("worker_processes {workers};"), &hello(address, "new"));
        server.reload();
    }
    crowd.await_answers(50);
    assert_eq!(crowd.end(), [""; 0]);
}

/// Stops every thread of a process where it stands.
fn stop(pid: i32) {
    kill(pid, "STOP");
    eventually("the threads' stop", || {
        let mut tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let stopped = tasks.all(|task| {
            std::fs::read_to_string(task.path().join("status")).unwrap().contains("State:\tT")
        });
        stopped.then_some(())
    });
}

/// A worker process that stands still, for whatever reason, must not make a reload wait for ever.
#[test]
fn a_hung_worker_process_is_replaced() {
    let address = free_address();
    let globals = "worker_processes 2; worker_reload_timeout 100ms;";
    let server = Server::start(globals, &hello(address, "old"));
    let hung = server.worker_process();
    assert_eq!(ask(&address).unwrap(), "old");
    stop(hung);
    // The kernel deals these to sockets of workers that do not accept.
    let waiting: Vec<_> =
        (0..8).map(|_| std::thread::spawn(move || ask(&address).unwrap())).collect();
    server.configure(globals, &hello(address, "new"));
    server.signal("HUP");
    server.await_log(&format!("[alert] {}#", server.pid()), 1);
    let told =
        format!("worker process {hung} hangs: no answer about the new configuration within ");
    server.await_log(&told, 1);
    for client in waiting {
        assert_eq!(client.join().unwrap(), "new");
    }
    for _ in 0..16 {
        assert_eq!(ask(&address).unwrap(), "new");
    }
    // It had been told to leave, and does so when it goes on.
    kill(hung, "CONT");
    server.await_log(&format!("worker process {hung} exited with code 0"), 1);
    assert_ne!(server.worker_process(), hung);
    server.configure(globals, &hello(address, "old"));
    server.signal("HUP");
    eventually("the next configuration", || (ask(&address).unwrap() == "old").then_some(()));
}

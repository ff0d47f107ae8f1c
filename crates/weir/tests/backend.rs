//! `weir backend`: the real program, asked over real sockets.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use server::backend::{Backend, ends_unheard, everything, number, run};
use testing::{Folder, PATIENCE, body, complaint, eventually};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

/// A request that is in progress once its head has arrived, and is answered after its last byte.
const HELD: &str = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n";

/// Waits until so many requests are in progress.
fn await_in_progress(backend: &Backend, count: u64) {
    eventually("requests", || (backend.stat("in_progress") == count).then_some(()));
}

/// Arrived, begun and written of each line of the log, in microseconds.
fn logged_us(folder: &Folder) -> Vec<[u64; 3]> {
    let log = folder.read("log");
    let times = log.lines().map(|line| {
        let mut words = line.split(' ').map(|word| word.parse().unwrap());
        [(); 3].map(|()| words.next().unwrap())
    });
    times.collect()
}

/// Reads one reply with a length, and no more.
fn reply(stream: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let length = head.split("Content-Length: ").nth(1).unwrap().lines().next().unwrap();
    let mut bytes = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut bytes).unwrap();
    head + &String::from_utf8(bytes).unwrap()
}

#[test]
fn help_goes_to_standard_output_and_complaints_do_not() {
    let help = run("--help");
    assert!(help.status.success());
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(text.contains("--pool") && text.contains("ALONE * (1 + (n / BEST)^2)"), "{text}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for (options, expected) in [
        ("--nonsense".to_owned(), "weir: backend: unknown option --nonsense\n".to_owned()),
        ("--sleep soon".to_owned(), "weir: backend: --sleep: \"soon\" is not a time".to_owned()),
        (format!("--listen {address}"), format!("weir: backend: bind() to {address} failed: ")),
    ] {
        let output = run(&options);
        assert!(!output.status.success());
        assert!(complaint(&output).starts_with(&expected), "{}", complaint(&output));
    }
}

#[test]
fn a_closed_standard_error_does_not_change_the_exit_code() {
    assert!(ends_unheard("--listen 0"));
}

#[test]
fn bodies_have_the_configured_size() {
    for (size, length) in [("0", 0), ("1", 1), ("100k", 102_400), ("3m", 3 << 20)] {
        for coding in ["", "--chunked"] {
            let backend = Backend::start(&format!("--listen 0 --size {size} {coding}"));
            let got = backend.get();
            assert_eq!(body(&got).len(), length, "{size} {coding}");
            assert!(body(&got).bytes().zip((b'a'..=b'z').cycle()).all(|(is, should)| is == should));
        }
    }
    let backend = Backend::start("--listen 0 --body hi --status 404 --header A:b");
    let head = "HTTP/1.1 404 Not Found\r\nA:b\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n";
    assert_eq!(backend.get(), format!("{head}Connection: close\r\n\r\nhi"));
    let request = "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(backend.ask(request), format!("{head}Connection: close\r\n\r\n"));
}

#[test]
fn chunked_bodies_are_echoed_in_chunks() {
    let backend = Backend::start("--listen 0 --echo --chunked");
    let got = backend.ask(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
         2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
    );
    assert!(
        got.ends_with(
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        )
    );
    assert_eq!(backend.stat("bytes_received"), 3);
    assert_eq!(backend.ask("nonsense\r\n\r\n").lines().next(), Some("HTTP/1.1 400 Bad Request"));
}

#[test]
fn a_connection_goes_on_and_requests_may_come_before_their_turn() {
    let backend = Backend::start("--listen 0 --body hi");
    let mut stream = BufReader::new(backend.connect());
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let ten = [GET, post].repeat(5).concat();
    stream.get_mut().write_all(ten.as_bytes()).unwrap();
    (0..10).for_each(|_| assert!(reply(&mut stream).ends_with("\r\n\r\nhi")));
    // The eleventh in two pieces, and the last as HTTP/1.0 has it.
    let (first, second) = GET.split_at(7);
    stream.get_mut().write_all(first.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(20));
    stream.get_mut().write_all(second.as_bytes()).unwrap();
    reply(&mut stream);
    stream.get_mut().write_all(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").unwrap();
    assert!(reply(&mut stream).contains("\r\nConnection: keep-alive\r\n"));
    stream.get_mut().write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert!(everything(stream).contains("\r\nConnection: close\r\n"));
    let stats = backend.stats();
    assert_eq!((number(&stats, "requests"), number(&stats, "200")), (13, 13));
    assert_eq!((number(&stats, "accepted"), number(&stats, "bytes_received")), (1, 15));
}

#[test]
fn a_reply_to_head_has_no_body_whatever_it_is_about() {
    let backend = Backend::start("--listen 0 --cut 100% --size 100k");
    for head in ["HEAD / HTTP/1.0\r\n\r\n", "HEAD /_stats HTTP/1.0\r\n\r\n"] {
        let reply = backend.ask(head);
        assert!(reply.len() < 200, "{head}: {reply}");
    }
}

#[test]
fn a_reply_whose_client_left_is_logged_with_the_bytes_sent() {
    let folder = Folder::new();
    let log = folder.join("log").display().to_string();
    let backend = Backend::start(&format!("--listen 0 --size 1g --log {log}"));
    let mut stream = backend.connect();
    stream.write_all(GET.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 100]).unwrap();
    drop(stream);
    let line = eventually("a line", || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines().next().map(str::to_owned)
    });
    let parts: Vec<&str> = line.split(' ').collect();
    let sent: u64 = parts[4].parse().unwrap();
    assert!((100..1 << 30).contains(&sent) && parts[3] == "200", "{line}");
}

#[test]
fn the_counts_are_exact_and_by_address() {
    let backend = Backend::start("--listen 0 --listen 127.0.0.1:0 --threads 2");
    let mut clients: Vec<_> =
        (0..12).map(|index| BufReader::new(backend.connect_to(index % 2))).collect();
    let mut received = 0;
    for _ in 0..2 {
        clients.iter_mut().for_each(|client| client.get_mut().write_all(HELD.as_bytes()).unwrap());
        await_in_progress(&backend, 12);
        clients.iter_mut().for_each(|client| client.get_mut().write_all(b"x").unwrap());
        received += clients.iter_mut().map(|client| reply(client).len() as u64).sum::<u64>();
    }
    // A thread counts what it sent after the client may have read it.
    eventually("bytes", || (backend.stat("bytes_sent") == received).then_some(()));
    let stats = backend.stats();
    assert_eq!((number(&stats, "requests"), number(&stats, "200")), (24, 24));
    assert_eq!((number(&stats, "open"), number(&stats, "in_progress")), (12, 0));
    assert_eq!(number(&stats, "highest"), 12);
    let (_, second) = stats.split_once(&format!("\"http://{}\":", backend.address(1))).unwrap();
    assert_eq!((number(second, "requests"), number(second, "highest")), (12, 6));
    backend.ask("GET /_stats/reset HTTP/1.0\r\n\r\n");
    let stats = backend.stats();
    assert_eq!((number(&stats, "requests"), number(&stats, "accepted")), (0, 0));
    assert_eq!((number(&stats, "open"), number(&stats, "highest")), (12, 0));
    let said = backend.stop();
    assert_eq!(said, "0 requests on 0 connections, at most 0 at once, 0 bytes sent\n");
}

#[test]
fn sleeps_and_delays_last_as_configured() {
    let folder = Folder::new();
    let log = folder.join("log");
    let options = format!("--listen 0 --sleep 30ms --delay 100%:20ms --log {}", log.display());
    let backend = Backend::start(&options);
    let mut stream = BufReader::new(backend.connect());
    for _ in 0..3 {
        stream.get_mut().write_all(GET.as_bytes()).unwrap();
        reply(&mut stream);
    }
    backend.stop();
    assert!(folder.read("log").lines().all(|line| line.ends_with(" 200 79 GET /x")));
    let times = logged_us(&folder);
    let sleeps =
        |[arrived, begun, written]: &[u64; 3]| arrived + 50_000 <= *begun && begun <= written;
    assert!(times.len() == 3 && times.iter().all(sleeps), "{times:?}");
}

#[test]
fn the_seed_alone_decides_which_requests_fail() {
    let options =
        "--listen 0 --error 20% --error-status 503 --disconnect 15% --cut 15% --reset 15%";
    let fates = |seed: u64| {
        let backend = Backend::start(&format!("{options} --seed {seed}"));
        let fate = |_| {
            let got = backend.get();
            match (got.lines().next(), body(&got)) {
                (None, _) => "nothing",
                (Some("HTTP/1.1 200 OK"), "Hello, world!\n") => "all",
                (Some("HTTP/1.1 200 OK"), "Hello, ") => "half",
                (Some("HTTP/1.1 503 Service Temporarily Unavailable"), _) => "error",
                other => panic!("{other:?}"),
            }
        };
        let fates: Vec<_> = (0..200).map(fate).collect();
        let count = |what| fates.iter().filter(|fate| **fate == what).count() as u64;
        let stats = backend.stats();
        assert_eq!(number(&stats, "503"), count("error"));
        assert_eq!(number(&stats, "200"), count("all") + count("half"));
        for (what, least) in [("nothing", 30), ("all", 40), ("half", 12), ("error", 20)] {
            assert!(count(what) >= least, "{what}: {}", count(what));
        }
        fates
    };
    let first = fates(1);
    assert_eq!(first, fates(1));
    assert_ne!(first, fates(2));
}

#[test]
fn requests_during_a_pause_are_answered_after_it() {
    const PERIOD_US: u64 = 30_000;
    let folder = Folder::new();
    let log = folder.join("log").display().to_string();
    let backend = Backend::start(&format!("--listen 0 --pause 20ms/30ms --log {log}"));
    // Who comes in a pause is answered after it.
    let paused = eventually("requests in pauses", || {
        backend.get();
        let times = logged_us(&folder);
        let first = times.first()?[0];
        let paused = times.iter().filter(|[arrived, ..]| (arrived - first) % PERIOD_US > 10_100);
        let paused = paused.map(|&[arrived, begun, _]| (arrived - first, begun - first));
        let paused: Vec<_> = paused.collect();
        (paused.len() >= 3).then_some(paused)
    });
    for (arrived, begun) in paused {
        let end = (arrived / PERIOD_US + 1) * PERIOD_US;
        // The log and the schedule round to microseconds, each in its own way.
        assert!(begun + 2 >= end, "{arrived} {begun}");
    }
}

#[test]
fn a_full_pool_and_queue_close_further_connections() {
    const SIZE: usize = 64 << 20;
    let backend = Backend::start("--listen 0 --pool 1 --pool-queue 2 --size 64m");
    // Each holds the place until it reads: no socket takes so much.
    let mut clients: Vec<_> = (1..=3)
        .map(|number| {
            let mut client = backend.connect();
            client.write_all(GET.as_bytes()).unwrap();
            await_in_progress(&backend, number);
            client
        })
        .collect();
    assert_eq!(backend.ask(GET), "", "closed without a reply");
    for (client, number) in clients.iter_mut().zip(1..) {
        client.read_exact(&mut [0]).unwrap();
        assert_eq!(backend.stat("200"), number, "one at a time");
        std::io::copy(&mut client.take(SIZE as u64), &mut std::io::sink()).unwrap();
    }
    assert_eq!((backend.stat("highest"), backend.stat("requests")), (4, 4));
}

#[test]
fn a_request_at_the_best_concurrency_takes_twice_the_time() {
    let folder = Folder::new();
    let log = folder.join("log").display().to_string();
    let backend = Backend::start(&format!("--listen 0 --pool 1 --slow 10ms,1 --log {log}"));
    backend.get();
    backend.stop();
    let [[arrived, begun, _]] = logged_us(&folder)[..] else { panic!("one line") };
    assert!(arrived + 20_000 <= begun);
}

#[test]
fn a_unix_socket_is_removed_at_the_end() {
    let folder = Folder::new();
    let path = folder.join("s");
    let backend = Backend::start(&format!("--listen unix:{} --threads 2", path.display()));
    assert_eq!(backend.names, [format!("unix:{}", path.display())]);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(body(&everything(stream)), "Hello, world!\n");
    let said = backend.stop();
    let expected = "1 requests on 1 connections, at most 1 at once, 98 bytes sent; 200: 1\n";
    assert_eq!(said, expected);
    assert!(!path.exists());
}

#[test]
fn tcp_and_udp_input_is_echoed() {
    let backend = Backend::start("--tcp-echo 0 --udp-echo 0 --listen 0");
    let udp = backend.address(2);
    assert!(backend.names[1].starts_with("tcp://") && backend.names[2].starts_with("udp://"));
    let mut stream = backend.connect_to(1);
    stream.write_all(b"hello").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(everything(stream), "hello");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(b"datagram", udp).unwrap();
    let mut buffer = [0; 16];
    assert_eq!(socket.recv(&mut buffer).unwrap(), 8);
    assert_eq!(&buffer[..8], b"datagram");
    drop(backend.connect_to(0));
    assert_eq!(backend.stat("bytes_sent"), 13);
}

#[test]
fn input_is_echoed_after_a_switch_of_protocols() {
    let backend = Backend::start("--listen 0 --upgrade");
    let mut stream = backend.connect();
    let asked =
        "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    stream.write_all(format!("{asked}hello ").as_bytes()).unwrap();
    stream.write_all(GET.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                Upgrade: websocket\r\n\r\n";
    assert_eq!(everything(stream), format!("{head}hello {GET}"));
    let stats = backend.stats();
    assert_eq!((number(&stats, "101"), number(&stats, "requests")), (1, 1));
    assert!(
        backend.ask(GET.replace("Host", "Connection: close\r\nHost").as_str()).ends_with("!\n")
    );
    let plain = Backend::start("--listen 0");
    assert!(plain.ask(&asked.replace("Upgrade\r\nUp", "close\r\nUp")).starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_request_is_shown_as_it_arrived() {
    let backend = Backend::start("--listen 0 --whoami --status 201");
    let head =
        "PUT /a?b=c HTTP/1.0\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\nContent-Length: 5\r\n\r\n";
    let got = backend.ask(&format!("{head}hello"));
    assert!(got.starts_with("HTTP/1.1 201 Created\r\n"), "{got}");
    assert_eq!(body(&got), format!("{head}body: 5 bytes\n"));
    let got = backend.get();
    assert_eq!(body(&got), "GET / HTTP/1.0\r\n\r\nbody: 0 bytes\n");
}

#[test]
fn a_body_that_trickles_takes_its_time() {
    let folder = Folder::new();
    let log = folder.join("log").display().to_string();
    let backend = Backend::start(&format!("--listen 0 --size 30 --trickle 100 --log {log}"));
    let got = backend.get();
    assert_eq!(body(&got).len(), 30);
    backend.stop();
    let [[_, begun, written]] = logged_us(&folder)[..] else { panic!("one line") };
    // Five bytes at once, the last five a quarter of a second later.
    assert!(begun + 250_000 <= written);
}

//! Whatever goes wrong is counted once, as what it is.

use std::net::TcpListener;
use std::thread;

use super::generator::{
    CLOSED, INVALID, REFUSED, RESET, Report, SHORT, STATUS_404, STATUS_500, STATUS_600, TIMEOUT,
    load, start,
};
use super::peer::{Client, OK, Peer};
use super::server::backend::{Backend, number};
use testing::Folder;

const REQUESTS: u64 = 20;

fn run(serve: fn(Client) -> Option<()>, options: &str) -> Report {
    let peer = Peer::start(serve);
    load(&format!("-n {REQUESTS} -c 3 -t 2 {options} http://{}/", peer.address))
}

/// Every request fails, in this way.
fn fails(kind: &str, options: &str, serve: fn(Client) -> Option<()>) {
    let report = run(serve, options);
    assert_eq!(report.errors(), [(kind, REQUESTS)], "{report:#?}");
    assert_eq!((report.requests(), report.code), (0, Some(1)), "{report:#?}");
    let column = if kind == TIMEOUT { 3 } else { 1 };
    let mut columns = [0; 4];
    columns[column] = REQUESTS;
    assert_eq!(report.socket_errors(), Some(columns), "{report:#?}");
    assert_eq!(report.err.lines().last(), Some("weir load: no reply to any of 20 requests"));
}

/// Answers once, in this way.
fn once(mut client: Client, reply: &[u8]) -> Option<()> {
    client.request()?;
    client.write(reply)
}

#[test]
fn early_ends_are_counted_as_closed_or_short() {
    fails(CLOSED, "", |mut client| client.request());
    fails(CLOSED, "--close", |mut client| client.request());
    fails(CLOSED, "", |client| once(client, b"HTTP/1.1 100 Continue\r\n\r\n"));
    fails(SHORT, "", |client| once(client, b"H"));
    fails(SHORT, "", |client| once(client, b"HTTP/1.1 200 OK\r\nContent-Le"));
    fails(SHORT, "", |client| once(client, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"));
    fails(SHORT, "", |client| once(client, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx"));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    assert!(chunked.ends_with("\r\n"));
    fails(SHORT, "", |client| {
        once(client, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    });
}

#[test]
fn resets_are_counted_when_reading_or_writing() {
    fails(RESET, "", Client::reset);
    fails(RESET, "--close", Client::reset);
    fails(RESET, "", |mut client| {
        client.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")?;
        client.reset()
    });
    // More than the socket takes, so that it is the write that fails.
    let folder = Folder::new();
    folder.write("body", "x".repeat(8 << 20));
    let body = folder.join("body").display().to_string();
    fails(RESET, &format!("--body-file {body}"), Client::reset);
}

#[test]
fn invalid_replies_are_counted() {
    for reply in [
        &b"SSH-2.0-OpenSSH_9.2p1\r\n"[..],
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ] {
        let peer = Peer::answering(reply);
        let report = load(&format!("-n {REQUESTS} -c 3 -t 2 http://{}/", peer.address));
        assert_eq!(report.errors(), [(INVALID, REQUESTS)], "{report:#?}");
    }
    // A head without an end.
    fails(INVALID, "", |mut client| {
        client.request()?;
        client.write(b"HTTP/1.1 200 OK\r\n")?;
        (0..20_000).try_for_each(|_| client.write(b"A: b\r\n"))?;
        client.hold()
    });
}

#[test]
fn bytes_after_a_reply_are_counted_as_invalid() {
    let peer = Peer::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more");
    let report = load(&format!("-n {REQUESTS} -c 3 -t 2 http://{}/", peer.address));
    assert_eq!((report.requests(), report.errors()), (REQUESTS, vec![(INVALID, REQUESTS)]));
    let peer = Peer::answering(OK);
    let report = load(&format!("-n {REQUESTS} -c 3 -t 2 -m HEAD http://{}/", peer.address));
    assert_eq!(report.requests() + report.error(SHORT), REQUESTS, "{report:#?}");
    assert!(report.error(INVALID) > 0, "{report:#?}");
}

#[test]
fn silence_is_counted_as_a_timeout() {
    fails(TIMEOUT, "-c 20 --timeout 200ms", |mut client| {
        client.request()?;
        client.hold()
    });
    fails(TIMEOUT, "-c 20 --timeout 200ms", |mut client| {
        client.request()?;
        client.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")?;
        client.hold()
    });
}

#[test]
fn error_statuses_are_counted_as_replies() {
    for (reply, kind) in [
        (&b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..], STATUS_404),
        (b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", STATUS_500),
        (b"HTTP/1.1 600 ?\r\nContent-Length: 0\r\n\r\n", STATUS_600),
    ] {
        let peer = Peer::answering(reply);
        let report = load(&format!("-n {REQUESTS} -c 3 -t 2 http://{}/", peer.address));
        assert_eq!((report.requests(), report.bad_statuses()), (REQUESTS, Some(REQUESTS)));
        assert_eq!((report.errors(), report.socket_errors()), (vec![(kind, REQUESTS)], None));
        assert_eq!(report.code, Some(0), "{report:#?}");
    }
}

#[test]
fn refused_connections_are_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = thread::spawn(move || {
        // The first connection only sees whether anybody is there.
        drop(listener.accept().unwrap());
        let mut listener = Some(listener);
        for number in 1..=10 {
            let (stream, _) = listener.as_ref().unwrap().accept().unwrap();
            if number == 10 {
                listener = None;
            }
            let mut stream = std::io::BufReader::new(stream);
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                std::io::BufRead::read_line(&mut stream, &mut line).unwrap();
            }
            std::io::Write::write_all(stream.get_mut(), OK).unwrap();
        }
    });
    let report = load(&format!("-n 30 -c 1 -t 1 --close http://{address}/"));
    served.join().unwrap();
    // Another test's child has the socket, too, until it is another program: that one resets.
    let refused = report.error(REFUSED);
    assert_eq!((report.requests(), refused + report.error(RESET)), (10, 20), "{report:#?}");
    assert_eq!(report.socket_errors(), Some([refused, 20 - refused, 0, 0]), "{report:#?}");
    assert!(refused > 10 && report.code == Some(0), "{report:#?}");
}

#[test]
fn results_before_the_server_is_killed_are_kept() {
    let backend = Backend::start("--listen 0");
    let running = start(&format!("-d 1s -c 8 -t 2 http://{}/", backend.address(0)));
    testing::eventually("requests", || (backend.stat("requests") > 100).then_some(()));
    drop(backend);
    let report = running.end();
    assert!(report.requests() > 100 && report.error(REFUSED) > 0, "{report:#?}");
    // Each connection had a request on its way, and perhaps another in the queue that went last.
    assert!(report.error(RESET) + report.error(CLOSED) <= 16, "{report:#?}");
    assert_eq!(report.code, Some(0));
}

#[test]
fn counts_of_mixed_errors_add_up() {
    let options = "--listen 0 --error 10% --disconnect 7% --cut 5% --reset 3% --threads 2";
    for (seed, how) in [(1, ""), (2, "--close"), (3, "--per-connection 3"), (4, "--rate 20k")] {
        let folder = Folder::new();
        let log = folder.join("log");
        let backend = Backend::start(&format!("{options} --seed {seed} --log {}", log.display()));
        let report = load(&format!("-n 1000 -c 7 -t 3 {how} http://{}/", backend.address(0)));
        let stats = backend.stats();
        assert_eq!(report.requests() + report.failures(), 1000, "{how}: {report:#?}");
        assert_eq!(number(&stats, "requests"), 1000, "{how}");
        assert_eq!(report.bad_statuses(), Some(number(&stats, "500")), "{how}: {report:#?}");
        backend.stop();
        let log = folder.read("log");
        let silent = log.lines().filter(|line| line.split(' ').nth(3) == Some("0")).count() as u64;
        assert_eq!(report.error(CLOSED) + report.error(RESET), silent, "{how}: {report:#?}");
        let ranges = [(CLOSED, 40..110), (SHORT, 25..80), (RESET, 12..55), (STATUS_500, 60..150)];
        for (kind, range) in ranges {
            assert!(range.contains(&report.error(kind)), "{how} {kind}: {report:#?}");
        }
    }
}

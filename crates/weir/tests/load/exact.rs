//! As many requests as were asked for, and those that were asked for.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use super::generator::{Report, load, start};
use super::peer::{OK, Peer, Seen};
use super::server::backend::{Backend, number};
use testing::{Folder, eventually};

/// Sends so many to a server that answers, and lets both say how many it were.
fn send(requests: u64, options: &str) -> Seen {
    let peer = Peer::answering(OK);
    load(&format!("-n {requests} {options} http://{}/", peer.address)).assert_clean(requests);
    let seen = peer.seen();
    assert_eq!(seen.requests, requests, "{options}");
    seen
}

#[test]
fn the_number_of_requests_is_exact() {
    for options in ["-c 1 -t 1", "-c 7 -t 3", "-c 10 -t 4", "-c 3 -t 3", "-c 64 -t 5"] {
        let seen = send(1000, options);
        let connections: u64 = options.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(seen.connections <= connections, "{options}: {}", seen.connections);
    }
    // More than there is to do.
    send(3, "-c 40 -t 8");
}

#[test]
fn a_connection_has_as_many_requests_as_it_may() {
    let seen = send(1000, "-c 7 -t 3 --close");
    assert_eq!((seen.connections, seen.most), (1000, 1));
    assert!(seen.last.contains("\r\nConnection: close\r\n"), "{}", seen.last);
    let seen = send(1000, "-c 5 -t 2 --per-connection 7");
    assert_eq!(seen.most, 7);
    assert!((1000 / 7..1000 / 7 + 5).contains(&(seen.connections - 1)), "{}", seen.connections);
    assert!(!seen.last.contains("Connection: "), "{}", seen.last);
}

#[test]
fn pipelines_need_not_be_full() {
    send(1003, "-c 4 -t 3 --pipeline 5");
    let seen = send(1000, "-c 4 -t 3 --pipeline 5 --per-connection 5");
    assert_eq!(seen.most, 5);
}

#[test]
fn unanswered_pipelined_requests_are_sent_again() {
    let peer = Peer::start(|mut client| {
        for _ in 0..2 {
            client.request()?;
            client.write(OK)?;
        }
        client.request()?;
        client.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")?;
        client.hold()
    });
    let folder = Folder::new();
    folder.write("list", "/a\n/b\nPUT /c\n/d\n/e\n");
    let (list, address) = (folder.join("list").display().to_string(), peer.address);
    let options = "-n 40 -c 1 -t 1 --pipeline 8";
    load(&format!("{options} --list {list} http://{address}/")).assert_clean(40);
    let (seen, each) = (peer.seen(), 8);
    let expected = [("GET /a", each), ("GET /b", each), ("PUT /c", each)];
    let expected = expected.into_iter().chain([("GET /d", each), ("GET /e", each)]);
    assert_eq!(seen.lines, lines(&expected.collect::<Vec<_>>()));
    assert_eq!(seen.most, 3);
}

fn lines(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(line, count)| (format!("{line} HTTP/1.1"), *count)).collect()
}

#[test]
fn weights_are_exact_over_all_threads() {
    let peer = Peer::answering(OK);
    for (options, requests) in [("-t 3 -c 7", 1000), ("-t 3 -c 7 --rate 20k", 200)] {
        let urls = ["a", "b?x=y", "c"].map(|path| format!("http://{}/{path}", peer.address));
        let urls = urls.join(" ");
        let report = load(&format!("{options} -n {requests} --weights 5,3,2 {urls}"));
        report.assert_clean(requests);
        let shares = [("GET /a", 5), ("GET /b?x=y", 3), ("GET /c", 2)];
        let shares = shares.map(|(line, share)| (line, share * requests / 10));
        assert_eq!(peer.take().lines, lines(&shares), "{options}");
    }
}

#[test]
fn a_list_is_gone_through_in_order() {
    let folder = Folder::new();
    folder.write("list", "# what is asked for\n/a\nPUT /b\n\nDELETE /c?d=e\n/f\n");
    let peer = Peer::answering(OK);
    let url = format!("http://{}/", peer.address);
    let list = folder.join("list").display().to_string();
    load(&format!("-n 1000 -c 7 -t 3 --list {list} {url}")).assert_clean(1000);
    let all = ["GET /a", "PUT /b", "DELETE /c?d=e", "GET /f"];
    assert_eq!(peer.take().lines, lines(&all.map(|line| (line, 250))));
    load(&format!("-n 3 -c 1 -t 1 --list {list} {url}")).assert_clean(3);
    let seen = peer.take();
    assert_eq!(seen.lines, lines(&[(all[0], 1), (all[1], 1), (all[2], 1)]));
    assert!(seen.last.starts_with("DELETE /c?d=e "), "{}", seen.last);
}

#[test]
fn options_for_requests_are_applied() {
    let address = |seen: &Seen| seen.last.clone();
    let plain = address(&send(4, "-t 1"));
    let (first, host) = plain.split_once("\r\nHost: ").unwrap();
    assert_eq!(first, "GET / HTTP/1.1");
    let host = host.trim_end();
    assert!(host.starts_with("127.0.0.1:"), "{plain}");
    let said = |options: &str| send(4, options).last;
    let text = said("-m PATCH -b some=thing -H X-One:1 -H Host:other -t 1");
    let expected = "PATCH / HTTP/1.1\r\nX-One: 1\r\nHost: other\r\nContent-Length: 10\r\n\r\n";
    assert_eq!(text, format!("{expected}some=thing"));
    let folder = Folder::new();
    folder.write("body", "long ".repeat(100_000));
    let text = said(&format!("--body-file {}", folder.join("body").display()));
    assert!(text.starts_with("POST / HTTP/1.1\r\n"), "{}", &text[..100]);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with("Content-Length: 500000") && body == "long ".repeat(100_000));
}

#[test]
fn connections_come_from_the_given_addresses() {
    let seen = send(1000, "-c 8 -t 2 --close --from 127.0.0.2,127.0.0.3");
    let sources: Vec<IpAddr> = seen.sources.keys().copied().collect();
    assert_eq!(sources, [IpAddr::from([127, 0, 0, 2]), IpAddr::from([127, 0, 0, 3])]);
    assert!(seen.sources.values().all(|count| *count > 100), "{:?}", seen.sources);
}

#[test]
fn requests_over_a_unix_socket_are_counted() {
    let folder = Folder::new();
    let path = folder.join("s").display().to_string();
    let backend = Backend::start(&format!("--listen unix:{path} --body hi"));
    load(&format!("-n 1000 -c 7 -t 3 http://unix:{path}:/x")).assert_clean(1000);
    load(&format!("-n 100 -c 7 -t 3 --close http://unix:{path}")).assert_clean(100);
    let said = backend.stop();
    assert!(said.starts_with("1100 requests on ") && said.contains("; 200: 1100\n"), "{said}");
}

fn echoed(name: &str, options: &str, requests: u64) -> (Report, Backend) {
    let backend = Backend::start("--tcp-echo 0 --udp-echo 0 --listen 0");
    let url = backend.names.iter().find(|url| url.starts_with(name)).unwrap();
    let report = load(&format!("-n {requests} {options} -b 0123456789 {url}"));
    (report, backend)
}

#[test]
fn echoed_bytes_and_datagrams_are_counted() {
    for options in ["-c 7 -t 3", "-c 7 -t 3 --close", "-c 7 -t 3 --pipeline 5", "--rate 20k"] {
        let (report, backend) = echoed("tcp", options, 1000);
        report.assert_clean(1000);
        assert_eq!(number(&backend.stats(), "bytes_received"), 10_000, "{options}");
    }
    for options in ["-c 7 -t 3", "-c 7 -t 3 --rate 20k"] {
        let (report, backend) = echoed("udp", options, 1000);
        report.assert_clean(1000);
        assert_eq!(number(&backend.stats(), "requests"), 1000, "{options}");
    }
}

#[test]
fn json_on_standard_output_stands_alone() {
    let peer = Peer::answering(OK);
    let report = load(&format!("-n 10 --repeat 2 --json - http://{}/", peer.address));
    assert!(report.out.starts_with("[{") && report.out.ends_with("}]\n"), "{report:#?}");
    assert_eq!(report.out.matches("\"format\": ").count(), 2, "{report:#?}");
    assert!(report.err.contains("\nRun 2 of 2\nRunning test @ "), "{report:#?}");
}

#[test]
fn progress_is_printed_while_any_thread_runs() {
    let asked = AtomicU64::new(0);
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let peer = Peer::start(move |mut client| {
        let mut is_first = true;
        while client.request().is_some() {
            // One of two connections, so one of two threads, waits for its first reply.
            if std::mem::take(&mut is_first) && asked.fetch_add(1, Ordering::Relaxed) == 1 {
                let _ = released.lock().unwrap().recv();
            }
            client.write(OK)?;
        }
        Some(())
    });
    let running = start(&format!("-n 40 -c 2 -t 2 --timeout 60s http://{}/", peer.address));
    let seconds = || running.err().matches(" requests/s ").count();
    // The other thread has sent its half; seconds are told without it.
    peer.await_requests(21);
    let before = seconds();
    eventually("two more seconds", || (seconds() >= before + 2).then_some(()));
    release.send(()).unwrap();
    let report = running.end();
    report.assert_clean(40);
    let first = report.err.lines().find(|line| line.contains(" requests/s ")).unwrap();
    assert!(first.trim().starts_with("1.0s"), "{report:#?}");
}

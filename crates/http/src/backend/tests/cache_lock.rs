//! `cache_lock`: who asks the backend, and what the others are answered, however the fetch ends.

use std::io::Read as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use super::cache::{Cached, GET, outcome};
use crate::backend::testing::{TestBackend, text};
use crate::h1::tests::{Client, Server};
use testing::Folder;

const CLIENTS: usize = 10;
const LOCKED: &str = "proxy_cache_valid 200 1m; proxy_cache_lock on;";

/// A server whose backend waits with its answers until the sender is dropped.
fn held(lines: &str, reply: &str) -> (Cached, Sender<()>) {
    let (open, gate) = channel();
    let (gate, reply) = (Mutex::new(gate), reply.to_owned());
    let cached = Cached::answering(&format!("{LOCKED}{lines}"), move |_| {
        // Fails once the sender is dropped.
        let _ = gate.lock().unwrap().recv();
        reply.clone()
    });
    (cached, open)
}

/// Sends requests, opens the gate when all of them wait, and returns the replies.
fn ask_at_once(server: &Server, open: Sender<()>) -> Vec<String> {
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(GET);
        server.advance(1);
    }
    drop(open);
    clients.iter_mut().map(|client| client.rest()).collect()
}

/// The status of each reply with the number of its replies, in order.
fn statuses(replies: &[String]) -> Vec<(String, usize)> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    let mut statuses: Vec<_> = replies.iter().map(|reply| reply[9..12].to_owned()).collect();
    statuses.sort_unstable();
    for status in statuses {
        match counted.last_mut() {
            Some((last, count)) if *last == status => *count += 1,
            _ => counted.push((status, 1)),
        }
    }
    counted
}

fn asked(backend: &TestBackend, times: usize) {
    (0..times).for_each(|_| _ = backend.asked());
    backend.expect_unasked();
}

#[test]
fn one_request_fetches_an_expired_reply() {
    let (cached, open) = held("", "HTTP/1.1 200 OK\nContent-Length: 1\n\na");
    open.send(()).unwrap();
    cached.get();
    cached.expire();
    let replies = ask_at_once(&cached.server, open);
    let count = |wanted| replies.iter().filter(|reply| outcome(reply) == wanted).count();
    assert_eq!((count("EXPIRED a"), count("HIT a")), (1, CLIENTS - 1));
    asked(&cached.backend, 2);
}

#[test]
fn nobody_waits_behind_a_reply_that_may_not_be_stored() {
    let reply = "HTTP/1.1 200 OK\nCache-Control: no-store\nContent-Length: 1\n\na";
    let (cached, open) = held("", reply);
    let replies = ask_at_once(&cached.server, open);
    assert_eq!(statuses(&replies), [("200".into(), CLIENTS)]);
    asked(&cached.backend, CLIENTS);
    assert_eq!(cached.get(), "MISS a");
}

#[test]
fn nobody_waits_behind_a_reply_that_turns_out_too_large() {
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let cached = Cached::within("max_object_size=4", LOCKED, move |_| {
        let _ = gate.lock().unwrap().recv();
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\r\nhello\r\n0\r\n\r\n".into()
    });
    open.send(()).unwrap();
    cached.get();
    // The first of the next ones is not waited for, although its reply does not come.
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| cached.server.connect()).collect();
    for client in &mut clients {
        client.send(GET);
    }
    asked(&cached.backend, 1 + CLIENTS);
    drop(open);
    assert!(clients.iter_mut().all(|client| client.rest().contains("X-Cache: MISS\r\n")));
}

#[test]
fn nobody_waits_although_there_is_an_expired_reply() {
    let both = Mutex::new(false);
    let cached = Cached::answering(LOCKED, move |_| {
        let fields = match std::mem::replace(&mut *both.lock().unwrap(), true) {
            false => "Cache-Control: max-age=60",
            true => "Cache-Control: no-store",
        };
        format!("HTTP/1.1 200 OK\n{fields}\nContent-Length: 1\n\na")
    });
    cached.get();
    cached.expire();
    assert_eq!(cached.get(), "EXPIRED a");
    let replies = ask_at_once(&cached.server, channel().0);
    assert!(replies.iter().all(|reply| outcome(reply) == "EXPIRED a"));
    asked(&cached.backend, CLIENTS + 2);
}

#[test]
fn an_error_of_the_backend_is_shared_after_three_tries() {
    let (cached, open) = held("", "HTTP/1.1 503 Busy\nContent-Length: 4\n\nbusy");
    let replies = ask_at_once(&cached.server, open);
    assert_eq!(statuses(&replies), [("503".into(), CLIENTS)]);
    let own = replies.iter().filter(|reply| reply.ends_with("busy")).count();
    assert_eq!(own, 3);
    asked(&cached.backend, 3);
}

#[test]
fn a_reply_that_is_cut_is_fetched_by_one_after_another() {
    let (folder, (open, gate)) = (Folder::new(), channel::<()>());
    let (gate, tries) = (Mutex::new(gate), AtomicUsize::new(0));
    let backend = TestBackend::playing(move |mut peer| {
        peer.request();
        let _ = gate.lock().unwrap().recv();
        peer.send(match tries.fetch_add(1, Ordering::SeqCst) {
            0 => "HTTP/1.1 200 OK\nContent-Length: 9\n\na",
            _ => "HTTP/1.1 200 OK\nContent-Length: 1\n\na",
        })
    });
    let (address, path) = (backend.address(), folder.display());
    let server = Server::start(format!(
        "error_log e.log; proxy_cache_path {path}/cache keys_zone=one:1m;
         proxy_temp_path {path}/temp;
         server {{ location / {{ proxy_pass http://{address}; proxy_cache one; {LOCKED} }} }}"
    ));
    let replies = ask_at_once(&server, open);
    let cut = replies.iter().filter(|reply| reply.contains("Content-Length: 9\r\n")).count();
    assert_eq!((cut, statuses(&replies)), (1, vec![("200".into(), CLIENTS)]));
    asked(&backend, 2);
}

#[test]
fn a_backend_that_hangs_up_is_asked_three_times_for_all_who_wait() {
    let (folder, (open, gate)) = (Folder::new(), channel::<()>());
    let gate = Mutex::new(gate);
    let backend = TestBackend::playing(move |mut peer| {
        peer.request();
        let _ = gate.lock().unwrap().recv();
    });
    let (address, path) = (backend.address(), folder.display());
    let server = Server::start(format!(
        "error_log e.log; proxy_cache_path {path}/cache keys_zone=one:1m;
         server {{ location / {{ proxy_pass http://{address}; proxy_cache one; {LOCKED} }} }}"
    ));
    let replies = ask_at_once(&server, open);
    assert_eq!(statuses(&replies), [("502".into(), CLIENTS)]);
    asked(&backend, 3);
}

#[test]
fn a_failure_that_is_shared_may_be_answered_with_the_expired_reply() {
    let (open, gate) = channel::<()>();
    let (gate, tries) = (Mutex::new(gate), AtomicUsize::new(0));
    let lines = format!("{LOCKED} proxy_cache_use_stale http_500;");
    let cached = Cached::answering(&lines, move |_| {
        if tries.fetch_add(1, Ordering::SeqCst) == 0 {
            return "HTTP/1.1 200 OK\nContent-Length: 1\n\na".into();
        }
        let _ = gate.lock().unwrap().recv();
        "HTTP/1.1 500 Error\nContent-Length: 1\n\nb".into()
    });
    cached.get();
    cached.expire();
    let replies = ask_at_once(&cached.server, open);
    assert!(replies.iter().all(|reply| outcome(reply) == "STALE a"), "{replies:?}");
    asked(&cached.backend, 4);
}

#[test]
fn errors_that_are_valid_for_a_time_are_found_by_those_who_wait() {
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let lines = format!("{LOCKED} proxy_cache_valid 500 1m;");
    let cached = Cached::answering(&lines, move |_| {
        let _ = gate.lock().unwrap().recv();
        "HTTP/1.1 500 Error\nContent-Length: 1\n\nb".into()
    });
    let replies = ask_at_once(&cached.server, open);
    let hits = replies.iter().filter(|reply| outcome(reply) == "HIT b").count();
    assert_eq!(hits, CLIENTS - 1);
    asked(&cached.backend, 1);
}

#[test]
fn a_reply_that_is_not_stored_for_its_request_alone_holds_others_up_three_times() {
    let (cached, open) = held(" proxy_no_cache 1;", "HTTP/1.1 200 OK\nContent-Length: 1\n\na");
    let replies = ask_at_once(&cached.server, open);
    assert_eq!(statuses(&replies), [("200".into(), CLIENTS)]);
    asked(&cached.backend, CLIENTS);
}

#[test]
fn a_client_that_leaves_does_not_hold_the_others_up() {
    let (cached, open) = held("", "HTTP/1.1 200 OK\nContent-Length: 1\n\na");
    let mut first = cached.server.connect();
    first.send(GET);
    cached.server.advance(1);
    let mut second = cached.server.connect();
    second.send(GET);
    cached.server.advance(1);
    drop(first);
    cached.server.advance(1);
    drop(open);
    assert_eq!(outcome(&second.rest()), "HIT a");
    asked(&cached.backend, 1);
}

const FOLLOWED: &str = "proxy_cache_read_while_writing on;";

/// The beginning of a reply, of which a part is sent before the rest comes.
const BEGINNING: usize = 200_000;

/// A backend that sends the beginning of a reply, and the rest when it is told; `None`: it hangs up
/// instead.
fn in_parts(lines: &str, rest: usize) -> (Folder, TestBackend, Server, Sender<Option<String>>) {
    let (folder, (tell, told)) = (Folder::new(), channel::<Option<String>>());
    let told = Mutex::new(told);
    let backend = TestBackend::playing(move |mut peer| {
        peer.request();
        let length = BEGINNING + rest;
        peer.send(&format!("HTTP/1.1 200 OK\nContent-Length: {length}\n\n"));
        peer.send_raw(text(BEGINNING));
        while let Ok(Some(part)) = told.lock().unwrap().recv() {
            peer.send_raw(part);
        }
    });
    let (address, path) = (backend.address(), folder.display());
    let server = Server::start(format!(
        "error_log e.log; proxy_cache_path {path}/cache keys_zone=one:1m;
         proxy_temp_path {path}/temp; add_header X-Cache $upstream_cache_status always;
         proxy_cache one; {LOCKED} {lines}
         server {{ location / {{ proxy_pass http://{address}; }} }}"
    ));
    (folder, backend, server, tell)
}

/// Sends a request and reads half of what there is of the reply.
fn begin(server: &Server) -> Client {
    let mut client = server.connect();
    client.send(GET);
    client.0.read_exact(&mut [0; BEGINNING / 2]).unwrap();
    client
}

#[test]
fn those_who_wait_follow_a_reply_that_is_being_fetched() {
    let (_folder, backend, server, tell) = in_parts(FOLLOWED, 5);
    let mut clients: Vec<_> = (0..3).map(|_| begin(&server)).collect();
    tell.send(Some("ended".into())).unwrap();
    let whole = text(BEGINNING) + "ended";
    for client in &mut clients {
        let rest = client.rest();
        assert!(rest.len() < BEGINNING && whole.ends_with(&rest[rest.len() - 90_000..]));
    }
    asked(&backend, 1);
    assert_eq!(outcome(&server.ask(GET)), format!("HIT {whole}"));
}

#[test]
fn those_who_follow_are_cut_with_the_reply() {
    let (_folder, backend, server, tell) = in_parts(FOLLOWED, 5);
    let mut clients: Vec<_> = (0..2).map(|_| begin(&server)).collect();
    tell.send(None).unwrap();
    assert!(clients.iter_mut().all(|client| client.rest().len() <= BEGINNING));
    asked(&backend, 1);
}

#[test]
fn a_client_that_reads_nothing_does_not_hold_up_those_who_wait() {
    let rest = text(4_000_000);
    let (_folder, backend, server, tell) = in_parts("", rest.len());
    let mut slow = server.connect();
    slow.send(GET);
    server.advance(1);
    let mut quick = server.connect();
    quick.send(GET);
    server.advance(1);
    tell.send(Some(rest.clone())).unwrap();
    let whole = text(BEGINNING) + &rest;
    assert_eq!(outcome(&quick.rest()), format!("HIT {whole}"));
    assert_eq!(outcome(&slow.rest()), format!("MISS {whole}"));
    asked(&backend, 1);
}

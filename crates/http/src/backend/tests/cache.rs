//! Replies from the cache, and what the backend is asked for instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use testing::Folder;

use crate::backend::testing::{TestBackend, values};
use crate::h1::tests::Server;

pub(super) const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

pub(super) struct Cached {
    pub(super) folder: Folder,
    pub(super) backend: TestBackend,
    pub(super) server: Server,
}

/// The status of the cache and the body of each reply, with a space between them.
pub(super) fn outcome(reply: &str) -> String {
    let body = reply.split("\r\n\r\n").nth(1).unwrap_or_default();
    format!("{} {body}", values(reply, "X-Cache").join(","))
}

impl Cached {
    /// A server that caches what a backend replies; `%N` in the reply is the number of requests.
    pub(super) fn of(reply: &str, lines: &str) -> Self {
        let (reply, asked) = (reply.to_owned(), AtomicU32::new(0));
        Self::answering(lines, move |_| {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            reply.replace("%N", &number.to_string())
        })
    }

    pub(super) fn answering(
        lines: &str,
        answer: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        Self::within("", lines, answer)
    }

    /// With more parameters of `proxy_cache_path`.
    pub(super) fn within(
        parameters: &str,
        lines: &str,
        answer: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        let folder = Folder::new();
        let backend = TestBackend::answering(answer);
        let (address, path) = (backend.address(), folder.display());
        let server = Server::start(format!(
            "error_log e.log info;
             proxy_cache_path {path}/cache keys_zone=one:1m levels=1:2 {parameters};
             proxy_temp_path {path}/temp;
             add_header X-Cache $upstream_cache_status always;
             server {{ location / {{ proxy_pass http://{address}; proxy_cache one; {lines} }} }}"
        ));
        Self { folder, backend, server }
    }

    pub(super) fn get(&self) -> String {
        outcome(&self.server.ask(GET))
    }

    pub(super) fn get_with(&self, fields: &str) -> String {
        outcome(&self.reply_with(fields))
    }

    pub(super) fn reply_with(&self, fields: &str) -> String {
        let fields = format!("\r\n{fields}\r\n\r\n");
        self.server.ask(&GET.replacen("\r\n\r\n", &fields, 1))
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        fn below(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => below(&path, found),
                    false => found.push(path),
                }
            }
        }
        let mut found = Vec::new();
        below(&self.folder.join("cache"), &mut found);
        below(&self.folder.join("temp"), &mut found);
        found
    }

    /// Makes the stored reply one that was fresh until the beginning of 1970.
    pub(super) fn expire(&self) {
        self.set_valid(1);
    }

    /// Makes the stored reply one that is fresh until that second.
    pub(super) fn set_valid(&self, valid_s: i64) {
        for path in self.files() {
            let mut bytes = fs::read(&path).unwrap();
            bytes[8..16].copy_from_slice(&valid_s.to_ne_bytes());
            fs::write(path, bytes).unwrap();
        }
    }
}

const REPLY: &str = "HTTP/1.1 200 OK\nContent-Length: 2\n\nn%N";

#[test]
fn a_reply_is_stored_as_nginx_does_and_served_again() {
    let cached = Cached::of(REPLY, "proxy_cache_valid 1m;");
    assert_eq!([cached.get(), cached.get(), cached.get()], ["MISS n1", "HIT n1", "HIT n1"]);
    let key = format!("http://{}/a", cached.backend.address());
    let name = cache::KeyDigest::of(key.as_bytes()).hexadecimal();
    let name = str::from_utf8(&name).unwrap();
    let path = cached.folder.join(format!("cache/{}/{}/{name}", &name[31..], &name[29..31]));
    assert_eq!(cached.files(), [&*path]);
    let file = fs::read(path).unwrap();
    let rest = format!("\nKEY: {key}\nHTTP/1.1 200 OK\nContent-Length: 2\n\nn1");
    assert_eq!(str::from_utf8(&file[336..]).unwrap().replace('\r', ""), rest);
}

#[test]
fn a_reply_without_a_validity_is_not_stored() {
    for lines in ["", "proxy_cache_valid 404 1m;", "proxy_cache_valid 200 0;"] {
        let cached = Cached::of(REPLY, lines);
        assert_eq!([cached.get(), cached.get()], ["MISS n1", "MISS n2"], "{lines}");
        assert!(cached.files().is_empty());
    }
    for (fields, lines) in [
        ("Cache-Control: max-age=60\n", ""),
        ("X-Accel-Expires: 60\nCache-Control: no-store\n", ""),
        ("Set-Cookie: a=b\n", "proxy_cache_valid any 1m; proxy_ignore_headers Set-Cookie;"),
    ] {
        let reply = REPLY.replacen("Content", &format!("{fields}Content"), 1);
        let cached = Cached::of(&reply, lines);
        assert_eq!([cached.get(), cached.get()], ["MISS n1", "HIT n1"], "{fields}");
    }
    let reply = REPLY.replacen("Content", "Set-Cookie: a=b\nContent", 1);
    let cached = Cached::of(&reply, "proxy_cache_valid any 1m;");
    assert_eq!([cached.get(), cached.get()], ["MISS n1", "MISS n2"]);
}

#[test]
fn large_and_chunked_replies_are_stored_whole() {
    let long = "x".repeat(300_000);
    for framing in [
        format!("Content-Length: 300000\n\n{long}"),
        format!("Transfer-Encoding: chunked\n\n493e0\r\n{long}\r\n0\r\n\r\n"),
    ] {
        let cached = Cached::of(&format!("HTTP/1.1 200 OK\n{framing}"), "proxy_cache_valid 1m;");
        let replies = [cached.get(), cached.get()].map(|reply| reply.replace("493e0", ""));
        let wanted = |reply: &str| reply.matches('x').count() == 300_000;
        assert!(replies[0].starts_with("MISS ") && wanted(&replies[0]));
        assert!(replies[1].starts_with("HIT ") && wanted(&replies[1]));
        cached.backend.asked();
        cached.backend.expect_unasked();
    }
}

#[test]
fn an_expired_reply_is_fetched_anew() {
    let cached = Cached::of(REPLY, "proxy_cache_valid 1m;");
    cached.get();
    cached.expire();
    assert_eq!([cached.get(), cached.get()], ["EXPIRED n2", "HIT n2"]);
}

#[test]
fn an_expired_reply_that_is_still_valid_is_used_again() {
    let lines = "proxy_cache_valid 1m; proxy_cache_revalidate on;";
    let cached = Cached::answering(lines, |request| match request.contains("If-None-Match") {
        true => "HTTP/1.1 304 Not Modified\nETag: \"a\"\n\n".into(),
        false => "HTTP/1.1 200 OK\nETag: \"a\"\nContent-Length: 1\n\na".into(),
    });
    cached.get();
    cached.expire();
    assert_eq!([cached.get(), cached.get()], ["REVALIDATED a", "HIT a"]);
    cached.backend.asked();
    assert!(cached.backend.asked().contains("If-None-Match: \"a\"\n"));
    cached.backend.expect_unasked();
}

#[test]
fn an_expired_reply_is_better_than_an_error() {
    let lines = "proxy_cache_valid 1m; proxy_cache_use_stale http_500;";
    let asked = AtomicU32::new(0);
    let cached = Cached::answering(lines, move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => "HTTP/1.1 200 OK\nContent-Length: 1\n\na".into(),
        1 => "HTTP/1.1 500 Error\nContent-Length: 1\n\nb".into(),
        _ => "HTTP/1.1 404 Error\nContent-Length: 1\n\nc".into(),
    });
    cached.get();
    cached.expire();
    assert_eq!([cached.get(), cached.get(), cached.get()], ["STALE a", "EXPIRED c", "EXPIRED c"]);
}

#[test]
fn variants_have_files_of_their_own() {
    let cached = Cached::answering("proxy_cache_valid 1m;", |request| {
        let language = if request.contains("de") { "de" } else { "en" };
        format!("HTTP/1.1 200 OK\nVary: Accept-Language\nContent-Length: 2\n\n{language}")
    });
    let get = |language| cached.get_with(&format!("Accept-Language: {language}"));
    assert_eq!(
        [get("en"), get("de"), get("en"), get("de")],
        ["MISS en", "MISS de", "HIT en", "HIT de"]
    );
    assert_eq!(cached.files().len(), 2);
}

#[test]
fn what_is_bypassed_or_not_to_be_stored() {
    let lines = "proxy_cache_valid 1m; proxy_cache_bypass $http_x_new; proxy_no_cache $http_x_no;";
    let cached = Cached::of(REPLY, lines);
    assert_eq!(cached.get_with("X-No: 1"), "MISS n1");
    assert_eq!([cached.get(), cached.get_with("X-New: 1")], ["MISS n2", "BYPASS n3"]);
    assert_eq!([cached.get_with("X-New: 0"), cached.get()], ["HIT n3", "HIT n3"]);
}

#[test]
fn a_reply_is_stored_once_it_is_asked_for_often_enough() {
    let cached = Cached::of(REPLY, "proxy_cache_valid 1m; proxy_cache_min_uses 3;");
    let got: Vec<_> = (0..4).map(|_| cached.get()).collect();
    assert_eq!(got, ["MISS n1", "MISS n2", "MISS n3", "HIT n3"]);
}

#[test]
fn one_request_fetches_and_the_others_wait() {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let lines = "proxy_cache_valid 1m; proxy_cache_lock on;";
    let cached = Cached::answering(lines, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        thread::sleep(std::time::Duration::from_millis(50));
        "HTTP/1.1 200 OK\nContent-Length: 1\n\na".into()
    });
    let mut clients: Vec<_> = (0..10).map(|_| cached.server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(GET));
    let got: Vec<_> = clients.iter_mut().map(|client| outcome(&client.rest())).collect();
    assert_eq!(got.iter().filter(|reply| *reply == "MISS a").count(), 1);
    assert_eq!(got.iter().filter(|reply| *reply == "HIT a").count(), 9);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_request_that_waits_for_too_long_is_sent_as_well() {
    // The backend answers neither before it has both.
    let both = Barrier::new(2);
    let lines = "proxy_cache_valid 1m; proxy_cache_lock on; proxy_cache_lock_timeout 1ms;";
    let cached = Cached::answering(lines, move |_| {
        both.wait();
        "HTTP/1.1 200 OK\nContent-Length: 1\n\na".into()
    });
    cached.server.start_clock();
    let mut clients: Vec<_> = (0..2).map(|_| cached.server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(GET));
    let got: Vec<_> = clients.iter_mut().map(|client| outcome(&client.rest())).collect();
    assert_eq!(got, ["MISS a", "MISS a"]);
    assert_eq!(cached.get(), "HIT a");
}

#[test]
fn an_expired_reply_is_updated_in_the_background() {
    let lines = "proxy_cache_valid 1m; proxy_cache_use_stale updating;
                 proxy_cache_background_update on;";
    let cached = Cached::of(REPLY, lines);
    cached.get();
    cached.expire();
    assert_eq!(cached.get(), "STALE n1");
    let updated = testing::eventually("the update", || {
        Some(cached.get()).filter(|reply| reply.ends_with("n2"))
    });
    assert_eq!(updated, "HIT n2");
}

#[test]
fn ranges_and_conditions_are_answered_from_the_whole_reply() {
    let reply = "HTTP/1.1 200 OK\nAccept-Ranges: bytes\nETag: \"a\"\nContent-Length: 4\n\nabcd";
    let cached = Cached::of(reply, "proxy_cache_valid 1m;");
    assert_eq!(cached.get_with("Range: bytes=1-2"), "MISS bc");
    assert_eq!(cached.get_with("Range: bytes=-1"), "HIT d");
    assert_eq!(cached.get_with("If-None-Match: \"a\""), "HIT ");
    assert!(!cached.backend.asked().contains("Range:"));
    let far = Cached::of(reply, "proxy_cache_valid 1m; proxy_cache_max_range_offset 2;");
    far.get_with("Range: bytes=2-3");
    assert!(far.backend.asked().contains("Range: bytes=2-3"));
    assert!(far.files().is_empty());
}

#[test]
fn a_head_request_fetches_the_whole_reply() {
    let cached = Cached::of(REPLY, "proxy_cache_valid 1m;");
    let head = cached.server.ask(&GET.replace("GET", "HEAD"));
    assert!(head.contains("Content-Length: 2\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let got = testing::eventually("the file", || {
        Some(cached.get()).filter(|_| !cached.files().is_empty())
    });
    assert_eq!(got, "HIT n1");
}

#[test]
fn broken_files_are_replaced() {
    let cached = Cached::of(REPLY, "proxy_cache_valid 1m;");
    cached.get();
    for (number, change) in [
        (2, (|bytes| bytes.truncate(100)) as fn(&mut Vec<u8>)),
        (3, |bytes| bytes.truncate(bytes.len() - 1)),
        (4, |bytes| bytes.push(b'x')),
        (5, |bytes| bytes[0] = 4),
        (6, |bytes| bytes[340] = b'x'),
        (7, Vec::clear),
        (8, |bytes| *bytes = vec![0; bytes.len()]),
    ] {
        for path in cached.files() {
            let mut bytes = fs::read(&path).unwrap();
            change(&mut bytes);
            fs::write(path, bytes).unwrap();
        }
        assert_eq!(
            [cached.get(), cached.get()],
            [format!("MISS n{number}"), format!("HIT n{number}")]
        );
    }
    fs::remove_dir_all(cached.folder.join("cache")).unwrap();
    assert_eq!([cached.get(), cached.get()], ["MISS n9", "HIT n9"]);
}

#[test]
fn a_reply_that_is_cut_short_is_not_stored() {
    let folder = Folder::new();
    let backend = TestBackend::playing(|mut peer| {
        peer.request();
        peer.send("HTTP/1.1 200 OK\nContent-Length: 9\n\na");
    });
    let (address, path) = (backend.address(), folder.display());
    let server = Server::start(format!(
        "error_log e.log; proxy_cache_path {path}/cache keys_zone=one:1m use_temp_path=off;
         server {{ location / {{ proxy_pass http://{address}; proxy_cache one;
                                 proxy_cache_valid 1m; }} }}"
    ));
    server.ask(GET);
    assert_eq!(fs::read_dir(folder.join("cache")).into_iter().flatten().count(), 0);
}

#[test]
fn errors_are_remembered_as_long_as_they_are_valid() {
    let lines = "proxy_cache_valid 502 1m; proxy_intercept_errors on;";
    let folder = Folder::new();
    let backend = TestBackend::playing(|mut peer| {
        peer.request();
    });
    let (address, path) = (backend.address(), folder.display());
    let server = Server::start(format!(
        "error_log e.log; proxy_cache_path {path}/cache keys_zone=one:1m;
         add_header X-Cache $upstream_cache_status always;
         server {{ location / {{ proxy_pass http://{address}; proxy_cache one; {lines} }} }}"
    ));
    let status = |reply: &str| (reply[9..12].to_owned(), values(reply, "X-Cache").join(""));
    assert_eq!(status(&server.ask(GET)), ("502".into(), "MISS".into()));
    assert_eq!(status(&server.ask(GET)), ("502".into(), "HIT".into()));
    backend.asked();
    backend.expect_unasked();
}

#[test]
fn a_file_of_an_earlier_process_is_checked_once() {
    let (folder, asked) = (Folder::new(), AtomicU32::new(0));
    let backend = TestBackend::answering(move |_| {
        let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
        REPLY.replace("%N", &number.to_string())
    });
    let (address, path) = (backend.address(), folder.display());
    let start = || {
        Server::start(format!(
            "error_log e.log; proxy_cache_path {path}/cache keys_zone=one:1m;
             proxy_temp_path {path}/temp;
             server {{ location / {{ proxy_pass http://{address}; proxy_cache one;
                                     proxy_cache_valid 1m; }} }}"
        ))
    };
    let body = |server: &Server| server.ask(GET).split("\r\n\r\n").nth(1).map(str::to_owned);
    assert_eq!(body(&start()).as_deref(), Some("n1"));
    assert_eq!(body(&start()).as_deref(), Some("n1"));
    let file = fs::read_dir(folder.join("cache")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() = b'x';
    fs::write(&file, &bytes).unwrap();
    assert_eq!(body(&start()).as_deref(), Some("n2"));
    // A file of nginx has no checksum.
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() = b'9';
    bytes[332..336].fill(0);
    fs::write(&file, &bytes).unwrap();
    assert_eq!(body(&start()).as_deref(), Some("n9"));
}

#[test]
fn a_large_file_that_an_unclean_end_has_torn_is_fetched_anew_once() {
    let (folder, asked) = (Folder::new(), AtomicU32::new(0));
    let backend = TestBackend::answering(move |_| {
        let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
        let body = number.to_string().repeat(2_000_000);
        format!("HTTP/1.1 200 OK\nContent-Length: 2000000\n\n{body}")
    });
    let (address, path) = (backend.address(), folder.display());
    let start = || {
        // The process before was killed.
        fs::create_dir_all(folder.join("cache")).unwrap();
        fs::write(folder.join("cache/.weir.running"), "1").unwrap();
        Server::start(format!(
            "error_log e.log; proxy_cache_path {path}/cache keys_zone=one:1m;
             proxy_temp_path {path}/temp;
             server {{ location / {{ proxy_pass http://{address}; proxy_cache one;
                                     proxy_cache_valid 1m; proxy_cache_lock on; }} }}"
        ))
    };
    let body_is = |reply: &str, digit: u8| {
        let body = reply.split("\r\n\r\n").nth(1).unwrap();
        body.len() == 2_000_000 && body.bytes().all(|byte| byte == digit)
    };
    assert!(body_is(&start().ask(GET), b'1'));
    assert!(body_is(&start().ask(GET), b'1'), "a file that is whole is used");
    let mut entries =
        fs::read_dir(folder.join("cache")).unwrap().map(|entry| entry.unwrap().path());
    let file = entries.find(|path| path.file_name().unwrap().len() == 32).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[1_000_000..].fill(0);
    fs::write(&file, &bytes).unwrap();
    let server = start();
    let mut clients: Vec<_> = (0..5).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(GET));
    assert!(clients.iter_mut().all(|client| body_is(&client.rest(), b'2')));
    (0..2).for_each(|_| _ = backend.asked());
    backend.expect_unasked();
}

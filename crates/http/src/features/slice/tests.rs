use std::fs;

use testing::Folder;

use crate::backend::testing::{TestBackend, values};
use crate::h1::tests::Server;

const WHOLE: &str = "0123456789abcdef";

/// A backend with ranges of `WHOLE`, whose entity tag is `etag` from that offset on.
fn ranges(etag: impl Fn(usize) -> &'static str + Send + Sync + 'static) -> TestBackend {
    TestBackend::answering(move |request| {
        let range = request.lines().find_map(|line| line.strip_prefix("Range: bytes=")).unwrap();
        let (first, last) = range.split_once('-').unwrap();
        let first: usize = first.parse().unwrap();
        let last = last.parse::<usize>().unwrap().min(WHOLE.len() - 1);
        if first >= WHOLE.len() {
            return "HTTP/1.1 416 No\nContent-Length: 0\n\n".into();
        }
        let (part, etag) = (&WHOLE[first..=last], etag(first));
        let (length, all) = (part.len(), WHOLE.len());
        format!(
            "HTTP/1.1 206 Part\nETag: {etag}\nContent-Range: bytes {first}-{last}/{all}\n\
             Content-Length: {length}\n\n{part}"
        )
    })
}

fn server(folder: &Folder, backend: &TestBackend) -> Server {
    let (address, path) = (backend.address(), folder.display());
    Server::start(format!(
        "error_log e.log; proxy_cache_path {path}/cache keys_zone=one:1m;
         proxy_temp_path {path}/temp;
         server {{ location / {{
             slice 5;
             proxy_pass http://{address};
             proxy_cache one;
             proxy_cache_key $uri$slice_range;
             proxy_set_header Range $slice_range;
             proxy_cache_valid 200 206 1m;
         }} }}"
    ))
}

fn get(server: &Server, range: &str) -> String {
    let range = if range.is_empty() { String::new() } else { format!("Range: bytes={range}\r\n") };
    server.ask(&format!("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{range}\r\n"))
}

fn body(reply: &str) -> &str {
    reply.split("\r\n\r\n").nth(1).unwrap_or_default()
}

#[test]
fn a_reply_is_put_together_from_slices() {
    let (folder, backend) = (Folder::new(), ranges(|_| "\"e\""));
    let server = server(&folder, &backend);
    for _ in 0..2 {
        let reply = get(&server, "");
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert_eq!((body(&reply), values(&reply, "Content-Length")), (WHOLE, vec!["16"]));
    }
    assert_eq!(fs::read_dir(folder.join("cache")).unwrap().count(), 4);
    (0..4).for_each(|_| drop(backend.asked()));
    backend.expect_unasked();
}

#[test]
fn a_range_needs_only_its_slices() {
    for (range, expected, content_range, slices) in [
        ("6-7", "67", "bytes 6-7/16", 1),
        ("3-6", "3456", "bytes 3-6/16", 2),
        ("10-", "abcdef", "bytes 10-15/16", 2),
        ("0-0", "0", "bytes 0-0/16", 1),
        ("15-99", "f", "bytes 15-15/16", 1),
    ] {
        let (folder, backend) = (Folder::new(), ranges(|_| "\"e\""));
        let server = server(&folder, &backend);
        for _ in 0..2 {
            let reply = get(&server, range);
            assert!(reply.starts_with("HTTP/1.1 206 "), "{range}: {reply}");
            assert_eq!(
                (body(&reply), values(&reply, "Content-Range")),
                (expected, vec![content_range])
            );
        }
        (0..slices).for_each(|_| drop(backend.asked()));
        backend.expect_unasked();
    }
}

#[test]
fn slices_of_another_representation_end_the_reply() {
    let (folder, backend) = (Folder::new(), ranges(|at| if at < 10 { "\"e\"" } else { "\"f\"" }));
    let server = server(&folder, &backend);
    assert_eq!(body(&get(&server, "")), "0123456789");
    assert!(server.log_text().contains("etag mismatch in slice response"));
}

#[test]
fn a_range_from_the_end_skips_slices() {
    let (folder, backend) = (Folder::new(), ranges(|_| "\"e\""));
    let server = server(&folder, &backend);
    assert_eq!(body(&get(&server, "-2")), "ef");
    assert!(backend.asked().contains("Range: bytes=0-4\n"));
    assert!(backend.asked().contains("Range: bytes=10-14\n"));
    assert!(backend.asked().contains("Range: bytes=15-19\n"));
    backend.expect_unasked();
}

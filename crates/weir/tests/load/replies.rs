//! Replies in every form that HTTP/1.1 has.

use super::generator::load;
use super::peer::Peer;

const REQUESTS: u64 = 60;

/// Replies after which the connection goes on.
const KEPT: &[(&str, &[u8])] = &[
    ("with a length", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    ("empty", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("without a body by status", b"HTTP/1.1 204 No Content\r\n\r\n"),
    ("not modified", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
    (
        "in chunks, with an extension and a trailer",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
          5;a=b\r\nhello\r\n00a\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
    ),
    (
        "after others that do not count",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
          HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ),
    ("with bare line feeds", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    (
        "of HTTP/1.0, going on",
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
    ),
    ("a redirect", b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"),
];

/// Replies after which it does not.
const LAST: &[(&str, &[u8])] = &[
    ("until the end", b"HTTP/1.1 200 OK\r\n\r\nas long as it lasts"),
    ("of HTTP/1.0", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ("closing", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
];

fn run(peer: &Peer, options: &str, name: &str) {
    let report = load(&format!("-n {REQUESTS} -c 4 -t 2 {options} http://{}/", peer.address));
    assert_eq!(report.requests(), REQUESTS, "{name}: {report:#?}");
    report.assert_clean(REQUESTS);
    assert_eq!(peer.seen().requests, REQUESTS, "{name}");
}

#[test]
fn every_form_of_a_reply_is_read() {
    for &(name, reply) in KEPT {
        let peer = Peer::answering(reply);
        run(&peer, "--pipeline 3", name);
        assert!(peer.seen().connections <= 4, "{name}");
    }
    for &(name, reply) in LAST {
        let peer = Peer::start(move |mut client| {
            client.request()?;
            client.write(reply)
        });
        run(&peer, "", name);
        assert_eq!(peer.seen().connections, REQUESTS, "{name}");
    }
}

#[test]
fn a_reply_may_come_byte_by_byte() {
    for &(name, reply) in KEPT {
        let peer = Peer::start(move |mut client| {
            while client.request().is_some() {
                reply.chunks(1).try_for_each(|byte| client.write(byte))?;
            }
            Some(())
        });
        run(&peer, "", name);
    }
}

#[test]
fn a_reply_to_head_has_no_body() {
    let peer = Peer::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n");
    run(&peer, "-m HEAD --pipeline 2", "HEAD");
    assert_eq!(peer.seen().lines.keys().collect::<Vec<_>>(), ["HEAD / HTTP/1.1"]);
}

#[test]
fn replies_of_ten_megabytes_are_read() {
    const SIZE: usize = 10 << 20;
    let peer = Peer::start(|mut client| {
        let body = vec![b'x'; SIZE];
        while client.request().is_some() {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
            client.write(head.as_bytes())?;
            client.write(&body)?;
        }
        Some(())
    });
    let report = load(&format!("-n 8 -c 4 -t 2 http://{}/", peer.address));
    report.assert_clean(8);
    assert!(report.out.contains(" 80.00MB read"), "{}", report.out);
}

#[test]
fn an_answer_may_come_before_the_request_has_been_read() {
    let peer = Peer::start(|mut client| {
        client.connection.is_asked();
        // Whether the rest still arrives is open, so it answers nothing more on this connection.
        let head = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        client.write(head.as_bytes())?;
        client.hold()
    });
    let folder = testing::Folder::new();
    folder.write("body", "x".repeat(20 << 20));
    let body = folder.join("body").display().to_string();
    let report = load(&format!("-n 4 -c 2 -t 2 --body-file {body} http://{}/", peer.address));
    assert_eq!((report.requests(), report.bad_statuses()), (4, Some(4)), "{report:#?}");
    assert_eq!(report.failures(), 0, "{report:#?}");
}

#[test]
fn a_server_that_never_ends_does_not_hold_the_clock() {
    let peer = Peer::start(|mut client| {
        client.request()?;
        client.write(b"HTTP/1.1 200 OK\r\n\r\n")?;
        loop {
            client.write(&[b'x'; 1 << 16])?;
        }
    });
    let report = load(&format!("-d 300ms -c 2 -t 1 http://{}/", peer.address));
    assert_eq!((report.requests(), report.code), (0, Some(0)), "{report:#?}");
    let report = load(&format!("-n 2 -c 2 --timeout 200ms http://{}/", peer.address));
    assert_eq!(report.error(super::generator::TIMEOUT), 2, "{report:#?}");
}

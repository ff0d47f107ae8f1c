//! Requests as they are sent, and results of replies.

use super::*;

/// The text of a request that the peer received.
fn sent(request: impl FnOnce(FetchOrigin) -> FetchRequest) -> String {
    let sent = Rc::new(RefCell::new(String::new()));
    let seen = sent.clone();
    let (fetched, _) = fetched_in(&LIMITS, request, async move |mut peer| {
        *seen.borrow_mut() = peer.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
    });
    assert_eq!(fetched.expect("a reply").status(), 204);
    sent.take()
}

#[test]
fn a_request_is_written_as_the_rfc_says() {
    let head = "GET /path?query HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n";
    assert_eq!(sent(get), format!("{head}\r\n"));
    let accept = (b"Accept".to_vec(), b"a/b, \xc3\xa9".to_vec());
    let with_field = |origin| FetchRequest { fields: vec![accept], ..get(origin) };
    assert_eq!(sent(with_field), format!("{head}Accept: a/b, \u{e9}\r\n\r\n"));
    let head = head.replace("GET", "POST");
    let post_of = |body: &'static str| move |origin| post(origin, body);
    assert_eq!(sent(post_of("body")), format!("{head}Content-Length: 4\r\n\r\nbody"));
    assert_eq!(sent(post_of("")), format!("{head}Content-Length: 0\r\n\r\n"));
}

#[test]
fn a_request_that_could_be_misread_is_not_sent() {
    type Change = fn(&mut FetchRequest);
    fn field(request: &mut FetchRequest, name: &str, value: &str) {
        request.fields.push((name.into(), value.into()));
    }
    let table: [(Change, &str); 11] = [
        (|request| request.target = b"/ HTTP/1.1\r\nA: b\r\n".to_vec(), "the request target"),
        (|request| request.target.clear(), "the request target"),
        (|request| request.origin.host = b"a\r\nB: c".to_vec(), "the host"),
        (|request| request.origin.host.clear(), "the host"),
        (|request| request.method = Method::Other, "the method"),
        (|request| request.method = Method::Connect, "the method"),
        (|request| field(request, "A", "b\r\nC: d"), "a field"),
        (|request| field(request, "A", "b\0"), "a field"),
        (|request| field(request, "A ", "b"), "a field"),
        (|request| field(request, "", "b"), "a field"),
        (|request| field(request, "content-length", "1"), "the request sets a field"),
    ];
    for (change, what) in table {
        let changed = |origin| {
            let mut request = get(origin);
            change(&mut request);
            request
        };
        let (fetched, _) = fetched_in(&LIMITS, changed, async |_| panic!("a connection"));
        let error = fetched.expect_err("not sent");
        assert!(error.starts_with(what), "{error}");
        assert!(error.ends_with(" while preparing a request to PEER"), "{error}");
    }
}

#[test]
fn replies_are_read_to_their_end() {
    for (reply, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", (200, "body")),
        ("HTTP/1.1 302 Moved\r\nLocation: /\r\nContent-Length: 1\r\n\r\n!", (302, "!")),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n",
            (200, "body"),
        ),
        ("HTTP/1.0 200 OK\r\n\r\nbody", (200, "body")),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbody", (200, "body")),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n", (304, "")),
    ] {
        let answered = fetched(async move |mut peer| drop(peer.answer(reply).await));
        assert_eq!(answered, Ok((expected.0, expected.1.as_bytes().to_vec())), "{reply:?}");
        // In pieces that come one after the other, and with nothing after the reply's end.
        let trickled = fetched(async move |mut peer| {
            peer.request().await;
            for byte in reply.as_bytes() {
                peer.say([*byte]).await;
                net::sleep(std::time::Duration::from_millis(1)).await;
            }
        });
        assert_eq!(trickled, answered, "{reply:?}");
    }
}

#[test]
fn a_reply_to_head_has_no_body() {
    let head = |origin| FetchRequest { method: Method::Head, ..get(origin) };
    let (fetched, took_ms) = fetched_in(&LIMITS, head, async |mut peer| {
        peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n").await;
        peer.closed().await;
    });
    let response = fetched.expect("a reply");
    assert_eq!((response.field("content-length"), took_ms), (Some(&b"5000"[..]), 0));
}

#[test]
fn an_early_end_is_an_error() {
    let closed = |text: &'static str| {
        fetched(async move |mut peer| drop(peer.answer(text).await)).expect_err("no reply")
    };
    let early = "the connection was closed early";
    assert_eq!(closed(""), format!("{early} while waiting for the reply of PEER"));
    let reading = format!("{early} while reading the reply of PEER");
    assert_eq!(closed("HTTP/1.1 200 OK\r\n"), reading);
    assert_eq!(closed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody"), reading);
    let reset = fetched(async |mut peer| {
        peer.answer("HTTP/1.1 200 OK\r\n\r\nbody").await;
        net::sleep(std::time::Duration::from_millis(10)).await;
        peer.reset();
    });
    let failed = "the connection failed (104: Connection reset by peer)";
    assert_eq!(reset, Err(format!("{failed} while reading the reply of PEER")));
}

#[test]
fn a_malformed_reply_is_an_error() {
    let said = fetched(async |mut peer| drop(peer.answer("220 smtp ready\r\n").await));
    assert_eq!(said, Err("the reply is not HTTP while reading the reply of PEER".into()));
}

/// More than the buffers of both sockets hold.
const LARGE: usize = 32 * 1024 * 1024;

#[test]
fn a_reply_that_comes_before_the_end_of_the_request_is_read() {
    let upload = |origin| post(origin, vec![b'x'; LARGE]);
    let refused = fetched_at_once(upload, async |mut peer| {
        peer.read().await;
        peer.say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await;
        peer.closed().await;
    });
    let response = refused.expect("a reply");
    assert_eq!((response.status(), &response.body[..]), (413, &b"no"[..]));
}

#[test]
fn a_large_request_is_sent_whole() {
    let upload = |origin| post(origin, vec![b'x'; LARGE]);
    let done = fetched_at_once(upload, async |mut peer| {
        let request = peer.request().await;
        peer.say(format!("HTTP/1.0 200 OK\r\n\r\n{}", request.len())).await;
    });
    let head = "POST /path?query HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n";
    let length = head.len() + format!("Content-Length: {LARGE}\r\n\r\n").len() + LARGE;
    assert_eq!(done.expect("a reply").body, length.to_string().as_bytes());
}

#[test]
fn dropping_a_request_closes_its_connection() {
    let simulated = simulate(async {
        let peer = Peer::new();
        let origin = peer.origin();
        let mut script = net::spawn(async move {
            let mut connection = peer.accept().await;
            connection.answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbod").await;
            connection.closed().await;
        });
        let fetcher = Fetcher::new(FetchSettings::default());
        let (request, timer) = (get(origin), net::Timer::new());
        timer.set(100);
        assert!(timer.limit(fetcher.send(&request, &LIMITS)).await.is_none(), "it goes on");
        script.ended().await
    });
    let (is_closed, took_ms) = simulated.expect("a worker");
    assert!(is_closed && took_ms < 150, "{took_ms}");
}

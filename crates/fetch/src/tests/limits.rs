//! Peers that are slow, or send without an end.

use std::time::Duration;

use net::Address;
use net::testing::FullListener;
use upstream::address::Endpoint;

use super::*;

/// The error of a request, and the time until it, in units of the shortest limit.
fn error_of(
    request: impl FnOnce(FetchOrigin) -> FetchRequest,
    script: impl AsyncFnOnce(PeerConnection) + 'static,
) -> (String, u64) {
    let (fetched, took_ms) = fetched_in(&LIMITS, request, script);
    (fetched.expect_err("no reply"), took_ms / LIMITS.connect_ms)
}

#[test]
fn a_silent_peer_times_out() {
    let waiting = error_of(get, async |mut peer| {
        peer.request().await;
        peer.closed().await;
    });
    assert_eq!(waiting, ("no byte for 2000 ms while waiting for the reply of PEER".into(), 2));
    let reading = error_of(get, async |mut peer| {
        peer.answer("HTTP/1.1 200 OK\r\n\r\nbod").await;
        net::sleep(Duration::from_millis(1500)).await;
        peer.say("y").await;
        peer.closed().await;
    });
    assert_eq!(reading, ("no byte for 2000 ms while reading the reply of PEER".into(), 3));
}

#[test]
fn a_peer_that_does_not_read_times_out() {
    let upload = |origin| post(origin, vec![b'x'; 32 * 1024 * 1024]);
    let sending = error_of(upload, async |_peer| std::future::pending().await);
    assert_eq!(sending, ("no byte for 2000 ms while sending the request to PEER".into(), 2));
}

#[test]
fn a_trickling_peer_times_out() {
    for text in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: ",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\n",
    ] {
        let trickled = error_of(get, async move |mut peer| {
            peer.answer(text).await;
            while peer.say("x").await {
                net::sleep(Duration::from_millis(500)).await;
            }
        });
        let message = "not done within 10000 ms while reading the reply of PEER";
        assert_eq!(trickled, (message.into(), 10), "{text:?}");
    }
}

#[test]
fn a_peer_that_sends_without_an_end_is_cut_off() {
    for (first, again, what) in [
        ("HTTP/1.1 200 OK\r\n", "A: b\r\n", "a head of more than 1000 bytes"),
        ("HTTP/1.1 200 OK\r\n", "A", "a head of more than 1000 bytes"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n", "a head of more than 1000 bytes"),
        ("HTTP/1.1 200 OK\r\n\r\n", "body", "a body of more than 1000 bytes"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "1\r\na\r\n",
            "a body of more than 1000 bytes",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "A: b\r\n",
            "invalid chunks",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "x", "invalid chunks"),
    ] {
        let endless = error_of(get, async move |mut peer| {
            peer.answer(first).await;
            while peer.say(again.repeat(100)).await {}
        });
        assert_eq!(endless, (format!("{what} while reading the reply of PEER"), 0));
    }
}

#[test]
fn a_long_poll_may_last_as_long_as_its_limits() {
    let patient = FetchLimits { silence_ms: 300_000, total_ms: 400_000, ..LIMITS };
    let (fetched, took_ms) = fetched_in(&patient, get, async |mut peer| {
        peer.request().await;
        net::sleep(Duration::from_secs(299)).await;
        peer.say("HTTP/1.1 200 OK\r\n\r\nnews").await;
    });
    assert_eq!((&fetched.expect("a reply").body[..], took_ms / 1000), (&b"news"[..], 299));
}

#[test]
fn connecting_times_out() {
    let full = FullListener::new();
    let place = Endpoint::At(Address::Ip(full.address));
    let there = |origin| get(FetchOrigin { place, ..origin });
    let (error, times) = error_of(there, async |_| panic!("another peer"));
    let message = format!("no connection within 1000 ms while connecting to {}", full.address);
    assert_eq!((error, times), (message, 1));
}

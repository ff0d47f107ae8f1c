use std::future::{Future, poll_fn};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use ::session::ControlJob as _;
use ::session::health::HealthProbe as _;
use ::upstream::{Ask, Attempt, ServerChoice};
use zones::Zones;

use super::{StreamHealth, checks};
use testing::{Folder, Peer, free_address};

use crate::tests::{load, logged, refusal};

/// A backend that reads `reads` bytes, writes these pieces, and waits for the end.
fn script(reads: usize, pieces: &'static [&'static [u8]]) -> SocketAddr {
    let peer = Peer::playing(move |mut connection| {
        connection.exactly(reads)?;
        for piece in pieces {
            connection.send_raw(piece);
            thread::sleep(Duration::from_millis(20));
        }
        connection.wait_for_end();
        Some(())
    });
    peer.address
}

/// The result of a check of the only server, as in log lines.
fn verdict(address: SocketAddr, matching: &str, lines: &str) -> Result<&'static str, String> {
    verdict_over("", address, matching, lines)
}

fn verdict_over(
    transport: &str,
    address: SocketAddr,
    matching: &str,
    lines: &str,
) -> Result<&'static str, String> {
    let named = if matching.is_empty() { "" } else { "match=m" };
    let text = format!(
        "match m {{ {matching} }} upstream u {{ server {address}; }}
         server {{ listen 127.0.0.1:1; proxy_pass u; health_check {transport} {named}; {lines} }}"
    );
    let folder = Folder::new();
    let site = Arc::new(load(&text, &folder, false).unwrap());
    net::run(async move {
        let check = checks(&site).remove(0);
        let server = check.group.servers().remove(0);
        let (verdict, _) = check.probe.ask(&server, None).await;
        verdict.map_err(|failure| format!("{} while {}", failure.cause, failure.action))
    })
    .unwrap()
}

#[test]
fn a_connection_is_enough_without_a_match() {
    assert_eq!(verdict(script(0, &[]), "", ""), Ok("connecting to upstream"));
    let refused = "connect() failed (111: Connection refused) while connecting to upstream";
    assert_eq!(verdict(free_address(), "", ""), Err(refused.into()));
}

#[test]
fn data_is_compared_while_it_is_received() {
    let checked = Ok("checking data");
    let unexpected = Err("unexpected data while checking data".to_owned());
    let ping = r#"send "PING\r\n";"#;
    let redis = || script(6, &[b"+PO", b"NG\r\n"]);
    for (expect, expected) in [
        (r#"expect "+PONG";"#, &checked),
        (r#"expect +PONG\x0d\x0A;"#, &checked),
        (r#"expect ~ "^\+PONG\r";"#, &checked),
        ("expect ~* pong;", &checked),
        ("expect PONG;", &unexpected),
        (r#"expect "+OK";"#, &unexpected),
    ] {
        assert_eq!(verdict(redis(), &format!("{ping} {expect}"), ""), *expected, "{expect}");
    }
    assert_eq!(verdict(redis(), ping, ""), Ok("sending to upstream"));
    // Nothing is sent to a server that sends first.
    assert_eq!(verdict(script(0, &[b"220 mail"]), "expect 220;", ""), checked);
    assert_eq!(verdict(script(2, &[b"\x80\0"]), r"send \x00\xfF; expect \x80\x00;", ""), checked);
}

#[test]
fn only_a_buffer_of_data_is_compared() {
    let unexpected = Err("unexpected data while checking data".to_owned());
    let lines = "proxy_buffer_size 8;";
    let backend = || script(0, &[b"12345", b"678", b"9"]);
    assert_eq!(verdict(backend(), "expect ~ 8;", lines), Ok("checking data"));
    assert_eq!(verdict(backend(), "expect ~ 9;", lines), unexpected);
}

#[test]
fn a_server_over_udp_is_sent_a_datagram() {
    let udp = |address, matching: &str| {
        verdict_over("udp", address, matching, "health_check_timeout 300ms; proxy_buffer_size 9;")
    };
    let echo = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 64];
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            socket.send_to(&buffer[..length], from).unwrap();
        });
        address
    };
    let unexpected = Err("unexpected data while checking data".to_owned());
    assert_eq!(udp(echo(), "send ping; expect pin;"), Ok("checking data"));
    assert_eq!(udp(echo(), "send ping; expect pong;"), unexpected);
    assert_eq!(udp(echo(), "send ping; expect pings;"), unexpected);
    // Only the data that fits into the buffer is compared.
    assert_eq!(udp(echo(), "expect ~ ^nginx.hea$;"), Ok("checking data"));
    assert_eq!(udp(echo(), ""), Ok("sending to upstream"));

    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    assert_eq!(udp(address, ""), Ok("sending to upstream"));
    let late = "upstream timed out (110: Connection timed out) while reading from upstream";
    assert_eq!(udp(address, "expect x;"), Err(late.into()));
    drop(silent);
    let refused = "recv() failed (111: Connection refused) while reading from upstream";
    assert_eq!(udp(address, ""), Err(refused.into()));
    assert_eq!(udp(address, "expect x;"), Err(refused.into()));
}

#[test]
fn a_server_that_closes_or_is_silent_fails() {
    let early = "upstream prematurely closed connection while reading from upstream";
    assert_eq!(verdict(Peer::playing(drop).address, "expect x;", ""), Err(early.into()));
    let cut = Peer::playing(|mut connection| connection.send_raw(b"half"));
    let unexpected = "unexpected data while checking data";
    assert_eq!(verdict(cut.address, "expect ~ whole;", ""), Err(unexpected.into()));
    let late = "upstream timed out (110: Connection timed out) while reading from upstream";
    let lines = "health_check_timeout 30ms;";
    assert_eq!(verdict(script(0, &[]), "expect x;", lines), Err(late.into()));
}

#[test]
fn a_check_connects_as_proxy_pass_does() {
    let backend = Peer::playing(|mut connection| {
        let sent = String::from_utf8(connection.exactly(20)?).ok()?;
        connection.report(&format!("{}: {sent}", connection.stream().peer_addr().ok()?.ip()));
        connection.send_raw(b"hello")
    });
    let lines = "proxy_protocol on; proxy_bind 127.0.0.2;";
    let verdict = verdict(backend.address, "send hello; expect hello;", lines);
    assert_eq!(verdict, Ok("checking data"));
    assert_eq!(backend.asked(), "127.0.0.2: PROXY UNKNOWN\r\nhello");
}

/// Lets the timers run until the condition holds.
fn until(mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    poll_fn(move |cx| match condition() {
        true => Poll::Ready(()),
        false => {
            thread::sleep(Duration::from_millis(1));
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
}

#[test]
fn an_unhealthy_server_is_not_used_and_each_change_is_logged_once() {
    let is_up = Arc::new(AtomicBool::new(true));
    let shared = is_up.clone();
    let backend = Peer::playing(move |mut connection| {
        connection.send_raw(if shared.load(SeqCst) { b"ready" } else { b"busy!" });
        connection.wait_for_end();
    });
    let address = backend.address;
    let folder = Folder::new();
    let text = format!(
        "error_log e.log notice; match ready {{ expect ready; }}
         upstream u {{ server {address}; }}
         server {{ listen 127.0.0.1:1; proxy_pass u;
                   health_check interval=5ms mandatory match=ready; }}"
    );
    let site = Arc::new(load(&text, &folder, false).unwrap());
    let group = site.groups[0].clone();
    let is_usable = move || {
        let ask = Ask { now_ms: net::clock::now_ms(), ..Ask::default() };
        matches!(group.choose(&mut Attempt::default(), &ask), ServerChoice::Server(_))
    };
    net::run(async move {
        let mut health = StreamHealth::default();
        health.adopt(&site, &Zones::default());
        assert!(!is_usable());
        until(&is_usable).await;
        is_up.store(false, SeqCst);
        until(|| !is_usable()).await;
        is_up.store(true, SeqCst);
        until(&is_usable).await;
        health.leave();
    })
    .unwrap();
    let log = logged(&folder, "e.log");
    let peer = format!("health check \"ready\" of peer {address} in upstream \"u\"");
    let lines: Vec<String> =
        log.lines().map(|line| line.splitn(5, ' ').last().unwrap_or_default().to_owned()).collect();
    assert_eq!(
        lines,
        [
            format!("peer is healthy while checking data, {peer}"),
            format!("unexpected data while checking data, {peer}"),
            format!("peer is unhealthy while checking data, {peer}"),
            format!("peer is healthy while checking data, {peer}"),
        ]
    );
}

#[test]
fn invalid_health_checks_are_refused() {
    let upstream = "upstream u { server 127.0.0.1:1; }";
    for (lines, said) in [
        ("proxy_pass 127.0.0.1:1; health_check;", "requires a \"proxy_pass\" that names an upst"),
        ("proxy_pass $protocol; health_check;", "requires a \"proxy_pass\" that names an upst"),
        ("return x; health_check;", "requires \"proxy_pass\" in its server"),
        ("proxy_pass u; health_check uri=/;", "invalid parameter \"uri=/\""),
        ("proxy_pass u; health_check match=n;", "match \"n\" is not defined"),
        ("proxy_pass u; health_check persistent;", "\"persistent\" requires \"mandatory\""),
    ] {
        let refused = refusal(&format!("{upstream} server {{ listen 127.0.0.1:1; {lines} }}"));
        assert!(refused.contains(said), "{lines}: {refused}");
    }
    for (lines, said) in [
        (r"send \x0;", r#""\x" needs two hexadecimal digits in "\x0""#),
        (r"expect \xgg;", r#""\x" needs two hexadecimal digits in "\xgg""#),
        (r"send \x+f;", r#""\x" needs two hexadecimal digits in "\x+f""#),
        ("send;", "invalid number of arguments in \"send\" directive"),
        ("send a; send b;", "\"send\" directive is duplicate"),
        ("expect !~ a;", "invalid parameter \"!~\""),
        ("expect ~ (;", "pcre2_compile() failed"),
        ("status 200;", "unknown directive \"status\""),
    ] {
        let refused = refusal(&format!("match m {{ {lines} }}"));
        assert!(refused.starts_with(said), "{lines}: {refused}");
    }
}

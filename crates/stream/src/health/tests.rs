use std::future::{Future, poll_fn};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
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
use testing::Folder;

use crate::tests::{load, logged, refusal};

/// A backend that runs a script with each of its connections, one after the other.
fn backend(part: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(part));
    address
}

/// A backend that reads `reads` bytes, writes these pieces, and waits for the end.
fn script(reads: usize, pieces: &'static [&'static [u8]]) -> SocketAddr {
    backend(move |mut stream| {
        if stream.read_exact(&mut vec![0; reads]).is_err() {
            return;
        }
        for piece in pieces {
            let _ = stream.write_all(piece);
            thread::sleep(Duration::from_millis(20));
        }
        let _ = stream.read(&mut [0]);
    })
}

fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.2:0").unwrap().local_addr().unwrap()
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
    assert_eq!(verdict(closed(), "", ""), Err(refused.into()));
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
    assert_eq!(verdict(backend(drop), "expect x;", ""), Err(early.into()));
    let cut = backend(|mut stream| _ = stream.write_all(b"half"));
    let unexpected = "unexpected data while checking data";
    assert_eq!(verdict(cut, "expect ~ whole;", ""), Err(unexpected.into()));
    let late = "upstream timed out (110: Connection timed out) while reading from upstream";
    let lines = "health_check_timeout 30ms;";
    assert_eq!(verdict(script(0, &[]), "expect x;", lines), Err(late.into()));
}

#[test]
fn a_check_connects_as_proxy_pass_does() {
    let header = b"PROXY UNKNOWN\r\nhello";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let backend = thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        let mut sent = [0; 20];
        stream.read_exact(&mut sent).unwrap();
        stream.write_all(b"hello").unwrap();
        (sent, peer.ip().to_string())
    });
    let lines = "proxy_protocol on; proxy_bind 127.0.0.2;";
    let verdict = verdict(address, "send hello; expect hello;", lines);
    assert_eq!(verdict, Ok("checking data"));
    assert_eq!(backend.join().unwrap(), (*header, "127.0.0.2".to_owned()));
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
    let address = backend(move |mut stream| {
        let answer: &[u8] = if shared.load(SeqCst) { b"ready" } else { b"busy!" };
        let _ = stream.write_all(answer);
        let _ = stream.read(&mut [0]);
    });
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

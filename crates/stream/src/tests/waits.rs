//! Every wait for a client or a server has a timeout, by default as well.

use std::net::TcpListener;
use std::thread::sleep;
use std::time::Duration;

use net::testing::{FullListener, simulate};

use super::*;

/// The tolerated delay of a timer.
const LATE_MS: u64 = 100;
/// A session without a deadline ends with its client.
const PATIENCE: Duration = Duration::from_secs(10);

/// The duration of a session whose client sends this and waits.
fn lasts_ms(text: &str, input: &'static [u8]) -> u64 {
    lasts_with_ms(text, |mut client| {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(input).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    })
}

fn lasts_with_ms(text: &str, client: impl FnOnce(TcpStream) + Send + 'static) -> u64 {
    let folder = Folder::new();
    let generation = StreamGeneration::new(Arc::new(load(text, &folder, false).unwrap()), 1);
    let served = simulate(serve_with(generation, |stream| {
        client(stream);
        Vec::new()
    }));
    served.unwrap().1
}

#[test]
fn a_client_that_stops_sending_times_out() {
    let encrypted = with_certificate("listen 127.0.0.1:1 ssl; ECDSA; return x;");
    let preread = format!("{SERVER} ssl_preread on; return x;");
    for (server, input, own, default_ms) in [
        (
            "listen 127.0.0.1:1 proxy_protocol; return x;",
            &b"PROXY TC"[..],
            "proxy_protocol",
            30_000,
        ),
        (&encrypted, b"\x16\x03\x01\x01", "ssl_handshake", 60_000),
        (&encrypted, b"", "ssl_handshake", 60_000),
        (&preread, b"\x16\x03\x01\x01", "preread", 30_000),
        (&preread, b"", "preread", 30_000),
    ] {
        for (lines, meant_ms) in [(String::new(), default_ms), (format!("{own}_timeout 3s;"), 3000)]
        {
            let took_ms = lasts_ms(&format!("{lines} server {{ {server} }}"), input);
            assert!((meant_ms..meant_ms + LATE_MS).contains(&took_ms), "{own}: {took_ms}");
        }
    }
}

#[test]
fn a_silent_server_times_out() {
    let (full, silent) = (FullListener::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let silent = silent.local_addr().unwrap();
    for (lines, meant_ms) in [
        (format!("proxy_pass {};", full.address), 60_000),
        (format!("proxy_pass {silent}; proxy_ssl on;"), 60_000),
        (format!("proxy_pass {silent};"), 600_000),
    ] {
        let took_ms = lasts_ms(&format!("server {{ {SERVER} {lines} }}"), b"");
        assert!((meant_ms..meant_ms + LATE_MS).contains(&took_ms), "{lines} {took_ms}");
    }
}

#[test]
fn an_unread_text_times_out() {
    let longer = ["a", "b", "c", "d"].windows(2).map(|names| {
        let [of, name] = names else { unreachable!("pairs") };
        format!("set ${name} {};", format!("${{{of}}}").repeat(20))
    });
    let text = format!("set $a {}; {} return $d;", "x".repeat(3000), longer.collect::<String>());
    let took_ms = lasts_with_ms(&format!("server {{ {SERVER} {text} }}"), |mut client| {
        for _ in 0..PATIENCE.as_millis() {
            sleep(Duration::from_millis(1));
            if client.write_all(b"x").is_err() {
                return;
            }
        }
    });
    // The kernel may enlarge its buffers meanwhile, which restarts the timeout.
    assert!((5000..60_000).contains(&took_ms), "{took_ms}");
}

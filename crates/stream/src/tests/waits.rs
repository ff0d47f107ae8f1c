//! Every wait for a client or a server has a time after which it ends, with the defaults too.

use std::thread::sleep;
use std::time::Duration;

use net::testing::{FullListener, simulate};

use super::*;

/// How much later than meant a timer may be.
const LATE_MS: u64 = 100;
/// A session without a deadline ends with its client.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a session lasts whose client sends this and waits.
fn lasts_ms(text: &str, input: &'static [u8]) -> u64 {
    lasts_with_ms(text, |mut client| {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(input).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    })
}

fn lasts_with_ms(text: &str, client: impl FnOnce(TcpStream) + Send + 'static) -> u64 {
    let folder = Folder::new();
    let generation = StreamGeneration::new(Arc::new(load(text, &folder.0, false).unwrap()), 1);
    let served = simulate(serve_with(generation, |stream| {
        client(stream);
        Vec::new()
    }));
    served.unwrap().1
}

#[test]
fn a_client_that_stops_in_the_middle_has_its_time() {
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
fn a_server_that_takes_or_says_nothing_has_its_time() {
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
fn a_text_that_nobody_takes_has_its_time() {
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
    // Meanwhile the kernel may make its buffers larger, and so take some of it.
    assert!((5000..60_000).contains(&took_ms), "{took_ms}");
}

//! Clients that attack handshakes of the real program: with certificates, and with early data.
//!
//! Whatever they send, nobody is taken for somebody else, nothing is served twice, and the program
//! serves others as before.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::process::Command;
use std::thread;

use net::testing::tls::{
    ECDSA_CERTIFICATE, ECDSA_KEY, RSA_CERTIFICATE, RSA_KEY, TlsClient, der, pem, pem_contents,
};
use net::tls::RevocationLists;
use testing::{Folder, Server, eventually};

/// Kilobytes that a worker process may have grown by in the end, in a build without optimization.
const GROWTH_MAX_KB: u64 = 48 * 1024;

/// A server with a certificate, and these settings.
fn start(settings: &str) -> Server {
    let server = Server::start_with(|folder: &Folder, address: &str| {
        folder.write("own.crt", RSA_CERTIFICATE);
        folder.write("own.key", RSA_KEY);
        folder.write("clients.crt", ECDSA_CERTIFICATE);
        let http = format!(
            "log_format uris '$request_uri $ssl_early_data';
             server {{ listen {address} ssl; ssl_certificate own.crt; ssl_certificate_key own.key;
                 access_log {log} uris; {settings} }}",
            log = folder.join("access.log").display()
        );
        folder.configure(address, "events {}\n", &http);
    });
    server.await_log("start worker process ", 1);
    server
}

/// The reply to a request, as far as there is one.
fn ask(server: &Server, client: &TlsClient, path: &str) -> String {
    ask_host(server, client, "a", path)
}

/// The same, of the server with that name.
fn ask_host(server: &Server, client: &TlsClient, host: &str, path: &str) -> String {
    let mut stream = client.connect(host, server.connect());
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut reply = Vec::new();
    if stream.write_all(request.as_bytes()).is_ok() {
        // The reply counts also where the connection does not end well.
        let _ = stream.read_to_end(&mut reply);
    }
    String::from_utf8_lossy(&reply).into_owned()
}

/// Memory of the worker process, in kilobytes.
fn memory_kb(server: &Server) -> u64 {
    let path = format!("/proc/{}/status", server.worker_process());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

fn showing(chain: &[Vec<u8>]) -> TlsClient {
    TlsClient::new().showing_any(chain, ECDSA_KEY)
}

#[test]
fn only_the_trusted_certificate_is_trusted() {
    let server = start(
        "ssl_verify_client optional_no_ca; ssl_client_certificate clients.crt;
         return 200 'verify=$ssl_client_verify';",
    );
    let trusted = der(ECDSA_CERTIFICATE);
    assert!(ask(&server, &showing(std::slice::from_ref(&trusted)), "/").contains("verify=SUCCESS"));
    let before_kb = memory_kb(&server);
    let mut numbers = Numbers(11);
    for _ in 0..300 {
        let mut changed = trusted.clone();
        let at = numbers.below(changed.len());
        match numbers.below(4) {
            0 => changed[at] ^= 1 << numbers.below(8),
            // Another byte, never the same.
            1 => changed[at] = changed[at].wrapping_add(1 + numbers.below(255) as u8),
            2 => changed.truncate(at),
            _ => changed.insert(at, !changed[at]),
        }
        for chain in [vec![changed.clone()], vec![changed.clone(), trusted.clone()]] {
            let reply = ask(&server, &showing(&chain), "/");
            assert!(!reply.contains("SUCCESS"), "{changed:?}: {reply}");
        }
    }
    for chain in hostile_chains(&trusted) {
        let reply = ask(&server, &showing(&chain), "/");
        assert!(!reply.contains("SUCCESS"), "{} certificates: {reply}", chain.len());
    }
    assert!(memory_kb(&server) < before_kb + GROWTH_MAX_KB, "{before_kb} KB before");
    assert!(ask(&server, &showing(&[trusted]), "/").contains("verify=SUCCESS"));
    assert!(!server.log().contains("assertion failed"));
}

/// Chains that do not begin with the trusted certificate.
fn hostile_chains(trusted: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let other = der(RSA_CERTIFICATE);
    vec![
        vec![Vec::new()],
        vec![vec![0x30]],
        vec![vec![0x30, 0x84, 0xff, 0xff, 0xff, 0xff]],
        vec![vec![0x30; 1000]],
        vec![other.clone(), trusted.to_vec()],
        vec![[trusted, &[0][..]].concat()],
        vec![[trusted, trusted].concat()],
        // As much as a handshake may have, and more.
        [&[other.clone()][..], &vec![trusted.to_vec(); 100]].concat(),
        [&[other.clone()][..], &vec![trusted.to_vec(); 400]].concat(),
        vec![other, vec![0x30; 60_000]],
    ]
}

#[test]
fn a_certificate_of_somebody_else_proves_nothing() {
    let server = start(
        "ssl_verify_client on; ssl_client_certificate clients.crt;
         return 200 'verify=$ssl_client_verify';",
    );
    let thief = |client: TlsClient| {
        client.pretending((ECDSA_CERTIFICATE, ECDSA_KEY), (RSA_CERTIFICATE, RSA_KEY))
    };
    for client in [thief(TlsClient::new()), thief(TlsClient::tls12())] {
        assert_eq!(ask(&server, &client, "/"), "");
    }
    let other_curve = include_str!("../../net/src/tls/testdata/sec1.key");
    let wrong_key = TlsClient::new().showing_any(&[der(ECDSA_CERTIFICATE)], other_curve);
    assert_eq!(ask(&server, &wrong_key, "/"), "");
    let owner = TlsClient::new().showing(ECDSA_CERTIFICATE, ECDSA_KEY);
    assert!(ask(&server, &owner, "/").contains("verify=SUCCESS"));
}

/// An authority and two certificates with [`ECDSA_KEY`] that it signed, made by `openssl x509`.
const AUTHORITY: &str = include_str!("revocation/root.crt");
const ADMITTED: &str = include_str!("revocation/admitted.crt");
const REVOKED: &str = include_str!("revocation/revoked.crt");
/// The authority's list, made by `openssl ca -gencrl`.
const CURRENT: &str = include_str!("revocation/current.crl");

/// A virtual server for each list: `n0`, `n1`, ...
fn with_lists(lists: &[&str]) -> Server {
    let server = Server::start_with(|folder: &Folder, address: &str| {
        folder.write("own.crt", RSA_CERTIFICATE);
        folder.write("own.key", RSA_KEY);
        folder.write("root.crt", AUTHORITY);
        let mut http = "ssl_certificate own.crt; ssl_certificate_key own.key;
             ssl_verify_client on; ssl_client_certificate root.crt;
             error_page 495 = @refused;"
            .to_owned();
        for (number, list) in lists.iter().enumerate() {
            folder.write(&format!("{number}.crl"), list);
            http += &format!(
                "server {{ listen {address} ssl; server_name n{number}; ssl_crl {number}.crl;
                     location / {{ return 200 'verify=$ssl_client_verify'; }}
                     location @refused {{ return 403 'verify=$ssl_client_verify'; }} }}"
            );
        }
        folder.configure(address, "events {}\n", &http);
    });
    server.await_log("start worker process ", 1);
    server
}

/// What a virtual server says about a client with this certificate.
fn verified(server: &Server, number: usize, certificate: &str) -> String {
    let reply = ask_host(server, &showing(&[der(certificate)]), &format!("n{number}"), "/");
    let verdict = reply.split_once("verify=").map(|(_, verdict)| verdict);
    verdict.unwrap_or(&reply).to_owned()
}

#[test]
fn a_revoked_certificate_is_refused() {
    let cases = [
        (CURRENT, "SUCCESS", "FAILED:certificate revoked"),
        (
            include_str!("revocation/expired.crl"),
            "FAILED:CRL has expired",
            "FAILED:CRL has expired",
        ),
        (
            include_str!("revocation/of_other.crl"),
            "FAILED:unable to get certificate CRL",
            "FAILED:unable to get certificate CRL",
        ),
        // The same issuer's name, signed by somebody else.
        (
            include_str!("revocation/forged.crl"),
            "FAILED:CRL signature failure",
            "FAILED:CRL signature failure",
        ),
        (
            include_str!("revocation/of_future.crl"),
            "FAILED:CRL is not yet valid",
            "FAILED:CRL is not yet valid",
        ),
    ];
    let server = with_lists(&cases.map(|(list, ..)| list));
    for (number, (_, admitted, revoked)) in cases.into_iter().enumerate() {
        assert_eq!(verified(&server, number, ADMITTED), admitted, "list {number}");
        assert_eq!(verified(&server, number, REVOKED), revoked, "list {number}");
    }
}

/// Whatever bit of a list is changed, its signature no longer covers it.
#[test]
fn a_changed_revocation_list_admits_nobody() {
    let list = pem_contents(CURRENT);
    let mut numbers = Numbers(13);
    let mut changed = Vec::new();
    for bit in 0..list.len() * 8 {
        let mut copy = list.clone();
        copy[bit / 8] ^= 1 << (bit % 8);
        let text = pem("X509 CRL", &copy);
        // Others are errors of the configuration.
        if RevocationLists::read(text.as_bytes()).is_ok() {
            changed.push(text);
        }
    }
    assert!(changed.len() > 100, "{}", changed.len());
    let lists: Vec<&str> =
        (0..100).map(|_| changed[numbers.below(changed.len())].as_str()).collect();
    let server = with_lists(&lists);
    for (number, list) in lists.iter().enumerate() {
        for certificate in [ADMITTED, REVOKED] {
            let verdict = verified(&server, number, certificate);
            assert!(verdict.starts_with("FAILED:"), "{verdict}: {list}");
        }
    }
    assert!(!server.log().contains("assertion failed"));
}

/// Notes what is sent, and answers nothing.
#[derive(Default)]
struct Sink(Vec<u8>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Sink {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// The first flight of a client that resumes a session, which is made for that; with early data.
fn early_flight(server: &Server, protocols: &[&[u8]], early: &[u8]) -> Vec<u8> {
    let client = TlsClient::new().with_early_data().offering(protocols);
    ask(server, &client, "/session");
    let mut stream = client.connect("a", Sink::default());
    assert!(stream.write_early(early), "the session allows early data");
    let _ = stream.flush();
    std::mem::take(&mut stream.below().0)
}

/// Sends bytes, and reads until the server has no more to say.
fn send_flight(server: &Server, flight: &[u8]) {
    let mut stream = server.connect();
    let _ = stream.write_all(flight);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

const EARLY: &[u8] = b"GET /early HTTP/1.1\r\nHost: a\r\n\r\n";

/// The URIs that were served with early data, once everything before has been logged.
fn served_early(server: &Server) -> Vec<String> {
    assert!(ask(server, &TlsClient::new(), "/end").contains("200 OK"));
    let log = || server.folder.read("access.log");
    eventually("the last request in the log", || log().contains("/end").then_some(()));
    let lines = log();
    let early = lines.lines().filter_map(|line| line.strip_suffix(" 1"));
    early.map(str::to_owned).collect()
}

fn with_early_data() -> Server {
    start("http2 on; ssl_early_data on; return 200 a;")
}

#[test]
fn early_data_that_is_replayed_is_not_served_again() {
    let server = with_early_data();
    let flight = early_flight(&server, &[], EARLY);
    for _ in 0..20 {
        send_flight(&server, &flight);
    }
    assert_eq!(served_early(&server), ["/early"]);
}

#[test]
fn early_data_is_served_unchanged_or_not_at_all() {
    let server = with_early_data();
    let before_kb = memory_kb(&server);
    let mut numbers = Numbers(12);
    for round in 0..60 {
        let mut flight = early_flight(&server, &[], EARLY);
        let at = numbers.below(flight.len());
        match round % 3 {
            0 => flight[at] ^= 1 << numbers.below(8),
            1 => flight.truncate(at),
            _ => flight.insert(at, flight[at]),
        }
        send_flight(&server, &flight);
    }
    // What is served was not changed: the head of the first record is protected by nothing.
    assert!(served_early(&server).iter().all(|uri| uri == "/early"));
    assert!(memory_kb(&server) < before_kb + GROWTH_MAX_KB, "{before_kb} KB before");
    assert!(!server.log().contains("assertion failed"));
}

#[test]
fn early_data_of_any_protocol_and_size_ends_well() {
    let server = with_early_data();
    let preface = &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..];
    let garbage = [preface, &[0xff; 2000]].concat();
    let huge = [EARLY, &[b'x'; 15_000]].concat();
    for (protocol, early) in [
        (&b"h2"[..], EARLY),
        (b"h2", &garbage),
        (b"http/1.1", preface),
        (b"http/1.1", &garbage),
        (b"http/1.1", &huge),
    ] {
        let flight = early_flight(&server, &[protocol], early);
        send_flight(&server, &flight);
        // A record that nobody can open, behind one that can be.
        let record = [&[23, 3, 3, 0x40, 0][..], &[0; 0x4000]].concat();
        let flight = early_flight(&server, &[protocol], early);
        send_flight(&server, &[&flight[..], &record.repeat(20)].concat());
    }
    served_early(&server);
    assert!(!server.log().contains("assertion failed"));
}

/// A file that cannot be read at once: reading it waits until the test writes to it.
#[test]
fn a_certificate_that_is_slow_to_read_delays_its_own_handshake_only() {
    let server = start(
        "} server { listen ADDRESS ssl; server_name slow quick;
             ssl_certificate $ssl_server_name.crt; ssl_certificate_key own.key;
             return 200 'by $ssl_server_name';",
    );
    let folder = &server.folder;
    let slow = folder.join("slow.crt");
    assert!(Command::new("mkfifo").arg(&slow).status().unwrap().success());
    folder.write("quick.crt", RSA_CERTIFICATE);
    let by = |name: &str| ask_host(&server, &TlsClient::new(), name, "/");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| by("slow"));
        // Once this is open, a thread of the server is reading the other end.
        let mut certificate = File::options().write(true).open(&slow).unwrap();
        assert!(by("quick").ends_with("by quick"));
        assert!(!waiting.is_finished());
        certificate.write_all(RSA_CERTIFICATE.as_bytes()).unwrap();
        drop(certificate);
        assert!(waiting.join().unwrap().ends_with("by slow"));
    });
}

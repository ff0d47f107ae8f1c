//! Client certificates: which clients are admitted, and the values of variables.

use std::io::{Read as _, Write as _};

use ::testing::Peer;
use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY, RSA_CERTIFICATE, RSA_KEY, TlsClient};

use super::tests::{ask, get_of, read_reply, server, with_files};
use crate::h1::tests::Server;
use crate::testing::refusal;

/// Replaces the names of trusted certificates.
fn asking(http: &str) -> Server {
    let http = http
        .replace("TRUSTED_ECDSA", &format!("'data:{ECDSA_CERTIFICATE}'"))
        .replace("TRUSTED_RSA", &format!("'data:{RSA_CERTIFICATE}'"));
    server(&http)
}

fn ecdsa() -> TlsClient {
    TlsClient::new().showing(ECDSA_CERTIFICATE, ECDSA_KEY)
}

fn rsa() -> TlsClient {
    TlsClient::new().showing(RSA_CERTIFICATE, RSA_KEY)
}

fn ask_one(server: &Server, client: &TlsClient, host: &str) -> String {
    let mut stream = client.connect(host, server.connect_plain().into_socket());
    get_of(&mut stream, "/", host)
}

#[test]
fn each_mode_admits_its_clients() {
    let server = asking(
        "ssl_client_certificate TRUSTED_ECDSA; ECDSA; error_log e.log info;
         error_page 495 =200 /untrusted; error_page 496 =200 /none;
         server { listen 1 ssl; server_name on.test; ssl_verify_client on;
             location / { return 200 '$ssl_client_verify.'; }
             location /untrusted { return 200 '495 $ssl_client_verify.'; }
             location /none { return 200 '496 $ssl_client_verify.'; } }
         server { listen 1 ssl; server_name optional.test; ssl_verify_client optional;
             location / { return 200 '$ssl_client_verify.'; }
             location /untrusted { return 200 '495 $ssl_client_verify.'; } }
         server { listen 1 ssl; server_name any.test; ssl_verify_client optional_no_ca;
             return 200 '$ssl_client_verify.'; }
         server { listen 1 ssl; server_name off.test; return 200 '$ssl_client_verify.'; }",
    );
    let untrusted = "FAILED:self-signed certificate.";
    for (host, none, trusted, other) in [
        ("on.test", "496 NONE.", "SUCCESS.", &*format!("495 {untrusted}")),
        ("optional.test", "NONE.", "SUCCESS.", &format!("495 {untrusted}")),
        ("any.test", "NONE.", "SUCCESS.", untrusted),
        ("off.test", "NONE.", "NONE.", "NONE."),
    ] {
        assert_eq!(ask_one(&server, &TlsClient::new(), host), none, "{host}");
        assert_eq!(ask_one(&server, &ecdsa(), host), trusted, "{host}");
        assert_eq!(ask_one(&server, &rsa(), host), other, "{host}");
    }
    let log = server.log();
    for said in [
        "client SSL certificate verify error: (18:self-signed certificate), client: unix:",
        "client sent no required SSL certificate, client: unix:",
    ] {
        assert!(log.iter().any(|line| line.starts_with(said)), "{said}: {log:?}");
    }
}

#[test]
fn replies_without_error_page_are_those_of_nginx() {
    let server = asking(
        "server { listen 1 ssl; ECDSA; ssl_verify_client on;
             ssl_trusted_certificate TRUSTED_ECDSA; return 200 secret.; }",
    );
    for (client, text) in [
        (TlsClient::new(), "No required SSL certificate was sent"),
        (rsa(), "The SSL certificate error"),
    ] {
        let mut stream = client.connect("a", server.connect_plain().into_socket());
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 400 ") && reply.contains(text), "{reply}");
        assert!(reply.contains("Connection: close") && !reply.contains("secret"), "{reply}");
    }
}

#[test]
fn variables_describe_the_certificate() {
    let names = "$ssl_client_s_dn|$ssl_client_i_dn|$ssl_client_s_dn_legacy|\
                 $ssl_client_i_dn_legacy|$ssl_client_serial|$ssl_client_fingerprint|\
                 $ssl_client_v_start|$ssl_client_v_end|$ssl_client_sigalg.";
    let server = asking(&format!(
        "server {{ listen 1 ssl; ECDSA; ssl_verify_client optional_no_ca;
             location /all {{ return 200 '{names}'; }}
             location /pem {{ return 200 '$ssl_client_raw_cert.'; }}
             location /lines {{ return 200 '$ssl_client_cert.'; }}
             location /escaped {{ return 200 '$ssl_client_escaped_cert.'; }}
             location /left {{ return 200 '$ssl_client_v_remain.'; }} }}"
    ));
    let paths = ["/all", "/pem", "/lines", "/escaped", "/left"];
    let [all, pem, lines, escaped, left] = ask(&server, &ecdsa(), "a", &paths).try_into().unwrap();
    let expected = "CN=ecdsa|CN=ecdsa|/CN=ecdsa|/CN=ecdsa|\
                    59F192DECEAD32915B0843F3FFD9CDDB68467AC1|\
                    8bc2fe30cbc75c549dd2ac694892b3896b16eef3|\
                    Nov 22 22:07:17 2026 GMT|Oct 29 22:07:17 2126 GMT|ecdsa_secp256r1_sha256.";
    assert_eq!(all, expected);
    assert_eq!(pem, format!("{ECDSA_CERTIFICATE}."));
    assert_eq!(lines, format!("{}.", ECDSA_CERTIFICATE.trim_end().replace('\n', "\n\t")));
    assert!(escaped.starts_with("-----BEGIN%20CERTIFICATE-----%0AMII"), "{escaped}");
    assert!(left.trim_end_matches('.').parse::<u32>().unwrap() > 3650, "{left}");
    let none = ask(&server, &TlsClient::new(), "a", &paths);
    assert_eq!(none, ["||||||||.", ".", ".", ".", "."]);
}

#[test]
fn a_resumed_session_has_the_certificate_and_is_verified_again() {
    let text = "'$ssl_session_reused $ssl_client_verify $ssl_client_s_dn.'";
    for settings in ["", "ssl_session_tickets off; ssl_session_cache shared:a:1m;"] {
        let server = asking(&format!(
            "{settings} ssl_verify_client optional_no_ca; ECDSA;
             ssl_client_certificate TRUSTED_ECDSA;
             server {{ listen 1 ssl; server_name a.test; return 200 {text}; }}
             server {{ listen 1 ssl; server_name b.test; return 200 {text}; }}"
        ));
        for client in [TlsClient::new(), TlsClient::tls12()] {
            let trusted = client.clone().showing(ECDSA_CERTIFICATE, ECDSA_KEY);
            assert_eq!(ask_one(&server, &trusted, "a.test"), ". SUCCESS CN=ecdsa.");
            assert_eq!(ask_one(&server, &trusted, "a.test"), "r SUCCESS CN=ecdsa.");
            let other = client.showing(RSA_CERTIFICATE, RSA_KEY);
            let failed = "FAILED:self-signed certificate CN=rsa.";
            assert_eq!(ask_one(&server, &other, "b.test"), format!(". {failed}"));
            assert_eq!(ask_one(&server, &other, "b.test"), format!("r {failed}"));
        }
    }
}

#[test]
fn a_session_is_not_resumed_with_another_name() {
    let text = "'$ssl_session_reused $ssl_client_verify.'";
    for settings in ["", "ssl_session_tickets off; ssl_session_cache shared:a:1m;"] {
        let server = asking(&format!(
            "{settings} ECDSA;
             server {{ listen 1 ssl; server_name a.test; ssl_verify_client optional_no_ca;
                 ssl_client_certificate TRUSTED_RSA; return 200 {text}; }}
             server {{ listen 1 ssl; server_name b.test; ssl_verify_client optional;
                 ssl_client_certificate TRUSTED_ECDSA; return 200 {text}; }}"
        ));
        for client in [TlsClient::new(), TlsClient::tls12()] {
            // The client offers every session to every name.
            let client = client.confusing_names().showing(ECDSA_CERTIFICATE, ECDSA_KEY);
            assert!(ask_one(&server, &client, "a.test").starts_with(". FAILED:"));
            assert!(ask_one(&server, &client, "a.test").starts_with("r FAILED:"), "{settings}");
            // The client has the session, but no certificate any more.
            let bare = client.showing_nothing();
            assert_eq!(ask_one(&server, &bare, "b.test"), ". NONE.", "{settings}");
        }
    }
}

#[test]
fn a_request_for_another_host_is_misdirected() {
    let server = asking(
        "ECDSA; ssl_client_certificate TRUSTED_ECDSA;
         server { listen 1 ssl; server_name a.test;
             location / { return 200 '$server_name.'; }
             error_page 421 =200 /misdirected; location /misdirected { return 200 '421 a.'; } }
         server { listen 1 ssl; server_name b.test; ssl_verify_client on;
             return 200 '$server_name.'; }
         server { listen 1 ssl; server_name c.test; return 200 '$server_name.'; }",
    );
    let from = |name: &str, host: &str| {
        let mut stream = ecdsa().connect(name, server.connect_plain().into_socket());
        get_of(&mut stream, "/", host)
    };
    assert_eq!(from("a.test", "b.test"), "421 a.");
    assert_eq!(from("a.test", "c.test"), "c.test.");
    assert_eq!(from("b.test", "c.test"), "c.test.");
    assert_eq!(from("b.test", "B.test"), "b.test.");
}

#[test]
fn a_request_without_a_host_goes_to_the_default_server() {
    let from = |server: &Server, name: &str| {
        let mut stream = ecdsa().connect(name, server.connect_plain().into_socket());
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        read_reply(&mut stream)
    };
    let both = |verify: &str| {
        asking(&format!(
            "ECDSA; ssl_client_certificate TRUSTED_ECDSA;
             server {{ listen 1 ssl; server_name a.test; {verify} return 200 '$server_name.'; }}
             server {{ listen 1 ssl; server_name b.test;
                 location / {{ return 200 '$server_name.'; }} error_page 421 =200 /misdirected;
                 location /misdirected {{ return 200 '421 b.'; }} }}"
        ))
    };
    assert_eq!(from(&both(""), "b.test"), "a.test.");
    assert_eq!(from(&both("ssl_verify_client on;"), "b.test"), "421 b.");
    assert_eq!(from(&both("ssl_verify_client on;"), "unknown.test"), "a.test.");
}

#[test]
fn a_certificate_is_verified_by_the_rules_of_the_requests_server() {
    // No name was negotiated: the default server's handshake.
    let text = "'$server_name $ssl_client_verify.'";
    let server = asking(&format!(
        "ECDSA; server {{ listen 1 ssl; server_name a.test; ssl_verify_client optional;
             ssl_client_certificate TRUSTED_ECDSA; return 200 {text}; }}
         server {{ listen 1 ssl; server_name b.test; ssl_verify_client optional_no_ca;
             ssl_client_certificate TRUSTED_RSA; return 200 {text}; }}
         server {{ listen 1 ssl; server_name c.test; return 200 {text}; }}"
    ));
    let mut stream = ecdsa().connect("unknown.test", server.connect_plain().into_socket());
    for (host, said) in [
        ("a.test", "a.test SUCCESS."),
        ("b.test", "b.test FAILED:self-signed certificate."),
        ("a.test", "a.test SUCCESS."),
        ("c.test", "c.test SUCCESS."),
    ] {
        assert_eq!(get_of(&mut stream, "/", host), said);
    }
}

#[test]
fn invalid_directives_are_refused() {
    for (http, message) in [
        (
            "server { ECDSA; ssl_verify_client on; }",
            "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client",
        ),
        (
            "server { ECDSA; ssl_client_certificate a; }",
            "cannot load certificate \"/a\": open() \"/a\" failed",
        ),
        ("server { ECDSA; ssl_crl 'data:x'; }", "cannot load CRL \"data:...\""),
        ("ssl_verify_client maybe;", "invalid value \"maybe\""),
    ] {
        let said = refusal(&with_files(http));
        assert!(said.starts_with(message), "{http}: {said}");
    }
}

const OCSP_LEAF: &str = include_str!("../../../../net/src/tls/testdata/ocsp/leaf.pem");
const OCSP_ISSUER: &str = include_str!("../../../../net/src/tls/testdata/ocsp/issuer.crt");
const GOOD: &[u8] = include_bytes!("../../../../../fuzz/seeds/ocsp/by_issuer");
const UNKNOWN: &[u8] = include_bytes!("../../../../../fuzz/seeds/ocsp/unknown");

/// A responder that answers every request with the same response.
fn responder(response: &'static [u8]) -> Peer {
    Peer::playing(move |mut connection| {
        connection.request()?;
        let head = b"HTTP/1.0 200 OK\r\nContent-Type: application/ocsp-response\r\n\r\n";
        connection.send_raw([head, response].concat())
    })
}

fn checked_by(responder: &Peer, settings: &str) -> Server {
    server(&format!(
        "error_log e.log info; ECDSA; ssl_verify_client optional;
         ssl_client_certificate 'data:{OCSP_ISSUER}'; ssl_ocsp_responder http://{}; {settings}
         server {{ listen 1 ssl; server_name unchecked.test; return 200 '$ssl_client_verify.'; }}
         server {{ listen 1 ssl; server_name checked.test; ssl_ocsp leaf;
             error_page 495 =200 /untrusted;
             location / {{ return 200 '$ssl_client_verify.'; }}
             location /untrusted {{ return 200 '495 $ssl_client_verify.'; }} }}",
        responder.address,
    ))
}

fn issued() -> TlsClient {
    TlsClient::new().showing(OCSP_LEAF, OCSP_LEAF)
}

#[test]
fn a_responder_decides_about_a_trusted_certificate() {
    for (response, said) in [
        (GOOD, "SUCCESS."),
        (UNKNOWN, "495 FAILED:certificate status unknown."),
        (b"no", "495 FAILED:certificate status request failed."),
    ] {
        let responder = responder(response);
        let server = checked_by(&responder, "");
        for asked in 1..=2 {
            assert_eq!(ask_one(&server, &issued(), "checked.test"), said);
            assert_eq!(responder.connections(), asked);
        }
        assert_eq!(ask_one(&server, &TlsClient::new(), "checked.test"), "NONE.");
        let self_signed = ask_one(&server, &ecdsa(), "checked.test");
        assert_eq!(self_signed, "495 FAILED:self-signed certificate.");
        assert_eq!(ask_one(&server, &issued(), "unchecked.test"), "SUCCESS.");
        assert_eq!(responder.connections(), 2);
    }
}

#[test]
fn a_request_to_a_responder_that_fails_is_logged() {
    let responder = responder(b"no");
    let server = checked_by(&responder, "");
    ask_one(&server, &issued(), "checked.test");
    let log = server.log();
    let host = responder.address;
    let failed = format!(
        "d2i_OCSP_RESPONSE() failed, responder: {host} while requesting certificate status, \
         client: unix:"
    );
    let refused = "client SSL certificate verify error: certificate status request failed, client:";
    assert!(log[0].starts_with(&failed), "{log:?}");
    assert!(log[1].starts_with(refused), "{log:?}");
}

#[test]
fn statuses_are_cached() {
    let responder = responder(GOOD);
    let server = checked_by(&responder, "ssl_ocsp_cache shared:statuses:32k;");
    for _ in 0..3 {
        assert_eq!(ask_one(&server, &issued(), "checked.test"), "SUCCESS.");
    }
    assert_eq!(responder.connections(), 1);
}

#[test]
fn a_certificate_without_an_ocsp_check_is_refused() {
    let responder = responder(GOOD);
    let server = checked_by(&responder, "");
    // No name was negotiated: the handshake is that of the default server.
    let mut stream = issued().connect("unknown.test", server.connect_plain().into_socket());
    let refused = "495 FAILED:certificate status request failed.";
    assert_eq!(get_of(&mut stream, "/", "checked.test"), refused);
}

#[test]
fn invalid_ocsp_directives_are_refused() {
    let trusted = format!("ssl_client_certificate 'data:{OCSP_ISSUER}'; ssl_verify_client on;");
    for (line, message) in [
        ("ssl_ocsp maybe;", "invalid value \"maybe\""),
        ("ssl_ocsp_cache shared:a;", "invalid OCSP cache \"shared:a\""),
        ("ssl_ocsp_cache shared::1m;", "invalid OCSP cache \"shared::1m\""),
        ("ssl_ocsp_cache shared:a:1k;", "OCSP cache \"shared:a:1k\" is too small"),
        (
            "ssl_ocsp on; ssl_ocsp_responder https://a/;",
            "invalid URL prefix in OCSP responder \"https://a/\" in \"ssl_ocsp_responder\"",
        ),
    ] {
        let said = refusal(&with_files(&format!("{trusted} server {{ ECDSA; {line} }}")));
        assert!(said.starts_with(message), "{line}: {said}");
    }
    let any = "server { ECDSA; ssl_ocsp on; ssl_verify_client optional_no_ca; }";
    let said = refusal(&with_files(any));
    let message = "\"ssl_ocsp\" is incompatible with \"ssl_verify_client optional_no_ca\"";
    assert!(said.starts_with(message), "{said}");
}

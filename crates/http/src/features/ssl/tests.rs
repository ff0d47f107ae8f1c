//! The server that a client reaches, its certificate, and the values of variables.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use net::testing::tls::{
    ECDSA_CERTIFICATE, ECDSA_KEY, RSA_CERTIFICATE, RSA_KEY, TlsClient, TlsClientStream,
};

use crate::h1::tests::{Server, text};
use crate::testing::{refusal, site};

const ECDSA: &str = "ECDSA";
const RSA: &str = "RSA";

const RSA_KEY_LINE: &str = "ssl_certificate_key 'data:";

/// Replaces the names of certificates by their files.
pub(super) fn with_files(http: &str) -> String {
    let lines = |certificate: &str, key: &str| {
        format!("ssl_certificate 'data:{certificate}'; ssl_certificate_key 'data:{key}';")
    };
    http.replace("ECDSA;", &lines(ECDSA_CERTIFICATE, ECDSA_KEY))
        .replace("RSA;", &lines(RSA_CERTIFICATE, RSA_KEY))
}

pub(super) fn server(http: &str) -> Server {
    Server::start(with_files(http))
}

/// The replies to requests for these paths on one connection.
pub(super) fn ask(server: &Server, client: &TlsClient, name: &str, paths: &[&str]) -> Vec<String> {
    let mut stream = client.connect(name, server.connect_plain().into_socket());
    paths.iter().map(|path| get(&mut stream, path)).collect()
}

fn get<S: std::io::Read + std::io::Write>(stream: &mut TlsClientStream<S>, path: &str) -> String {
    get_of(stream, path, "h")
}

pub(super) fn get_of<S: std::io::Read + std::io::Write>(
    stream: &mut TlsClientStream<S>,
    path: &str,
    host: &str,
) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    read_reply(stream)
}

pub(super) fn read_reply<S: std::io::Read + std::io::Write>(
    stream: &mut TlsClientStream<S>,
) -> String {
    let mut reply = Vec::new();
    while !reply.ends_with(b".") {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&reply));
        reply.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8(reply).unwrap().split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn common_name(server: &Server, client: &TlsClient, name: &str) -> &'static str {
    let mut stream = client.connect(name, server.connect_plain().into_socket());
    get(&mut stream, "/");
    let certificate = stream.certificate();
    let has = |name: &[u8]| certificate.windows(name.len()).any(|part| part == name);
    if has(b"ecdsa") { ECDSA } else { RSA }
}

#[test]
fn variables_describe_the_negotiated_session() {
    let server = server(
        "server { listen 1 ssl; server_name localhost; ECDSA; ssl_ecdh_curve prime256v1;
             ssl_ciphers AES128;
             location /a { return 200 '$ssl_protocol $ssl_cipher $ssl_curve.'; }
             location /b { return 200 '$ssl_server_name $ssl_alpn_protocol $ssl_session_reused.'; }
             location /c { return 200 '$scheme $https.'; } }",
    );
    let client = TlsClient::tls12().offering(&[b"http/1.1"]);
    let replies = ask(&server, &client, "LOCALHOST", &["/a", "/b", "/c"]);
    let agreed = "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256 prime256v1.";
    assert_eq!(replies, [agreed, "LOCALHOST http/1.1 ..", "https on."]);
}

#[test]
fn a_connection_without_tls_has_none_of_the_variables() {
    let site = site("server { return 200 '[$ssl_protocol$ssl_cipher$ssl_server_name$https]'; }");
    assert_eq!(site.get("/").body(), "[]");
}

#[test]
fn a_client_reaches_the_server_that_it_names() {
    let server = server(
        "server { listen 1 ssl; server_name a.test; ECDSA; return 200 a.; }
         server { listen 1 ssl; server_name *.b.test; RSA; return 200 b.; }
         server { listen 1 ssl; server_name no.test; ssl_reject_handshake on; }
         server { listen 1 ssl; server_name bare.test; return 200 bare.; }
         error_log e.log info;",
    );
    let client = TlsClient::new();
    for (name, certificate) in
        [("a.test", ECDSA), ("x.b.test", RSA), ("other", ECDSA), ("bare.test", ECDSA)]
    {
        assert_eq!(common_name(&server, &client, name), certificate, "{name}");
    }
    let mut rejected = client.connect("no.test", server.connect_plain().into_socket());
    let error = rejected.read(&mut [0]).unwrap_err().to_string();
    assert!(error.contains("UnrecognisedName"), "{error}");
    let rejected = "handshake rejected while SSL handshaking, client: unix:, server: 0.0.0.0:1";
    assert!(server.log().iter().any(|line| line == rejected), "{:?}", server.log());
}

#[test]
fn a_client_receives_a_certificate_that_it_can_verify() {
    let server = server("server { listen 1 ssl; RSA; ECDSA; return 200 a.; }");
    assert_eq!(common_name(&server, &TlsClient::new(), "a"), ECDSA);
}

#[test]
fn plain_http_is_answered_with_497() {
    let server = server(
        "server { listen 1 ssl; ECDSA; error_log e.log info;
             error_page 497 =200 /plain; location /plain { return 200 '$scheme'; } }",
    );
    let mut client = server.connect_plain();
    client.head("GET / HTTP/1.1\nHost: h\n");
    assert_eq!(client.rest(), text("200 OK", "close", "http"));
    let said = "client sent plain HTTP request to HTTPS port, client: unix:, server: , \
                request: \"GET / HTTP/1.1\", host: \"h\"";
    assert_eq!(server.log(), [said]);
}

#[test]
fn a_failed_handshake_is_logged_and_times_out() {
    let server = server(
        "server { listen 1 ssl; ECDSA; ssl_protocols TLSv1.3; error_log e.log info;
             client_header_timeout 100ms; }",
    );
    let mut old = TlsClient::tls12().connect("a", server.connect_plain().into_socket());
    let error = old.read(&mut [0]).unwrap_err().to_string();
    assert!(error.contains("ProtocolVersion"), "{error}");
    let context = "while SSL handshaking, client: unix:, server: 0.0.0.0:1";
    let line = &server.log()[0];
    assert!(
        line.starts_with("SSL_do_handshake() failed (SSL: ") && line.ends_with(context),
        "{line}"
    );
    drop(server.connect_plain());
    let mut slow = server.connect_plain();
    slow.send([22, 3, 1]);
    server.advance(100);
    slow.expect_end();
    let log = server.log();
    assert!(log.contains(&format!("peer closed connection in SSL handshake {context}")), "{log:?}");
    let timed_out = format!("client timed out (110: Connection timed out) {context}");
    assert!(log.contains(&timed_out), "{log:?}");
}

#[test]
fn invalid_directives_are_refused() {
    let refused = |http: &str| refusal(&with_files(http));
    for (http, message) in [
        (
            "server { listen 1 ssl; }",
            "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive:1",
        ),
        (
            "server { listen 1 ssl; ssl_reject_handshake on; } server { listen 1 ssl; }",
            "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive:1",
        ),
        (
            "server { ssl_certificate a; }",
            "no \"ssl_certificate_key\" is defined for certificate \"a\":1",
        ),
        (
            "server { ssl_certificate a; ssl_certificate_key b; }",
            "cannot load certificate \"/a\": open() \"/a\" failed (2: No such file or directory):1",
        ),
        (
            "ssl_protocols TLSv1 SSLv3;",
            "no protocol of \"ssl_protocols\" is supported: TLSv1 and SSLv3: they are broken, and \
             rustls does not have them:1",
        ),
        ("ssl_protocols TLSv1.4;", "invalid value \"TLSv1.4\":1"),
    ] {
        let said = refused(http);
        assert!(said.starts_with(message), "{http}: {said}");
    }
    let lines =
        ["server { ssl_certificate 'data:", ECDSA_CERTIFICATE, "'; ", RSA_KEY_LINE, RSA_KEY];
    let mixed = format!("{}'; }}", lines.concat());
    assert!(
        refused(&mixed)
            .starts_with("cannot load certificate key \"data:...\": key values mismatch")
    );
}

#[test]
fn settings_that_rustls_lacks_cause_warnings() {
    let site = site("ssl_protocols TLSv1.1 TLSv1.2; ssl_ecdh_curve X448:X25519; server { }");
    let broken = "is ignored: it is broken, and rustls does not have it:1";
    assert_eq!(site.warnings[0], format!("TLSv1.1 {broken}"));
    assert!(site.warnings[1].starts_with("the group \"X448\" is ignored"));
    let site = self::site("ssl_protocols SSLv3 TLSv1 TLSv1.1 TLSv1.2; server { }");
    let broken = "are ignored: they are broken, and rustls does not have them:1";
    assert_eq!(site.warnings, [format!("SSLv3, TLSv1 and TLSv1.1 {broken}")]);
}

#[test]
fn a_session_is_resumed_only_with_its_server() {
    let reply = "return 200 '$ssl_session_reused.';";
    for settings in ["", "ssl_session_tickets off; ssl_session_cache shared:a:1m;"] {
        let server = server(&format!(
            "{settings} ECDSA;
             server {{ listen 1 ssl; server_name a.test; {reply} }}
             server {{ listen 1 ssl; server_name b.test; {reply} }}"
        ));
        for client in [TlsClient::new(), TlsClient::tls12()] {
            let reused = |name| ask(&server, &client, name, &["/"]).remove(0);
            assert_eq!([reused("a.test"), reused("a.test")], ["..", "r."], "{settings}");
            assert_eq!([reused("b.test"), reused("b.test")], ["..", "r."], "{settings}");
        }
    }
}

#[test]
fn sessions_may_be_off() {
    for settings in ["ssl_session_tickets off;", "ssl_session_timeout 0;"] {
        let server = server(&format!(
            "server {{ listen 1 ssl; ECDSA; {settings} return 200 '$ssl_session_reused.'; }}"
        ));
        for client in [TlsClient::new(), TlsClient::tls12()] {
            ask(&server, &client, "a", &["/"]);
            assert_eq!(ask(&server, &client, "a", &["/"]), [".."], "{settings}");
        }
    }
}

#[test]
fn settings_of_sessions_are_checked() {
    for (http, message) in [
        ("ssl_session_cache shared:a:1k;", "session cache \"shared:a:1k\" is too small:1"),
        ("ssl_session_cache shared:a;", "invalid session cache \"shared:a\":1"),
        ("ssl_session_ticket_key a;", "open() \"/a\" failed (2: No such file or directory):1"),
        ("ssl_ciphers MD5;", "no cipher suite is left of \"MD5\""),
    ] {
        let said = refusal(http);
        assert!(said.starts_with(message), "{http}: {said}");
    }
    let site = site("ssl_dhparam a; ssl_conf_command Options KTLS; server { }");
    assert_eq!(site.warnings.len(), 2, "{:?}", site.warnings);
}

/// The servers that Mozilla's generator of configurations (version 5.7) writes.
#[test]
fn mozillas_configurations_load() {
    let intermediate = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
         ECDHE-ECDSA-AES256-GCM-SHA384:\
         ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:\
         DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305";
    let old = format!(
        "@SECLEVEL=0:{intermediate}:ECDHE-ECDSA-AES128-SHA256:AES128-GCM-SHA256:DES-CBC3-SHA"
    );
    let modern = "ssl_protocols TLSv1.3; ssl_ecdh_curve X25519:prime256v1:secp384r1;";
    let intermediate = format!(
        "ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve X25519:prime256v1:secp384r1;
         ssl_ciphers {intermediate}; ssl_dhparam dhparam;"
    );
    let old = format!("ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3; ssl_ciphers {old};");
    for (settings, warnings) in [(modern, 0), (&intermediate, 1), (&old, 1)] {
        let common = "ssl_session_timeout 1d; ssl_session_cache shared:MozSSL:10m;
             ssl_session_tickets off; ssl_prefer_server_ciphers off;";
        let http = format!("server {{ listen 1 ssl; ECDSA; {common} {settings} }}");
        let site = site(&with_files(&http));
        assert_eq!(site.warnings.len(), warnings, "{:?}", site.warnings);
    }
}

#[test]
fn a_resumed_session_may_begin_with_a_request() {
    let server = server(
        "server { listen 1 ssl; ECDSA; ssl_early_data on;
             return 200 '$request_uri $ssl_early_data $ssl_session_reused.'; }",
    );
    let client = TlsClient::new().with_early_data();
    assert_eq!(ask(&server, &client, "a", &["/first"]), ["/first  .."]);
    let mut stream = client.connect("a", server.connect_plain().into_socket());
    assert!(stream.write_early(b"GET /early HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(read_reply(&mut stream), "/early 1 r.");
    assert!(stream.is_early_data_accepted());
    assert_eq!(get(&mut stream, "/late"), "/late  r.");
    // Without early data, the session is resumed as well.
    assert_eq!(ask(&server, &client, "a", &["/none"]), ["/none  r."]);
    let large = TlsClient::new().with_early_data();
    ask(&server, &large, "a", &["/"]);
    let mut stream = large.connect("a", server.connect_plain().into_socket());
    let mut request = b"POST /large HTTP/1.1\r\nHost: h\r\nContent-Length: 40000\r\n\r\n".to_vec();
    request.resize(request.len() + 10_000, b'x');
    assert!(stream.write_early(&request));
    stream.write_all(&[b'x'; 30_000]).unwrap();
    assert!(read_reply(&mut stream).starts_with("/large "));
}

#[test]
fn certificates_are_compressed_for_clients_that_can_tell() {
    static DECOMPRESSED: AtomicUsize = AtomicUsize::new(0);
    for (setting, count) in [("off", 0), ("on", 1)] {
        let server = server(&format!(
            "server {{ listen 1 ssl; RSA; ssl_certificate_compression {setting}; return 200 a.; }}"
        ));
        let client = TlsClient::new().decompressing(&DECOMPRESSED);
        assert_eq!(common_name(&server, &client, "a"), RSA);
        assert_eq!(DECOMPRESSED.load(Ordering::Relaxed), count, "{setting}");
    }
}

#[test]
fn variables_identify_a_session_and_how_it_was_signed() {
    let text = "'$ssl_session_id $ssl_sigalg $ssl_ech_status.'";
    for (versions, client, sigalg) in [
        ("TLSv1.3", TlsClient::new(), "ecdsa_secp256r1_sha256"),
        ("TLSv1.2", TlsClient::tls12(), "ecdsa_secp256r1_sha256"),
    ] {
        let server = server(&format!(
            "ssl_session_tickets off; ssl_session_cache shared:a:1m;
             server {{ listen 1 ssl; ECDSA; ssl_protocols {versions}; return 200 {text}; }}"
        ));
        let said = ask(&server, &client, "a", &["/"]).remove(0);
        let (id, rest) = said.split_once(' ').unwrap();
        assert!(id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{said}");
        assert_eq!(rest, format!("{sigalg} ."));
        let resumed = ask(&server, &client, "a", &["/"]).remove(0);
        assert!(resumed.ends_with("  ."), "{resumed}");
    }
}

#[test]
fn variables_choose_the_certificate() {
    let map = |name: &str, ecdsa: &str, rsa: &str| {
        format!(
            "map $ssl_server_name ${name} {{ hostnames; default 'data:{ecdsa}';
                 rsa.test 'data:{rsa}'; none.test /nowhere/none.test; }}"
        )
    };
    let server = Server::start(format!(
        "{} {}
         ssl_certificate_cache max=2;
         server {{ listen 1 ssl; error_log e.log; ssl_certificate $pem; ssl_certificate_key $key;
             return 200 '$ssl_server_name $ssl_session_reused.'; }}",
        map("pem", ECDSA_CERTIFICATE, RSA_CERTIFICATE),
        map("key", ECDSA_KEY, RSA_KEY),
    ));
    let client = TlsClient::new();
    for _ in 0..2 {
        assert_eq!(common_name(&server, &TlsClient::new(), "other.test"), ECDSA);
        assert_eq!(common_name(&server, &TlsClient::new(), "rsa.test"), RSA);
    }
    assert_eq!(ask(&server, &client, "rsa.test", &["/"]), ["rsa.test .."]);
    assert_eq!(ask(&server, &client, "rsa.test", &["/"]), ["rsa.test r."]);
    let mut failed = client.connect("none.test", server.connect_plain().into_socket());
    let error = failed.read(&mut [0]).unwrap_err().to_string();
    assert!(error.contains("InternalError"), "{error}");
    let said = "cannot load certificate \"/nowhere/none.test\": open() failed (2: No such file or \
                directory) while SSL handshaking, client: unix:, server: 0.0.0.0:1";
    assert_eq!(server.log(), [said]);
}

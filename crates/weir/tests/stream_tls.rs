//! TLS in `stream {}`: the real program is both ends.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Read as _;
use std::net::SocketAddr;

use testing::{Folder, Peer, Server, complaint, connect, free_address};

/// Its only name is the common name `first`.
const FIRST: &str = include_str!("../../net/src/tls/testdata/first.crt");
const FIRST_KEY: &str = include_str!("../../net/src/tls/testdata/pbes2_aes256.key");
const PLAIN_KEY: &str = include_str!("../../net/src/tls/testdata/sec1.key");
const SECOND: &str = include_str!("../../net/src/tls/testdata/second.crt");

/// What a server of `stream {}` sends a client that sends nothing.
fn ask(address: &SocketAddr) -> String {
    let (mut stream, mut text) = (connect(address), String::new());
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Servers that pass on to `group`, whose server speaks TLS; each has these lines beside `common`.
fn start<const N: usize>(common: &str, servers: [&str; N]) -> (Server, [SocketAddr; N]) {
    let addresses = [(); N].map(|()| free_address());
    let server = Server::start_with(|folder, address| {
        for (name, text) in [
            ("first.crt", FIRST),
            ("first.key", FIRST_KEY),
            ("plain.key", PLAIN_KEY),
            ("second.crt", SECOND),
            ("password", "wrong\nweir\n"),
        ] {
            folder.write(name, text);
        }
        let back = folder.join("back.sock");
        let mut stream = format!(
            "upstream group {{ zone group 64k; server unix:{back}; }}
             upstream other {{ zone other 64k; server unix:{back}; }}
             server {{ listen unix:{back} ssl; ssl_certificate first.crt; ssl_alpn a b;
                 ssl_certificate_key plain.key; ssl_client_certificate first.crt;
                 ssl_verify_client optional_no_ca;
                 return '$ssl_server_name $ssl_protocol $ssl_session_reused \
                         $ssl_alpn_protocol $ssl_client_s_dn'; }}",
            back = back.display()
        );
        for (address, lines) in addresses.iter().zip(servers) {
            let pass = if lines.contains("proxy_pass") { "" } else { "proxy_pass group;" };
            stream += &format!("server {{ listen {address}; {pass} {lines} }}");
        }
        let globals = format!("events {{}} stream {{ proxy_ssl on; {common} {stream} }}");
        folder.configure(address, &globals, "");
    });
    (server, addresses)
}

#[test]
fn a_name_is_sent_and_a_certificate_verified() {
    let (server, [good, name, trust, any, plain]) = start(
        "proxy_ssl_trusted_certificate first.crt; proxy_ssl_server_name on; proxy_ssl_verify on;",
        [
            "set $name first; proxy_ssl_name $name:443;",
            "proxy_ssl_name other.test;",
            "proxy_ssl_name first; proxy_ssl_trusted_certificate second.crt;",
            "proxy_ssl_verify off;",
            "proxy_ssl off; proxy_timeout 100ms;",
        ],
    );
    assert_eq!(ask(&good), "first TLSv1.3 .  ", "{}", server.log());
    assert_eq!(ask(&any), "group TLSv1.3 .  ");
    assert_eq!([&name, &trust, &plain].map(ask), ["", "", ""]);
    let doing = "while SSL handshaking to upstream, client: 127.0.0.1, server: ";
    for words in [
        format!("upstream SSL certificate does not match \"other.test\" {doing}{name}"),
        format!("certificate verify error: (18:self-signed certificate) {doing}{trust}"),
    ] {
        server.await_log(&words, 1);
    }
}

#[test]
fn sessions_are_resumed_unless_they_must_not_be() {
    let (_server, [old, new, old12]) =
        start("", ["", "proxy_ssl_session_reuse off;", "proxy_ssl_protocols TLSv1.2;"]);
    let is_resumed = |address: &SocketAddr| ask(address).ends_with(" r  ");
    assert_eq!([&old, &old, &old].map(is_resumed), [false, true, true]);
    assert_eq!([&new, &new].map(is_resumed), [false, false]);
    assert_eq!([&old12, &old12].map(is_resumed), [false, true]);
}

#[test]
fn certificates_and_protocols_may_have_variables() {
    let (server, [fixed, computed, missing, protocols]) = start(
        "proxy_ssl_password_file password; proxy_ssl_certificate_key first.key;
         map $remote_addr $name { default first; } map $remote_addr $none { 10.0.0.1 a; }",
        [
            "proxy_ssl_certificate first.crt;",
            "proxy_ssl_certificate $name.crt; proxy_ssl_certificate_cache max=2;",
            "proxy_ssl_certificate $name$server_port.crt;",
            "set $b b; proxy_ssl_alpn $none $b;",
        ],
    );
    assert_eq!(ask(&fixed), " TLSv1.3 .  CN=first", "{}", server.log());
    assert_eq!(ask(&computed), " TLSv1.3 .  CN=first", "{}", server.log());
    assert_eq!(ask(&missing), "");
    server.await_log(&format!("first{}.crt\": open() failed (2: ", missing.port()), 1);
    assert_eq!(ask(&protocols), " TLSv1.3 . b ");
}

#[test]
fn a_proxy_header_precedes_the_handshake() {
    let [front, back] = [(); 2].map(|()| free_address());
    let server = Server::start_with(|folder, address| {
        folder.write("first.crt", FIRST);
        folder.write("plain.key", PLAIN_KEY);
        let stream = format!(
            "server {{ listen {front}; proxy_pass {back}; proxy_ssl on; proxy_protocol on; }}
             server {{ listen {back} ssl proxy_protocol; return $proxy_protocol_server_port;
                 ssl_certificate first.crt; ssl_certificate_key plain.key; }}"
        );
        folder.configure(address, &format!("events {{}} stream {{ {stream} }}"), "");
    });
    assert_eq!(ask(&front), front.port().to_string(), "{}", server.log());
}

#[test]
fn health_checks_verify_certificates() {
    let (server, _) = start(
        "proxy_ssl_verify on; proxy_ssl_name first;",
        [
            "proxy_ssl_trusted_certificate first.crt; health_check interval=100ms mandatory;",
            "proxy_pass other; proxy_ssl_trusted_certificate second.crt;
                 health_check interval=100ms;",
        ],
    );
    server.await_log("peer is healthy", 1);
    server.await_log("(18:self-signed certificate) while SSL handshaking to upstream", 1);
}

#[test]
fn contradictory_tls_settings_are_refused() {
    for (line, words) in [
        ("proxy_ssl_verify on;", "no proxy_ssl_trusted_certificate for proxy_ssl_verify"),
        ("proxy_ssl_certificate a.crt;", "no \"proxy_ssl_certificate_key\" is defined"),
        ("proxy_ssl_ciphers RC4;", "no cipher suite is left"),
    ] {
        let folder = Folder::new();
        let server = format!("server {{ listen 1; proxy_pass 127.0.0.1:1; proxy_ssl on; {line} }}");
        let globals = format!("events {{}} stream {{ {server} }}");
        folder.configure("127.0.0.1:1", &globals, "");
        let complaint = complaint(&folder.run(&["-t", "-c", "nginx.conf"]));
        assert!(complaint.contains(words), "{complaint}");
    }
}

/// Bytes of a long transfer, whose order shows.
fn numbered() -> Vec<u8> {
    (0..1u32 << 20).flat_map(u32::to_be_bytes).collect()
}

#[test]
fn a_long_transfer_is_encrypted_and_decrypted_to_its_end() {
    let source = Peer::playing(|mut connection| connection.send_raw(numbered())).address;
    let secure = free_address();
    let encrypting = format!(
        "server {{ listen {secure} ssl; ssl_certificate first.crt; ssl_certificate_key plain.key;
             proxy_ssl off; proxy_pass {source}; }}"
    );
    let (server, [plain]) = start(&encrypting, [&format!("proxy_pass {secure};")]);
    let (mut stream, mut got) = (connect(&plain), Vec::new());
    stream.read_to_end(&mut got).unwrap();
    assert!(got == numbered(), "{} bytes: {}", got.len(), server.log());
}

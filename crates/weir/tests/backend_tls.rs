//! TLS with backends: the real program is both ends.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::thread;

use testing::{Folder, Peer, PeerConnection, Server};

/// Its only name is the common name `first`.
const FIRST: &str = include_str!("../../net/src/tls/testdata/first.crt");
const FIRST_KEY: &str = include_str!("../../net/src/tls/testdata/pbes2_aes256.key");
const PLAIN_KEY: &str = include_str!("../../net/src/tls/testdata/sec1.key");
const SECOND: &str = include_str!("../../net/src/tls/testdata/second.crt");

/// A backend that speaks TLS at `BACK`, and a server before it.
fn start(locations: &str) -> Server {
    Server::start_with(|folder: &Folder, address: &str| {
        for (name, text) in [
            ("first.crt", FIRST),
            ("first.key", FIRST_KEY),
            ("plain.key", PLAIN_KEY),
            ("second.crt", SECOND),
            ("password", "wrong\nweir\n"),
        ] {
            folder.write(name, text);
        }
        let back = format!("unix:{}", folder.join("back.sock").display());
        let http = format!(
            "upstream group {{ server BACK; keepalive 4; }}
             upstream well {{ zone well 64k; server BACK; }}
             upstream sick {{ zone sick 64k; server BACK; }}
             server {{ listen {address}; {locations} }}
             server {{ listen BACK ssl; ssl_certificate first.crt; ssl_certificate_key plain.key;
                 return 200 '$ssl_server_name $ssl_protocol $connection $ssl_session_reused'; }}"
        );
        folder.configure(address, "events {}\n", &http.replace("BACK", &back));
    })
}

#[test]
fn a_name_is_sent_and_a_certificate_verified() {
    let server = start(
        "proxy_ssl_trusted_certificate first.crt; proxy_ssl_server_name on;
         proxy_ssl_verify on;
         location /good { proxy_pass https://group; proxy_ssl_name first:443; }
         location /name { proxy_pass https://group; proxy_ssl_name other.test; }
         location /trust { proxy_pass https://group; proxy_ssl_trusted_certificate second.crt; }
         location /any { proxy_pass https://group; proxy_ssl_verify off; }
         location /plain { proxy_pass http://group; }",
    );
    assert!(server.get("/good").starts_with("first TLSv1.3 "), "{}", server.get("/good"));
    assert!(server.get("/any").starts_with("group TLSv1.3 "));
    for (path, words) in [
        ("/name", "upstream SSL certificate does not match \"other.test\" while SSL handshaking"),
        ("/trust", "upstream SSL certificate verify error: (18:self-signed certificate)"),
    ] {
        assert!(server.get(path).contains("502 Bad Gateway"), "{path}");
        server.await_log(words, 1);
    }
    // HTTP on a socket that expects TLS.
    assert!(server.get("/plain").contains("plain HTTP request was sent to HTTPS port"));
}

#[test]
fn connections_are_kept_for_the_same_settings_and_name() {
    let server = start(
        "location /a { proxy_pass https://group; proxy_ssl_server_name on;
             proxy_ssl_name $arg_name; }
         location /b { proxy_pass https://group; proxy_ssl_protocols TLSv1.2; }",
    );
    let ask = |path: &str| server.get(path);
    let one = ask("/a?name=one");
    let two = ask("/a?name=two");
    let old = ask("/b");
    assert!(one.starts_with("one TLSv1.3 ") && two.starts_with("two TLSv1.3 "), "{one} {two}");
    assert!(old.starts_with(" TLSv1.2 "), "{old}");
    assert_eq!([ask("/a?name=one"), ask("/a?name=two"), ask("/b")], [one, two, old]);
}

#[test]
fn sessions_are_resumed_unless_they_must_not_be() {
    let server = start(
        "proxy_set_header Connection close;
         location /new { proxy_pass https://group; proxy_ssl_session_reuse off; }
         location /off { proxy_pass https://group;
             proxy_ssl_conf_command Options -SessionTicket; }
         location /old { proxy_pass https://group; }
         location /old12 { proxy_pass https://group; proxy_ssl_protocols TLSv1.2; }",
    );
    let is_resumed = |path: &str| server.get(path).ends_with(" r");
    assert_eq!(["/new", "/new"].map(is_resumed), [false, false]);
    assert_eq!(["/off", "/off"].map(is_resumed), [false, false]);
    assert_eq!(["/old", "/old", "/old"].map(is_resumed), [false, true, true]);
    assert_eq!(["/old12", "/old12"].map(is_resumed), [false, true]);
}

#[test]
fn health_checks_verify_certificates() {
    let server = start(
        "proxy_ssl_verify on; proxy_ssl_name first;
         location /well { proxy_pass https://well; proxy_ssl_trusted_certificate first.crt;
             health_check mandatory interval=100ms; }
         location /sick { proxy_pass https://sick; proxy_ssl_trusted_certificate second.crt;
             health_check interval=100ms; }",
    );
    server.await_log("peer is healthy while checking status code", 1);
    server.await_log("peer is unhealthy while SSL handshaking to upstream", 1);
    server.await_log("(18:self-signed certificate) while SSL handshaking to upstream", 1);
    assert!(server.get("/well").contains("TLSv1.3"));
    assert!(server.get("/sick").contains("502 Bad Gateway"));
    server.await_log("no live upstreams", 1);
}

#[test]
fn a_variable_may_name_uwsgi_over_tls() {
    let server = start(
        "uwsgi_ssl_verify on; uwsgi_ssl_name first; uwsgi_ssl_trusted_certificate second.crt;
         location / { uwsgi_pass $arg_to; }",
    );
    // The backend speaks HTTP, and says so if it is reached.
    let ask = |scheme: &str| server.get(&format!("/?to={scheme}group"));
    assert!(ask("uwsgi://").contains("400 Bad Request") && ask("").contains("400 Bad Request"));
    assert!(ask("suwsgi://").contains("502 Bad Gateway"));
    server.await_log("upstream SSL certificate verify error: (18:", 1);
    server.await_log("upstream: \"suwsgi://", 1);
}

#[test]
fn a_certificate_of_its_own_may_have_an_encrypted_key_and_variables() {
    let server = start(
        "proxy_ssl_password_file password; proxy_ssl_certificate_key first.key;
         location /fixed { proxy_pass https://group; proxy_ssl_certificate first.crt; }
         location /computed { proxy_pass https://group; proxy_ssl_certificate $arg_name.crt;
             proxy_ssl_certificate_cache max=2; }",
    );
    assert!(server.get("/fixed").contains("TLSv1.3"), "{}", server.log());
    assert!(server.get("/computed?name=first").contains("TLSv1.3"), "{}", server.log());
    for (name, words) in
        [("none", "none.crt\": open() failed (2: "), ("second", "key values mismatch")]
    {
        let reply = server.get(&format!("/computed?name={name}"));
        assert!(reply.contains("500 Internal Server Error"), "{reply}");
        server.await_log(words, 1);
    }
}

/// The certificates are pipes: reading one waits until the test writes to it.
#[test]
fn a_certificate_that_is_slow_to_read_delays_its_own_request_only() {
    let server = start(
        "proxy_ssl_certificate_key plain.key; proxy_ssl_certificate $arg_name.crt;
         location / { proxy_pass https://group; }
         location /brief { proxy_pass https://group; proxy_connect_timeout 50ms; }
         location /plain { return 200 plain; }",
    );
    for name in ["slow.crt", "never.crt"] {
        let made = Command::new("mkfifo").arg(server.folder.join(name)).status();
        assert!(made.unwrap().success());
    }
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.get("/?name=slow"));
        // Once these are open, threads of the server are reading the other ends.
        let open = |name| File::options().write(true).open(server.folder.join(name)).unwrap();
        let mut slow = open("slow.crt");
        assert_eq!(server.get("/plain"), "plain");
        assert!(!waiting.is_finished());
        let given_up = scope.spawn(|| server.get("/brief?name=never"));
        let never = open("never.crt");
        assert!(given_up.join().unwrap().contains("500 Internal Server Error"));
        server.await_log("cannot load certificate \"never.crt\" in time", 1);
        drop(never);
        slow.write_all(FIRST.as_bytes()).unwrap();
        drop(slow);
        let reply = waiting.join().unwrap();
        assert!(reply.contains("TLSv1.3"), "{reply} {}", server.log());
    });
}

#[test]
fn contradictory_tls_settings_are_refused() {
    for (line, words) in [
        ("proxy_ssl_verify on;", "no proxy_ssl_trusted_certificate for proxy_ssl_verify"),
        ("proxy_ssl_certificate a.crt;", "no \"proxy_ssl_certificate_key\" is defined"),
        ("proxy_ssl_ciphers RC4;", "no cipher suite is left"),
        ("proxy_ssl_certificate_cache valid=1s;", "must have the \"max\" parameter"),
        ("proxy_ssl_password_file nothing;", "nothing\" failed (2: No such file"),
    ] {
        let folder = Folder::new();
        let http = format!("server {{ location / {{ {line} proxy_pass https://127.0.0.1; }} }}");
        folder.configure("127.0.0.1:1", "events {}\n", &http);
        let complaint = testing::complaint(&folder.run(&["-t", "-c", "nginx.conf"]));
        assert!(complaint.contains(words), "{complaint}");
    }
}

/// Answers, and closes the connection: in the usual way, or for `/reset` with a reset, which unread
/// bytes cause.
fn answer_and_close(mut connection: PeerConnection) -> Option<()> {
    let mut request = [0; 4096];
    let length = connection.stream().peek(&mut request).ok()?;
    if !String::from_utf8_lossy(&request[..length]).contains("/reset ") {
        connection.until(b"\r\n\r\n")?;
    }
    connection.send_raw(b"HTTP/1.1 200 OK\r\n\r\nall of it")
}

/// A plain backend behind a server of `stream` with TLS, which passes a reset on as an end without
/// close_notify, to the server of `http` that sends the request.
#[test]
fn a_reply_that_was_cut_off_is_not_taken_as_complete() {
    let plain = Peer::playing(answer_and_close).address;
    let server = Server::start_with(|folder: &Folder, address: &str| {
        folder.write("first.crt", FIRST);
        folder.write("plain.key", PLAIN_KEY);
        let back = format!("unix:{}", folder.join("back.sock").display());
        let globals = format!(
            "events {{}} stream {{ server {{ listen {back} ssl; ssl_certificate first.crt;
                 ssl_certificate_key plain.key; proxy_pass {plain}; }} }}"
        );
        let http = format!(
            "server {{ listen {address};
                 location / {{ proxy_pass https://{back}; }}
                 location /ignored {{ proxy_pass https://{back};
                     proxy_ssl_conf_command Options IgnoreUnexpectedEOF; }} }}"
        );
        folder.configure(address, &globals, &http);
    });
    for (path, is_whole) in
        [("/", true), ("/reset", false), ("/ignored/reset", true), ("/ignored", true)]
    {
        let mut client = server.connect();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("all of it"), "{path}: {answer}");
        assert_eq!(answer.ends_with("0\r\n\r\n"), is_whole, "{path}: {answer}");
    }
    server.await_log("upstream prematurely closed connection while reading upstream", 1);
}

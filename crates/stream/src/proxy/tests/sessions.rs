use std::net::SocketAddr;

use testing::{Folder, Peer, free_address};

use crate::tests::{answer, logged, refusal};

/// A backend that echoes each connection's input, up to a final line.
fn echo(name: &'static str) -> SocketAddr {
    let peer = Peer::playing(move |mut connection| {
        let asked = connection.until(b"\n.\n")?;
        connection.send_raw([name.as_bytes(), b": ", &asked].concat())
    });
    peer.address
}

const ASK: &[u8] = b"ask\n.\n";
const LOG: &str = "log_format f '$status $bytes_sent $bytes_received [$upstream_addr] \
                   [$upstream_bytes_sent] [$upstream_bytes_received]'; access_log a.log f;
                   error_log e.log info;";

fn proxied(text: &str) -> (String, String, String) {
    let folder = Folder::new();
    // The client shuts down its side after the request.
    let text = format!("{LOG} proxy_half_close on; {text}");
    let answer = String::from_utf8(answer(&text, &folder, ASK)).unwrap();
    (answer, logged(&folder, "a.log"), logged(&folder, "e.log"))
}

#[test]
fn a_session_is_proxied_to_addresses_names_and_groups() {
    let backend = echo("b");
    let port = backend.port();
    for target in [
        backend.to_string(),
        format!("localhost:{port}"),
        "group".into(),
        "GROUP".into(),
        "$computed".into(),
        format!("$server_addr:{port}"),
    ] {
        let (answer, log, errors) = proxied(&format!(
            "upstream group {{ server {backend}; }} map 1 $computed {{ default group; }}
             server {{ listen 127.0.0.1:1; proxy_pass {target}; }}"
        ));
        assert_eq!(answer, "b: ask\n.\n", "{target}: {errors}");
        assert_eq!(log, format!("200 9 6 [{backend}] [6] [9]\n"), "{target}");
        let over = "disconnected, bytes from/to client:6/9, bytes from/to upstream:9/6\n";
        assert!(errors.ends_with(over), "{errors}");
    }
}

#[test]
fn another_server_is_tried_when_one_does_not_answer() {
    let (backend, dead) = (echo("b"), free_address());
    let group = format!("upstream u {{ server {dead}; server {backend} backup; }}");
    let (answer, log, errors) =
        proxied(&format!("{group} server {{ listen 127.0.0.1:1; proxy_pass u; }}"));
    assert_eq!(answer, "b: ask\n.\n");
    assert_eq!(log, format!("200 9 6 [{dead}, {backend}] [0, 6] [0, 9]\n"));
    let failed = format!(
        "connect() failed (111: Connection refused) while connecting to upstream, \
         client: 127.0.0.1, server: 127.0.0.1:1, upstream: \"{dead}\", \
         bytes from/to client:"
    );
    assert!(errors.contains(&failed), "{errors}");
    for limit in ["proxy_next_upstream off", "proxy_next_upstream_tries 1"] {
        let server = format!("server {{ listen 127.0.0.1:1; proxy_pass u; {limit}; }}");
        let (answer, log, _) = proxied(&format!("{group} {server}"));
        assert_eq!(answer, "");
        // The number of bytes read from the client depends on its thread.
        let tried = format!("[{dead}] [0] [0]\n");
        assert!(log.starts_with("502 0 ") && log.ends_with(&tried), "{log}");
    }
}

#[test]
fn without_a_server_the_session_ends() {
    let (answer, log, errors) = proxied(
        "upstream u { server 127.0.0.1:1 down; } server { listen 127.0.0.1:1; proxy_pass u; }",
    );
    assert_eq!((&*answer, &*log), ("", "502 0 0 [u] [0] [0]\n"));
    assert!(errors.contains("no live upstreams while connecting to upstream"), "{errors}");
    for (target, said) in [
        ("$t", "no host in upstream \"\""),
        ("$server_addr", "no port in upstream \"127.0.0.1\""),
        ("x$t:1", "no resolver defined to resolve x"),
    ] {
        let (_, log, errors) =
            proxied(&format!("server {{ listen 127.0.0.1:1; set $t ''; proxy_pass {target}; }}"));
        assert!(log.starts_with("500 0 0 [-]"), "{log}");
        assert!(errors.contains(said), "{errors}");
    }
}

#[test]
fn a_backend_receives_a_proxy_header_first() {
    let backend = echo("b");
    let server = |more: &str| {
        format!("server {{ listen 127.0.0.1:1; proxy_pass {backend}; proxy_protocol {more}; }}")
    };
    let (answer, log, _) = proxied(&server("on"));
    let header = answer.strip_prefix("b: PROXY TCP4 127.0.0.1 127.0.0.1 ").unwrap();
    assert!(header.ends_with("\r\nask\n.\n"), "{answer}");
    // The header only counts as sent to the server.
    let to_server = answer.len() - "b: ".len();
    assert!(log.ends_with(&format!("6 [{backend}] [{to_server}] [{}]\n", answer.len())), "{log}");
    let folder = Folder::new();
    let text = format!("proxy_half_close on; {}", server("v2"));
    let answer = answer_bytes(&text, &folder);
    let header = &answer[b"b: ".len()..];
    assert!(header.starts_with(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x13"), "{header:?}");
    assert_eq!(header.len(), 16 + 12 + 7 + ASK.len());
}

fn answer_bytes(text: &str, folder: &Folder) -> Vec<u8> {
    answer(text, folder, ASK)
}

#[test]
fn bytes_behind_a_proxy_header_go_to_the_backend() {
    let (folder, backend) = (Folder::new(), echo("b"));
    let text = format!(
        "{LOG} proxy_half_close on;
         server {{ listen 127.0.0.1:1 proxy_protocol; proxy_pass {backend}; }}"
    );
    let answer = answer(&text, &folder, b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nask\n.\n");
    assert_eq!(answer, b"b: ask\n.\n");
    assert_eq!(logged(&folder, "a.log"), format!("200 9 6 [{backend}] [6] [9]\n"));
}

#[test]
fn invalid_proxy_pass_lines_are_refused() {
    let server = |line: &str| refusal(&format!("server {{ listen 127.0.0.1:1; {line}; }}"));
    for (line, said) in [
        ("proxy_pass a:1; proxy_pass b:1", "\"proxy_pass\" directive is duplicate"),
        ("proxy_pass 127.0.0.1", "no port in upstream \"127.0.0.1\""),
        ("proxy_pass 127.0.0.1:70000", "invalid port in upstream \"127.0.0.1:70000\""),
        ("proxy_pass 127.0.0.1:1; proxy_protocol v3", "invalid value \"v3\""),
        ("proxy_pass 127.0.0.1:1; proxy_bind x", "invalid address \"x\""),
    ] {
        let refused = server(line);
        assert!(refused.starts_with(said), "{line}: {refused}");
    }
}

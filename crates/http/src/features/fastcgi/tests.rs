use crate::backend::testing::{TestBackend, values};
use crate::h1::tests::Server;
use crate::testing::{refusal, site};

const STDIN_END: &[u8] = b"\x01\x05\0\x01\0\0\0\0";

/// An application that answers every request with this text.
fn application(text: &str) -> TestBackend {
    TestBackend::of_bytes(STDIN_END, records(text))
}

/// The records of a response: its text, and the end of the request.
fn records(text: &str) -> Vec<u8> {
    let head = [1, 6, 0, 1, 0, text.len() as u8, 0, 0];
    let end = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    [&head[..], text.as_bytes(), &end].concat()
}

fn server(backend: &TestBackend, lines: &str) -> Server {
    let address = backend.address();
    Server::start(format!(
        "error_log e.log info; server {{ location / {{ fastcgi_pass {address}; {lines} }} }}"
    ))
}

fn get(server: &Server, fields: &str) -> String {
    server.ask(&format!("GET /a/b.php/c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\r\n"))
}

#[test]
fn a_request_is_a_list_of_variables() {
    let backend = application("\n");
    let lines = "fastcgi_split_path_info ^(.+\\.php)(.*)$; fastcgi_param S $fastcgi_script_name;
        fastcgi_param I $fastcgi_path_info; fastcgi_param E \"\"; fastcgi_param N \"\" if_not_empty;
        fastcgi_param HTTP_CONNECTION \"\"; fastcgi_param HTTP_ACCEPT text;";
    let reply = get(
        &server(&backend, lines),
        "Accept: x\r\nX-a: 1\r\nCookie: c\r\nX-A: 2\r\nCookie: d\r\n",
    );
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    let asked = backend.asked();
    let variables = "\\x01\\x08S/a/b.php\\x01\\x02I/c\\x01\\x00E\\x0b\\x04HTTP_ACCEPTtext\
        \\t\\x01HTTP_HOSTh\\x08\\x04HTTP_X_A1, 2\\x0b\\x04HTTP_COOKIEc; d";
    assert!(asked.contains(variables), "{asked}");
    let begin = "\\x01\\x01\\x00\\x01\\x00\\x08\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00";
    assert!(asked.starts_with(begin), "{asked}");
}

#[test]
fn an_index_completes_a_script() {
    let site = site(
        "server { location /a { fastcgi_index i.php; return 200 $fastcgi_script_name; }
        location /b { return 200 $fastcgi_script_name:$fastcgi_path_info; } }",
    );
    assert_eq!(site.get("/a/").body(), "/a/i.php");
    assert_eq!(site.get("/a/b").body(), "/a/b");
    assert_eq!(site.get("/b/").body(), "/b/:");
}

#[test]
fn replies_have_the_format_of_cgi() {
    let backend = application("Status: 404 Gone\nServer: s\nX-A: b\n\nno");
    let reply = get(&server(&backend, ""), "");
    assert!(reply.starts_with("HTTP/1.1 404 Gone\r\n"), "{reply}");
    assert_eq!((values(&reply, "X-A"), values(&reply, "Server")), (vec!["b"], vec!["s"]));
    assert!(values(&reply, "Status").is_empty() && reply.contains("no"));
    let reply = get(&server(&application("Location: /x\n\n"), ""), "");
    assert!(reply.starts_with("HTTP/1.1 302 "), "{reply}");
    assert_eq!(values(&reply, "Location"), ["/x"]);
}

#[test]
fn replies_without_a_body_leave_the_connection_open() {
    let backend = TestBackend::playing(|mut peer| {
        for before in 0.. {
            let mut asked = Vec::new();
            while !asked.ends_with(STDIN_END) {
                let Some(more) = peer.take() else { return };
                asked.extend_from_slice(&more);
            }
            let text = format!("Status: 204\nX-Requests-Before: {before}\n\n");
            peer.send_raw(records(&text));
        }
    });
    let server = Server::start(format!(
        "upstream u {{ server {}; keepalive 1; }}
         server {{ location / {{ fastcgi_pass u; fastcgi_keep_conn on; }} }}",
        backend.address()
    ));
    for before in ["0", "1", "2"] {
        assert_eq!(values(&get(&server, ""), "X-Requests-Before"), [before]);
    }
}

#[test]
fn an_incomplete_reply_is_forwarded_as_far_as_received() {
    let backend = application("Content-Length: 9\n\nabc");
    let reply = get(&server(&backend, ""), "");
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("\r\n\r\nabc"), "{reply}");
}

#[test]
fn stderr_before_a_malformed_record_is_logged() {
    let stdout = b"\x01\x06\0\x01\0\x04\0\0\n\nab";
    let stderr = b"\x01\x07\0\x01\0\x03\0\0oh\n";
    let backend = TestBackend::of_bytes(STDIN_END, [&stdout[..], stderr, b"\x02"].concat());
    let server = server(&backend, "");
    assert_eq!(get(&server, ""), "");
    let lines = server.log();
    let place = |words: &str| lines.iter().position(|line| line.contains(words));
    let stderr = place("FastCGI sent in stderr: \"oh\"").expect("the message");
    let refused = place("upstream sent unsupported FastCGI protocol version: 2").expect("an error");
    assert!(stderr < refused, "{lines:?}");
}

#[test]
fn invalid_directives_are_refused() {
    let refused = |line: &str| refusal(&format!("server {{ location / {{ {line} }} }}"));
    let table = [
        ("fastcgi_pass 127.0.0.1;", "no port in upstream \"127.0.0.1\":1"),
        ("fastcgi_pass a:b;", "invalid port in upstream \"a:b\":1"),
        ("fastcgi_param A b c;", "invalid parameter \"c\":1"),
        ("fastcgi_next_upstream error http_502;", "invalid value \"http_502\":1"),
        ("scgi_next_upstream http_504;", "invalid value \"http_504\":1"),
        ("uwsgi_next_upstream http_502;", "invalid value \"http_502\":1"),
        ("memcached_next_upstream http_404;", "invalid value \"http_404\":1"),
        ("fastcgi_split_path_info ^(a)$;", "pattern \"^(a)$\" must have 2 captures:1"),
    ];
    for (line, expected) in table {
        assert_eq!(refused(line), expected);
    }
}

#[test]
fn next_upstream_accepts_nginx_reasons() {
    for family in ["fastcgi", "scgi", "uwsgi"] {
        let reasons = "error timeout invalid_header http_500 http_503 http_403 http_404 http_429
            non_idempotent updating off";
        site(&format!("server {{ {family}_next_upstream {reasons}; }}"));
    }
    site("server { memcached_next_upstream error timeout invalid_response not_found off; }");
    site("server { proxy_next_upstream http_502 http_504; }");
}

#[test]
fn a_final_reply_has_no_interim_status() {
    for status in ["100", "101", "199", "1000"] {
        let backend = application(&format!("Status: {status}\n\n"));
        let server = server(&backend, "fastcgi_param HTTP_UPGRADE $http_upgrade;");
        let reply = get(&server, "Upgrade: foo\r\n");
        assert!(reply.starts_with("HTTP/1.1 502 "), "{status}: {reply}");
    }
}

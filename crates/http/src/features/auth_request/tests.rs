use crate::backend::testing::TestBackend;
use crate::h1::tests::Server;
use crate::testing::{TestSite, refused, site};

/// A site whose `/` is authorised by `/judge`, which has `answer` as its content.
fn judged_by(answer: &str, lines: &str) -> TestSite {
    site(&format!(
        "error_log log; server {{
            location / {{ auth_request /judge; {lines} empty_gif; }}
            location = /judge {{ {answer} }}
        }}"
    ))
}

#[test]
fn the_status_decides() {
    let table = [
        ("return 200 yes;", 200),
        ("return 204;", 200),
        ("return 299 maybe;", 200),
        ("return 401;", 401),
        ("return 403;", 403),
        ("return 302 /;", 500),
        ("error_page 404 =204 /there; return 404;", 200),
        ("internal; return 204;", 200),
        ("if ($request_uri = /) { return 403; } return 204;", 403),
        // A subrequest's access is not checked, and neither are the client's conditions.
        ("deny all; empty_gif;", 200),
    ];
    for (answer, status) in table {
        let reply = judged_by(answer, "").get_with("/", "If-Match: \"x\"\n");
        let status = if status == 200 { 412 } else { status };
        assert_eq!(reply.status(), status, "{answer}");
    }
    assert!(!judged_by("return 444;", "").get("/").replied);
}

#[test]
fn an_unexpected_status_is_logged() {
    let site = judged_by("error_log own; return 404;", "");
    assert_eq!(site.get("/a").status(), 500);
    assert_eq!(site.messages("log"), ["[error] auth request unexpected status: 404"]);
    let site = judged_by("error_log own; root /nowhere;", "");
    assert_eq!(site.get("/a").status(), 500);
    let log = site.log("log");
    let context = "request: \"GET /a HTTP/1.1\", subrequest: \"/judge\", host: \"localhost\"";
    assert!(log.contains("/nowhere/judge") && log.contains(context), "{log}");
    assert_eq!(log.matches("subrequest").count(), 1, "{log}");
}

#[test]
fn add_header_does_not_set_the_challenge() {
    let answer = "add_header WWW-Authenticate a always; auth_basic b; return 401;";
    // `add_header` applies to replies to the client only.
    assert_eq!(judged_by(answer, "").get("/").field("WWW-Authenticate"), None);
}

#[test]
fn satisfy_combines_it_with_other_checks() {
    let table = [
        ("satisfy all; allow all;", [200, 401, 403]),
        ("satisfy all; deny all;", [403, 403, 403]),
        ("satisfy any; allow all;", [200, 200, 200]),
        ("satisfy any; deny all;", [200, 401, 403]),
    ];
    for (lines, expected) in table {
        let statuses = ["return 204;", "return 401;", "return 403;"]
            .map(|answer| judged_by(answer, lines).get("/").status());
        assert_eq!(statuses, expected, "{lines}");
    }
}

#[test]
fn variables_keep_values_of_the_reply() {
    let site = site(
        "server {
            location /off { auth_request off; add_header X [$x]; return 200; }
            location = /judge { set $y $x; return 204; }
            auth_request /judge;
            auth_request_set $x $uri;
            auth_request_set $args a=$status;
            location / { set $y 1; log_not_found off; error_page 404 = @named; }
            location @named { auth_request off; return 200 $x,$args,$y,$request_method; }
        }",
    );
    assert_eq!(site.get("/a").body(), "/judge,a=204,,GET");
    assert_eq!(site.get("/off").field("X").unwrap(), "[]");
}

#[test]
fn the_subrequest_has_no_body() {
    let site = judged_by("if ($request_method = POST) { return 403; } return 204;", "");
    let post = |path: &str| format!("POST {path} HTTP/1.1\nHost: a\nContent-Length: 3\n\n");
    assert_eq!(site.send(&post("/")).status(), 403);
    let site = judged_by("client_max_body_size 2; return 204;", "client_max_body_size 0;");
    assert_eq!(site.send(&post("/")).status(), 500);
    let too_large = "[error] client intended to send too large body: 3 bytes";
    assert_eq!(site.messages("log"), [too_large, "[error] auth request unexpected status: 413"]);
}

#[test]
fn invalid_lines_are_refused() {
    refused("auth_request /a; auth_request off;", "\"auth_request\" directive is duplicate:1");
    refused("auth_request_set a b;", "invalid variable name \"a\":1");
    refused("auth_request_set $uri b;", "the duplicate \"uri\" variable:1");
    refused(
        "server { location / { if ($uri) { auth_request /a; } } }",
        "\"auth_request\" directive is not allowed here:1",
    );
}

/// A server that authorises every request by a backend.
fn judged_by_backend(backend: &TestBackend, lines: &str) -> Server {
    let address = backend.address();
    Server::start(format!(
        "error_log e.log info; server {{
            location /judge {{ proxy_pass http://{address}/ask?a; {lines} }}
            location /judged {{ auth_request /judge; empty_gif;
                auth_request_set $x $upstream_http_x; add_header X $x; }}
        }}"
    ))
}

#[test]
fn a_backend_authorises() {
    let backend = TestBackend::replying("HTTP/1.1 200 OK\nX: y\nContent-Length: 2\n\nhi");
    let server = judged_by_backend(&backend, "");
    for _ in 0..2 {
        let mut client = server.connect();
        client.head("GET /judged/1 HTTP/1.1\nHost: h\nCookie: c\nConnection: close\n");
        let reply = client.rest();
        assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("\r\nX: y\r\n"), "{reply}");
        let asked = backend.asked();
        assert!(asked.starts_with("GET /ask?a HTTP/1.1\nHost: 127.0.0.1"), "{asked}");
        assert!(asked.contains("\nCookie: c\n"), "{asked}");
    }
}

#[test]
fn a_silent_backend_times_out() {
    let backend = TestBackend::playing(|mut peer| peer.wait_for_end());
    let server = judged_by_backend(&backend, "proxy_read_timeout 100ms;");
    server.start_clock();
    let reply = server.ask("GET /judged HTTP/1.0\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 500 "), "{reply}");
    let log = server.log();
    assert!(log[0].starts_with("upstream timed out (110: Connection timed out)"), "{log:?}");
}

#[test]
fn a_hidden_challenge_is_passed_on() {
    let backend = TestBackend::replying(
        "HTTP/1.1 401 No\nWWW-Authenticate: Basic\nwww-authenticate: Digest\nContent-Length: 0\n\n",
    );
    for lines in ["", "proxy_hide_header WWW-Authenticate;"] {
        let server = judged_by_backend(&backend, lines);
        let reply = server.ask("GET /judged HTTP/1.0\r\n\r\n");
        assert!(reply.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{reply}");
        assert_eq!(reply.to_ascii_lowercase().matches("\r\nwww-authenticate: ").count(), 2);
    }
}

#[test]
fn a_subrequest_cannot_be_upgraded() {
    let backend = TestBackend::replying("HTTP/1.1 101 Switching\nUpgrade: x\n\n");
    let server = judged_by_backend(&backend, "");
    let request = "GET /judged HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n";
    assert_eq!(server.ask(request), "");
    let log = server.log();
    let line = log.iter().find(|line| line.starts_with("connection upgrade in subrequest"));
    let line = line.unwrap_or_else(|| panic!("{log:?}"));
    assert!(line.contains(", subrequest: \"/judge\", upstream: \"http://127.0.0.1:"), "{line}");
}

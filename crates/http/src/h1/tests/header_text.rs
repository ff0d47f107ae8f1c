//! A decoded path cannot add a line to a reply or to a request to a backend.

use super::Server;
use crate::backend::testing::{TestBackend, values};

/// Ends of paths that try to add a line.
const TAILS: [&str; 6] = [
    "%0d%0aX-Split:%20yes",
    "%0aX-Split:%20yes",
    "%0dX-Split:%20yes",
    "%0d%0a%0d%0aGET%20/split%20HTTP/1.1%0d%0aHost:%20x%0d%0a%0d%0a",
    "%0d%0a%20folded",
    "%00",
];

/// Directives that put a decoded path into replies.
const REPLIES: [&str; 33] = [
    "return 301 http://x$uri;",
    "return 302 http://x$uri;",
    "return 302 $uri;",
    "return 303 http://x/$1;",
    "return 307 http://x/$tail;",
    "return 308 http://x/?a=$uri;",
    "rewrite ^ http://x$uri;",
    "rewrite ^ http://x$uri permanent;",
    "rewrite ^/(.*)$ http://x/$1;",
    "rewrite ^/(.*)$ https://x/$1? redirect;",
    "error_page 404 http://x$uri; return 404;",
    "error_page 404 =301 http://x$uri; return 404;",
    "error_page 404 =307 http://x/$tail; return 404;",
    "auth_basic \"$uri\"; auth_basic_user_file users;",
    "add_header X $uri; return 200;",
    "add_header X $1 always; return 404;",
    "add_header X $tail; return 200;",
    "add_header X $mapped; return 200;",
    "add_header X a$document_uri; return 200;",
    "add_header X $request_filename; return 200;",
    "add_header Last-Modified $uri; return 200;",
    "add_header ETag $uri; return 200;",
    "set $v $uri; add_header X $v; return 200;",
    "if ($uri ~ (.*)) { add_header X $1; return 200; }",
    "add_header X $uri; proxy_pass http://BACKEND;",
    "add_trailer X $uri; proxy_pass http://BACKEND;",
    "proxy_redirect http://other http://x$uri; proxy_pass http://BACKEND;",
    "proxy_redirect ~^http://other(.*) $tail$1; proxy_pass http://BACKEND;",
    "proxy_cookie_path / $uri; proxy_pass http://BACKEND;",
    "proxy_cookie_domain d $uri; proxy_pass http://BACKEND;",
    "auth_request /asked; auth_request_set $v $uri; add_header X $v; return 200;",
    "charset $tail; default_type text/plain; return 200;",
    "proxy_intercept_errors on; error_page 404 http://x$uri; rewrite ^ /404 break; \
     proxy_pass http://BACKEND;",
];

/// Directives that put a decoded path into requests to the backend.
const REQUESTS: [&str; 20] = [
    "proxy_pass http://BACKEND$uri;",
    "proxy_pass http://BACKEND/$1;",
    "proxy_pass http://BACKEND/?a=$uri;",
    "proxy_pass http://BACKEND$uri$is_args$args;",
    "proxy_pass http://$tail;",
    "proxy_pass http://BACKEND; proxy_set_header A $uri;",
    "proxy_pass http://BACKEND; proxy_set_header A $1;",
    "proxy_pass http://BACKEND; proxy_set_header A a$tail;",
    "proxy_pass http://BACKEND; proxy_set_header A $mapped;",
    "proxy_pass http://BACKEND; proxy_set_header Host $uri;",
    "proxy_pass http://BACKEND; proxy_set_header Content-Length $uri;",
    "proxy_pass http://BACKEND; proxy_set_header Connection $uri;",
    "proxy_pass http://BACKEND; proxy_method $tail;",
    "proxy_pass http://BACKEND; set $args $uri;",
    "proxy_pass http://BACKEND; rewrite ^/(.*)$ /x?a=$1 break;",
    "proxy_pass http://BACKEND; rewrite ^/(.*)$ /x/$1 break;",
    "error_page 404 /passed?a=$uri; return 404;",
    "mirror /mirrored; return 200;",
    "auth_request /asked; return 200;",
    "proxy_http_version 1.0; proxy_pass http://BACKEND$uri;",
];

fn backend() -> TestBackend {
    TestBackend::answering(|request| {
        let status = if request.starts_with("GET /404") { "404 No" } else { "200 OK" };
        format!(
            "HTTP/1.1 {status}\nLocation: http://other/a\nSet-Cookie: a=b; path=/; domain=d\n\
             Transfer-Encoding: chunked\n\n1\r\na\r\n0\r\n\r\n"
        )
    })
}

fn server(backend: &TestBackend, line: &str) -> Server {
    let (line, address) = (line.replace("BACKEND", &backend.address()), backend.address());
    Server::start(format!(
        "error_log e.log; map $uri $mapped {{ ~(?<inner>/.*) $inner; }}
         server {{
             location ~ ^/way/(?<tail>(?s:.*)) {{ {line} }}
             location = /passed {{ proxy_pass http://{address}; }}
             location = /mirrored {{ internal; proxy_set_header A $mapped$tail;
                                     proxy_pass http://{address}; }}
             location = /asked {{ internal; proxy_set_header A $mapped$tail;
                                  proxy_pass http://{address}; }}
         }}"
    ))
}

fn request(tail: &str, version: &str) -> String {
    format!("GET /way/{tail} HTTP/{version}\r\nHost: h\r\nConnection: close\r\n\r\n")
}

/// Whether a reply contains an injected line or a second reply.
fn is_split(reply: &str) -> bool {
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((reply, ""));
    let is_odd = |line: &str| line.contains(['\r', '\n', '\0']) || line.starts_with("X-Split");
    let mut lines = head.split("\r\n");
    lines.any(is_odd) || body.contains("\r\nX-Split") || body.starts_with("GET ")
}

#[test]
fn no_reply_is_split() {
    for line in REPLIES {
        let backend = backend();
        let server = server(&backend, line);
        for tail in TAILS {
            for version in ["1.0", "1.1"] {
                let reply = server.ask(&request(tail, version));
                assert!(reply.starts_with("HTTP/1.1 "), "{line} {tail} {reply:?}");
                assert!(!is_split(&reply), "{line} {tail} {reply:?}");
            }
        }
        let reply = server.ask(&request("plain%20text", "1.1"));
        assert!(!reply.starts_with("HTTP/1.1 500 "), "{line} {reply:?}");
    }
}

#[test]
fn no_request_to_a_backend_is_split() {
    for line in REQUESTS {
        let backend = backend();
        let server = server(&backend, line);
        for tail in TAILS {
            let reply = server.ask(&request(tail, "1.1"));
            assert!(!is_split(&reply), "{line} {tail} {reply:?}");
        }
        // Every request that the backend received before this one must be whole.
        server.ask("GET /passed?end HTTP/1.0\r\n\r\n");
        loop {
            let asked = backend.asked();
            let (head, rest) = asked.split_once("\n\n").unwrap();
            let is_odd = |line: &str| line.contains(['\r', '\0']) || line.starts_with("X-Split");
            assert!(!head.lines().any(is_odd), "{line} {asked:?}");
            assert_eq!(head.lines().next().unwrap().split(' ').count(), 3, "{line} {asked:?}");
            assert!(rest.is_empty() && !head.starts_with("GET /split"), "{line} {asked:?}");
            if head.starts_with("GET /passed?end ") {
                break;
            }
        }
    }
}

#[test]
fn a_field_with_a_line_break_is_answered_with_500_and_logged() {
    let backend = backend();
    for (line, message) in [
        (
            "return 302 http://x$uri;",
            "header \"Location\" of the reply contains a line break or NUL",
        ),
        (
            "add_header X $uri; return 200;",
            "header \"X\" of the reply contains a line break or NUL",
        ),
        (
            "proxy_pass http://BACKEND; proxy_set_header A $uri;",
            "header \"A\" of the request contains a line break or NUL",
        ),
        (
            "proxy_pass http://BACKEND; set $args $uri;",
            "the URI to proxy contains a line break or NUL",
        ),
    ] {
        let server = server(&backend, line);
        let reply = server.ask(&request("%0aa", "1.1"));
        assert!(reply.starts_with("HTTP/1.1 500 Internal Server Error\r\n"), "{line} {reply}");
        assert_eq!(values(&reply, "X").len(), 0);
        let log = server.log();
        assert!(log.len() == 1 && log[0].starts_with(message), "{line} {log:?}");
    }
}

#[test]
fn a_trailer_with_a_line_break_is_dropped() {
    let backend = backend();
    let server =
        server(&backend, "add_trailer X $uri; add_trailer Y y; proxy_pass http://BACKEND;");
    let reply = server.ask(&request("%0aa", "1.1"));
    assert!(reply.ends_with("\r\n0\r\nY: y\r\n\r\n"), "{reply}");
    assert!(server.log()[0].starts_with("trailer \"X\" contains a line break or NUL"));
}

#[test]
fn a_multiline_value_is_sent_as_one_line() {
    let backend = backend();
    let policy = "\"default-src 'self';\n        img-src $arg_img\"";
    let lines =
        format!("add_header P {policy}; proxy_set_header Q {policy}; proxy_pass http://BACKEND;");
    let server = server(&backend, &lines);
    let reply = server.ask("GET /way/?img=* HTTP/1.0\r\n\r\n");
    assert_eq!(values(&reply, "P"), ["default-src 'self'; img-src *"]);
    assert!(backend.asked().contains("\nQ: default-src 'self'; img-src *\n"));
}

#[test]
fn a_space_does_not_end_the_target_of_a_request() {
    let backend = backend();
    let server = server(&backend, "proxy_pass http://BACKEND$uri;");
    server.ask(&request("a%20b%09%7f%c3%a9", "1.1"));
    assert!(backend.asked().starts_with("GET /way/a%20b%09%7F\u{e9} HTTP/1.1\n"));
}

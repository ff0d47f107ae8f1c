//! Values of the built-in variables.

use crate::testing::{TestSite, site};

fn answering(template: &str) -> TestSite {
    site(&format!(
        "server {{ server_name first second; location / {{ return 200 \"{template}\"; }} }}"
    ))
}

/// The value for a request of `GET /a%20b?x=1&Y=2 HTTP/1.1` with more header lines.
fn value(variable: &str, fields: &str) -> String {
    answering(&format!("[${variable}]")).get_with("/a?x=1&Y=2&z", fields).body()
}

#[test]
fn variables_of_the_request() {
    for (variable, expected) in [
        ("request", "GET /a?x=1&Y=2&z HTTP/1.1"),
        ("request_method", "GET"),
        ("request_uri", "/a?x=1&Y=2&z"),
        ("uri", "/a"),
        ("document_uri", "/a"),
        ("args", "x=1&Y=2&z"),
        ("query_string", "x=1&Y=2&z"),
        ("is_args", "?"),
        ("arg_x", "1"),
        ("arg_y", "2"),
        ("arg_z", ""),
        ("server_protocol", "HTTP/1.1"),
        ("host", "localhost"),
        ("server_name", "first"),
        ("is_request_port", ""),
        ("request_port", ""),
        ("pipe", "."),
        ("scheme", "http"),
        ("https", ""),
    ] {
        assert_eq!(value(variable, ""), format!("[{expected}]"), "${variable}");
    }
}

#[test]
fn variables_of_the_client() {
    let user = "Authorization: basic  bWU6cGFzczp3b3Jk\n";
    for (variable, expected) in [
        ("remote_addr", "127.0.0.1"),
        ("remote_port", "12345"),
        ("binary_remote_addr", "\x7f\0\0\x01"),
        ("remote_user", "me"),
        ("connection", "1"),
    ] {
        assert_eq!(value(variable, user), format!("[{expected}]"), "${variable}");
    }
    assert_eq!(value("remote_user", "Authorization: Bearer bWU6cGFzcw==\n"), "[]");
    assert_eq!(value("remote_user", "Authorization: Basic OnBhc3M=\n"), "[]");
}

#[test]
fn fields_of_the_request() {
    let fields = "Cookie: a=1; b = 2\nX-Two_parts: one\nx-two-parts: two\nCookie: c=3\n\
                  Content-Type: t\n";
    for (variable, expected) in [
        ("http_host", "localhost"),
        ("http_cookie", "a=1; b = 2; c=3"),
        ("cookie_a", "1"),
        ("cookie_b", "2"),
        ("cookie_C", "3"),
        ("cookie_d", ""),
        ("http_x_two_parts", "two"),
        ("content_type", "t"),
        ("http_none", ""),
    ] {
        assert_eq!(value(variable, fields), format!("[{expected}]"), "${variable}");
    }
}

#[test]
fn a_field_named_of_underscores_needs_underscores_in_headers() {
    for (underscores, fields, expected) in [
        ("off", "_: u\n", ""),
        ("off", "-: h\n", "h"),
        ("off", "_: u\n-: h\n", "h"),
        ("on", "_: u\n-: h\n", "u, h"),
    ] {
        let site = site(&format!(
            "server {{ ignore_invalid_headers off; underscores_in_headers {underscores}; \
             location / {{ return 200 $http__; }} }}"
        ));
        assert_eq!(site.get_with("/", fields).body(), expected, "{underscores} {fields:?}");
    }
}

#[test]
fn variables_of_the_reply() {
    let site = site(
        "log_format f '$status $sent_http_content_type $sent_http_content_length \
         $sent_http_connection $sent_http_none $sent_trailer_none $request_completion'; \
         server { access_log a.log f; location / { return 200 hello; } }",
    );
    site.get("/");
    assert_eq!(site.log("a.log"), "200 text/plain 5 keep-alive - - \n");
}

#[test]
fn variables_of_files() {
    let site = answering("$document_root $request_filename $realpath_root");
    let answer = site.get("/a");
    let body = answer.body();
    let words: Vec<&str> = body.split(' ').collect();
    assert!(words[0].ends_with("/html"));
    assert_eq!(words[1], format!("{}/a", words[0]));
    assert_eq!(words[2], std::fs::canonicalize(words[0]).unwrap().to_str().unwrap());
}

#[test]
fn request_id_is_constant_within_an_exchange() {
    let body = answering("$request_id $request_id").get("/").body();
    let (first, second) = body.split_once(' ').unwrap();
    assert_eq!((first.len(), first), (32, second));
}

#[test]
fn times_are_local_and_in_whole_seconds() {
    let body = answering("$time_iso8601|$time_local|$msec|$request_time|$connection_time").get("/");
    let lengths: Vec<usize> = body.body().split('|').map(str::len).collect();
    assert_eq!(lengths[..2], [25, 26]);
    assert_eq!(lengths[3..], [5, 5]);
}

#[test]
fn limit_rate_is_set_and_read_as_a_size() {
    let site = site("server { error_log e.log; set $limit_rate $arg_r; return 200 $limit_rate; }");
    assert_eq!(site.get("/?r=40k").body(), "40960");
    assert_eq!(site.get("/?r=x").body(), "0");
    assert!(site.log("e.log").contains("invalid $limit_rate \"x\""));
}

//! The debug log names the handler or filter that decided.

use crate::testing::{TestSite, site};

const SITE: &str = "
    error_log e.log debug;
    server {
        root html;
        location / { }
        location /denied { deny all; }
        location /return { return 200 hello; }
        location /moved { return 301 /elsewhere; }
        location /dropped { return 444; }
        location /try { try_files $uri/none /file.txt; }
        location /named { try_files $uri/none @named; }
        location @named { return 204; }
        location /rewritten { rewrite ^ /file.txt last; }
        location /asks { auth_request /denied; }
        location /granted { auth_request /return; }
        location /any { satisfy any; deny all; auth_request /return; }
        location /error { deny all; error_page 403 /file.txt; }
        location /counters { stub_status; }
        location /proxy { proxy_pass http://127.0.0.1:1; }
    }";

/// The logged decisions about a request.
fn decisions(site: &TestSite, target: &str, fields: &str) -> Vec<String> {
    site.forget("e.log");
    site.get_with(target, fields);
    observe::flush_all();
    let lines = site.messages("e.log").into_iter();
    let decided = lines.filter(|line| line.contains(" phase: ") || line.contains("filters: "));
    decided.map(|line| line.strip_prefix("[debug] ").unwrap().to_owned()).collect()
}

fn site_with_file() -> TestSite {
    let site = site(SITE);
    site.file("file.txt", "hello");
    site
}

#[test]
fn the_debug_log_names_the_handler_that_decided() {
    let site = site_with_file();
    let serves = "content phase: \"static_file\" answers with 200";
    let denies = "access phase: \"access\" refuses with 403";
    let returns = "rewrite phase: \"rewrite\" answers with 200";
    for (target, expected) in [
        ("/file.txt", &[serves][..]),
        ("/missing", &["content phase: \"static_file\" refuses with 404"]),
        ("/denied", &[denies]),
        ("/return", &[returns]),
        ("/moved", &["rewrite phase: \"rewrite\" answers with 301"]),
        ("/dropped", &["rewrite phase: \"rewrite\" closes the connection with 444"]),
        ("/try", &["precontent phase: \"try_files\" redirects to \"/file.txt\"", serves]),
        (
            "/named",
            &[
                "precontent phase: \"try_files\" redirects to \"@named\"",
                "rewrite phase: \"rewrite\" answers with 204",
            ],
        ),
        (
            "/rewritten",
            &["rewrite phase: \"rewrite\" looks for the location of \"/file.txt\"", serves],
        ),
        ("/error", &[denies, "content phase: \"static_file\" answers with 403"]),
        ("/counters", &["content phase: \"stub_status\" answers with 200"]),
    ] {
        assert_eq!(decisions(&site, target, ""), expected, "{target}");
    }
}

#[test]
fn a_handler_that_has_waited_is_named_once() {
    let site = site_with_file();
    let returns = "rewrite phase: \"rewrite\" answers with 200";
    let grants = "access phase: \"auth_request\" grants access";
    let missing = "content phase: \"static_file\" refuses with 404";
    let denied = "access phase: \"access\" refuses with 403";
    assert_eq!(decisions(&site, "/granted", ""), [returns, grants, missing]);
    assert_eq!(decisions(&site, "/any", ""), [denied, returns, grants, missing]);
    let refused = "content phase: \"proxy\" refuses with 502";
    assert_eq!(decisions(&site, "/proxy", ""), [refused]);
}

#[test]
fn the_debug_log_names_the_filter_that_replaced_the_reply() {
    let site = site_with_file();
    let serves = "content phase: \"static_file\" answers with 200";
    let range = "filters: \"range\" replaces the reply with 416";
    assert_eq!(decisions(&site, "/file.txt", "Range: bytes=9-\n"), [serves, range]);
    let condition = "filters: \"not_modified\" replaces the reply with 412";
    assert_eq!(decisions(&site, "/file.txt", "If-Match: \"x\"\n"), [serves, condition]);
}

#[test]
fn decisions_are_logged_at_level_debug_only() {
    let site = site("error_log e.log info; server { return 200 hello; }");
    site.get("/");
    assert_eq!(site.log("e.log"), "");
}

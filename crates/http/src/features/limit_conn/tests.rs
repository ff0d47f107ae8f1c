//! Counted exchanges, and messages in nginx's words.

use crate::testing::{TestSite, refused, site};

fn limited(lines: &str) -> TestSite {
    site(&format!(
        "limit_conn_zone $arg_a zone=a:1m; limit_conn_zone $arg_b zone=b:1m;
         log_format said $limit_conn_status;
         server {{ error_log e.log info; access_log a.log said; {lines} }}"
    ))
}

#[test]
fn a_request_counts_until_its_exchange_is_gone() {
    let site = limited("limit_conn a 2; location / { } location /other { limit_conn a 3; }");
    let (first, second) = (site.get("/?a=1"), site.get("/?a=1"));
    assert_eq!((first.status(), second.status()), (403, 403));
    assert_eq!(site.get("/?a=1").status(), 503);
    assert_eq!(site.get("/?a=2").status(), 403);
    assert_eq!(site.get("/").status(), 403);
    let third = site.get("/other?a=1");
    assert_eq!((third.status(), site.get("/other?a=1").status()), (404, 503));
    drop((first, second, third));
    assert_eq!(site.get("/?a=1").status(), 403);
    let said = "PASSED\nPASSED\nREJECTED\nPASSED\n-\nPASSED\nREJECTED\nPASSED\n";
    assert_eq!(site.log("a.log"), said);
}

#[test]
fn a_refused_request_counts_in_no_zone() {
    let site = limited("limit_conn a 1; limit_conn b 1;");
    let held = site.get("/?b=1");
    let both = site.get("/?a=1&b=1");
    assert_eq!((held.status(), both.status()), (403, 503));
    assert_eq!(site.get("/?a=1").status(), 403);
}

#[test]
fn status_level_and_dry_run() {
    let lines = "limit_conn a 1; limit_conn_status 429; limit_conn_log_level notice;";
    let site = limited(lines);
    let held = site.get("/?a=1");
    assert_eq!(site.get("/?a=1").status(), 429);
    assert!(site.log("e.log").contains("[notice]"), "{}", site.log("e.log"));
    assert!(site.log("e.log").contains("limiting connections by zone \"a\", client: "));
    drop(held);
    let site = limited(&format!("{lines} limit_conn_dry_run on;"));
    let held = site.get("/?a=1");
    assert_eq!((held.status(), site.get("/?a=1").status()), (403, 403));
    assert!(site.log("e.log").contains("limiting connections, dry run, by zone \"a\""));
    assert_eq!(site.log("a.log"), "PASSED\nREJECTED_DRY_RUN\n");
}

#[test]
fn a_key_too_long_is_not_counted() {
    let site = limited("limit_conn a 1;");
    let target = format!("/?a={}", "x".repeat(256));
    let _held = site.get(&target);
    assert_eq!(site.get(&target).status(), 403);
    assert!(site.log("e.log").contains("the value of the \"$arg_a\" key is more than 255 bytes: "));
}

#[test]
fn invalid_directives_are_refused_in_nginx_words() {
    let zone = "limit_conn_zone $arg_a zone=a:1m;";
    let server = |line: &str| format!("{zone} server {{ {line} }}");
    let table = [
        ("limit_conn_zone $arg_a a;".into(), "invalid parameter \"a\":1"),
        ("limit_conn_zone $arg_a zone=a:31k;".into(), "zone \"zone=a:31k\" is too small:1"),
        ("limit_conn_zone $arg_a zone=a:;".into(), "invalid zone size \"zone=a:\":1"),
        (
            format!("{zone} limit_conn_zone $arg_a zone=a:1m;"),
            "limit_conn_zone \"a\" is already bound to key \"$arg_a\":1",
        ),
        (server("limit_conn b 1;"), "zero size shared memory zone \"b\""),
        (server("limit_conn a 0;"), "invalid number of connections \"0\":1"),
        (server("limit_conn a x;"), "invalid number of connections \"x\":1"),
        (server("limit_conn a 65536;"), "connection limit must be less 65536:1"),
        (server("limit_conn a 1; limit_conn a 2;"), "\"limit_conn\" directive is duplicate:1"),
        (server("limit_conn_status 200;"), "value must be between 400 and 599:1"),
        (server("limit_conn_log_level debug;"), "invalid value \"debug\":1"),
    ];
    for (text, expected) in table {
        refused(&text, expected);
    }
}

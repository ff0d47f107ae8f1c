//! Limits of a site without sockets, and messages in nginx's words.

use crate::testing::{TestSite, refused, site};

/// A site with two zones, of one request per minute and of one per second.
fn limited(lines: &str) -> TestSite {
    site(&format!(
        "limit_req_zone $arg_a zone=a:1m rate=1r/m; limit_req_zone $arg_b zone=b:1m rate=1r/s;
         log_format said $limit_req_status;
         server {{ error_log e.log info; access_log a.log said; {lines} }}"
    ))
}

/// The statuses of requests with these arguments. Admitted requests get 404.
fn statuses(site: &TestSite, arguments: &[&str]) -> Vec<u16> {
    arguments.iter().map(|arguments| site.get(&format!("/?{arguments}")).status()).collect()
}

#[test]
fn requests_beyond_the_burst_are_refused() {
    let site = limited("limit_req zone=a burst=2 nodelay;");
    assert_eq!(statuses(&site, &["a=1"; 5]), [403, 403, 403, 503, 503]);
    assert_eq!(statuses(&site, &["a=2", "a=", "b=1"]), [403; 3]);
    let said = "PASSED\nPASSED\nPASSED\nREJECTED\nREJECTED\nPASSED\n-\n-\n";
    assert_eq!(site.log("a.log"), said);
    let messages = site.messages("e.log");
    let messages: Vec<_> = messages.iter().filter(|line| line.contains("limiting")).collect();
    assert_eq!(messages, ["[error] limiting requests, excess: 3.000 by zone \"a\""; 2]);
}

#[test]
fn limit_req_status_and_log_level_are_applied() {
    let site = limited("limit_req zone=a; limit_req_status 429; limit_req_log_level info;");
    assert_eq!(statuses(&site, &["a=1", "a=1"]), [403, 429]);
    assert!(site.log("e.log").contains("[info] "));
}

#[test]
fn a_request_refused_by_one_limit_counts_in_none() {
    let site = limited("limit_req zone=a; limit_req zone=b burst=1 nodelay;");
    assert_eq!(statuses(&site, &["a=1&b=1", "a=1&b=1"]), [403, 503]);
    // The refused request did not count in the other zone.
    assert_eq!(statuses(&site, &["b=1", "b=1", "a=2&b=1"]), [403, 503, 503]);
    // Neither did this one, although that limit was checked first and had admitted it.
    assert_eq!(statuses(&site, &["a=2", "a=2"]), [403, 503]);
}

#[test]
fn a_dry_run_refuses_and_delays_nothing() {
    let site = limited(
        "limit_req zone=b burst=1; limit_req_dry_run on; limit_req_log_level notice;
         error_log e.log info;",
    );
    assert_eq!(statuses(&site, &["b=1"; 3]), [403; 3]);
    assert_eq!(site.log("a.log"), "PASSED\nDELAYED_DRY_RUN\nREJECTED_DRY_RUN\n");
    let log = site.log("e.log");
    assert!(
        log.contains("[info] ") && log.contains("delaying request, dry run, excess: 1.000, by")
    );
    assert!(log.contains("limiting requests, dry run, excess: 2.000 by zone \"b\""), "{log}");
}

#[test]
fn a_key_too_long_is_not_counted() {
    let site = site(
        "map $uri $key { default $uri; } limit_req_zone $key$key zone=a:1m rate=1r/s;
         server { error_log e.log; limit_req zone=a; large_client_header_buffers 4 64k; }",
    );
    let path = format!("/{}", "x".repeat(33_000));
    assert_ne!(site.get(&path).status(), 503);
    assert_ne!(site.get(&path).status(), 503);
    assert!(
        site.log("e.log").contains("the value of the \"$key$key\" key is more than 65535 bytes")
    );
}

#[test]
fn an_error_page_is_not_limited_again() {
    let site = limited("limit_req zone=a; error_page 503 /page; location /page { return 200 p; }");
    assert_eq!(statuses(&site, &["a=1"]), [403]);
    let answer = site.get("/?a=1");
    assert_eq!((answer.status(), answer.body().as_str()), (503, "p"));
}

#[test]
fn invalid_directives_are_refused_in_nginx_words() {
    let zone = "limit_req_zone $arg_a zone=a:1m rate=1r/s;";
    let server = |line: &str| format!("{zone} server {{ {line} }}");
    let table = [
        ("limit_req_zone $arg_a zone=a rate=1r/s;".into(), "invalid zone size \"zone=a\":1"),
        ("limit_req_zone $arg_a zone=a:x rate=1r/s;".into(), "invalid zone size \"zone=a:x\":1"),
        ("limit_req_zone $arg_a zone=a:1k rate=1r/s;".into(), "zone \"zone=a:1k\" is too small:1"),
        ("limit_req_zone $arg_a zone=a:1m rate=0r/s;".into(), "invalid rate \"rate=0r/s\":1"),
        ("limit_req_zone $arg_a zone=a:1m rate=r/s;".into(), "invalid rate \"rate=r/s\":1"),
        ("limit_req_zone $arg_a zone=a:1m x;".into(), "invalid parameter \"x\":1"),
        (
            "limit_req_zone $arg_a rate=1r/s rate=1r/s;".into(),
            "\"limit_req_zone\" must have \"zone\" parameter:1",
        ),
        (
            "limit_req_zone $arg_a zone=:1m rate=1r/s;".into(),
            "\"limit_req_zone\" must have \"zone\" parameter:1",
        ),
        (
            format!("{zone} limit_req_zone $arg_b zone=a:1m rate=1r/s;"),
            "limit_req_zone \"a\" is already bound to key \"$arg_a\":1",
        ),
        (
            format!("{zone} limit_req_zone $arg_b zone=a:2m rate=1r/s;"),
            "the size 2097152 of shared memory zone \"a\" conflicts with already declared size \
             1048576:1",
        ),
        (
            format!("{zone} limit_conn_zone $arg_a zone=a:1m;"),
            "the shared memory zone \"a\" is already declared for a different use:1",
        ),
        (server("limit_req zone=b;"), "zero size shared memory zone \"b\""),
        (server("limit_req burst=1;"), "\"limit_req\" must have \"zone\" parameter:1"),
        (server("limit_req zone=a burst=0;"), "invalid burst value \"burst=0\":1"),
        (server("limit_req zone=a delay=x;"), "invalid delay value \"delay=x\":1"),
        (server("limit_req zone=a x;"), "invalid parameter \"x\":1"),
        (server("limit_req zone=a; limit_req zone=a;"), "\"limit_req\" directive is duplicate:1"),
        (server("limit_req_status 399;"), "value must be between 400 and 599:1"),
        (server("limit_req_status 600;"), "value must be between 400 and 599:1"),
        (server("limit_req_log_level crit;"), "invalid value \"crit\":1"),
    ];
    for (text, expected) in table {
        refused(&text, expected);
    }
}

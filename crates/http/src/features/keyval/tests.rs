//! Whole sites whose answers depend on tables that change, and errors of the directives.

use std::sync::Arc;

use net::clock::monotonic_ms;
use net::testing::{advance, simulate, stop_clock};
use session::keyval::{KeyvalRefusal, KeyvalRequest, KeyvalZone};

use crate::testing::{TestSite, lenient_site, refusal, refusal_of_lenient, site};

fn zone(site: &TestSite, name: &str) -> Arc<KeyvalZone> {
    site.zones
        .all()
        .into_iter()
        .find(|zone: &Arc<KeyvalZone>| *zone.name == *name.as_bytes())
        .unwrap()
}

fn post(zone: &KeyvalZone, body: &str) -> Result<(), KeyvalRefusal> {
    let request = KeyvalRequest::add(body.as_bytes())?;
    zone.accept(&request, monotonic_ms()).map(drop)
}

fn patch(zone: &KeyvalZone, body: &str) -> Result<(), KeyvalRefusal> {
    let request = KeyvalRequest::modify(body.as_bytes())?;
    zone.accept(&request, monotonic_ms()).map(drop)
}

fn pass_ms(time_ms: u64) {
    simulate(advance(time_ms)).unwrap();
}

#[test]
fn an_address_is_blocked_until_its_time_has_passed() {
    stop_clock();
    let site = site(
        "keyval_zone zone=blocked:32k type=ip timeout=60s;
         keyval $http_client $blocked zone=blocked;
         server { if ($blocked) { return 403 $blocked; } return 200 welcome; }",
    );
    let ask = |client: &str| site.get_with("/", &format!("Client: {client}\n")).status();
    let zone = zone(&site, "blocked");
    assert_eq!(ask("192.0.2.7"), 200);
    post(&zone, r#"{"192.0.2.0/24": "network", "192.0.2.8": "0", "2001:db8::/32": "1"}"#).unwrap();
    assert_eq!(["192.0.2.7", "192.0.2.8", "192.0.3.1"].map(ask), [403, 200, 200]);
    assert_eq!(["2001:db8::1", "::ffff:192.0.2.7", "junk", ""].map(ask), [403, 403, 200, 200]);
    patch(&zone, r#"{"192.0.2.8": {"value": "alone", "expire": 10000}}"#).unwrap();
    assert_eq!(ask("192.0.2.8"), 403);
    pass_ms(9_999);
    assert_eq!(site.get_with("/", "Client: 192.0.2.8\n").body(), "alone");
    pass_ms(1);
    assert_eq!(site.get_with("/", "Client: 192.0.2.8\n").body(), "network");
    pass_ms(49_999);
    assert_eq!(["192.0.2.8", "2001:db8::1"].map(ask), [403, 403]);
    pass_ms(1);
    assert_eq!(["192.0.2.8", "2001:db8::1"].map(ask), [200, 200]);
}

#[test]
fn the_longest_key_with_which_a_text_begins_counts() {
    let site = site(
        "keyval_zone zone=paths:32k type=prefix;
         keyval $uri $backend zone=paths;
         server { return 200 [$backend]; }",
    );
    let ask = |path: &str| site.get(path).body();
    let zone = zone(&site, "paths");
    post(&zone, r#"{"/": "all", "/api/": "api", "/api/v2": "new"}"#).unwrap();
    assert_eq!(
        ["/", "/api", "/api/v1", "/api/v2", "/api/v23/x"].map(ask),
        ["[all]", "[all]", "[api]", "[new]", "[new]"]
    );
    patch(&zone, r#"{"/api/v2": null}"#).unwrap();
    patch(&zone, r#"{"/": null}"#).unwrap();
    assert_eq!(["/api/v2", "/"].map(ask), ["[api]", "[]"]);
}

#[test]
fn a_text_is_looked_up_once_in_a_request() {
    let site = site(
        "keyval $arg_a$arg_b $v zone=z;
         keyval_zone zone=z:32k;
         map $v $is_known { '' no; default yes; }
         server { set $first $v; set $args a=other; return 200 $first,$v,$is_known; }",
    );
    let ask = |target: &str| site.get(target).body();
    assert_eq!(ask("/?a=k&b=ey"), ",,no");
    post(&zone(&site, "z"), r#"{"key": "value", "other": "x"}"#).unwrap();
    assert_eq!(ask("/?a=k&b=ey"), "value,value,yes");
    assert_eq!(ask("/?a=Key"), ",,no");
}

#[test]
fn invalid_directives_are_refused() {
    let table = [
        ("keyval_zone zone=a;", "invalid zone size \"zone=a\":1"),
        ("keyval_zone zone=a:1k;", "zone \"zone=a:1k\" is too small:1"),
        ("keyval_zone type=ip;", "\"keyval_zone\" must have \"zone\" parameter:1"),
        ("keyval_zone zone=:32k;", "\"keyval_zone\" must have \"zone\" parameter:1"),
        ("keyval_zone zone=a:32k type=regex;", "invalid parameter \"type=regex\":1"),
        ("keyval_zone zone=a:32k timeout=0;", "invalid timeout \"timeout=0\":1"),
        ("keyval_zone zone=a:32k timeout=x;", "invalid timeout \"timeout=x\":1"),
        ("keyval_zone zone=a:32k state=;", "invalid parameter \"state=\":1"),
        ("keyval_zone zone=a:32k synch;", "invalid parameter \"synch\":1"),
        (
            "keyval_zone zone=a:32k timeout=1h sync;",
            "parameter \"sync\" without the address of a store is not supported:1",
        ),
        (
            "keyval_zone zone=a:32k sync=10.0.0.9:6379;",
            "no \"valkey://\" or \"valkeys://\" in the address of the store of \"keyval_zone\":1",
        ),
        (
            "keyval_zone zone=a:32k;\nkeyval_zone zone=a:32k;",
            "keyval zone \"a\" is declared twice:2",
        ),
        (
            "keyval_zone zone=a:32k;\nlimit_conn_zone $uri zone=a:32k;",
            "the shared memory zone \"a\" is already declared for a different use:2",
        ),
        ("keyval $uri $v zone=a;", "zero size shared memory zone \"a\""),
        ("keyval_zone zone=a:32k;\nkeyval $uri v zone=a;", "invalid variable name \"v\":2"),
        ("keyval $uri $v zone=;", "invalid parameter \"zone=\":1"),
        ("keyval $uri $v a;", "invalid parameter \"a\":1"),
        ("keyval_zone zone=a:32k;\nkeyval $v $uri zone=a;", "the duplicate \"uri\" variable:2"),
    ];
    for (text, expected) in table {
        assert_eq!(refusal(text), expected, "{text}");
    }
    let with_sync = "keyval_zone zone=a:32k timeout=1h sync; keyval $uri $v zone=a;";
    let site = lenient_site(&format!("{with_sync} server {{ return 200 [$v]; }}"));
    assert_eq!((site.lacks, site.get("/").body().as_str()), (1, "[]"));
    let ignored = "parameter \"sync\" without the address of a store is not supported: ignored:1";
    assert_eq!(site.warnings, [ignored]);
    assert!(refusal_of_lenient("keyval_zone zone=a;").contains("invalid zone size"));
}

//! Names of variables: which are known, which may be defined, and which definition wins.

use crate::testing::{refused, site};

#[test]
fn names_have_no_case() {
    let site = site("server { set $MiXed 1; return 200 $mixed$URI$Arg_A; }");
    assert_eq!(site.get("/u?A=2").body(), "1/u2");
}

#[test]
fn unknown_variables_are_refused() {
    refused("server { return 200 $a; }", "unknown \"a\" variable");
    refused("map $a $b { } server { }", "unknown \"a\" variable");
    refused("geo $a $b { } server { }", "unknown \"a\" variable");
    refused("server { return 200 $cookie; }", "unknown \"cookie\" variable");
}

#[test]
fn built_in_variables_cannot_be_defined() {
    let table = [
        ("map a $uri { }", "the duplicate \"uri\" variable:1"),
        ("geo $Status { }", "the duplicate \"Status\" variable:1"),
        ("split_clients a $host { * a; }", "the duplicate \"host\" variable:1"),
        ("server { set $request_id a; }", "the duplicate \"request_id\" variable:1"),
        ("server { location ~ (?<scheme>a) { } }", "the duplicate \"scheme\" variable:1"),
        ("server { server_name ~(?<msec>a); }", "the duplicate \"msec\" variable:1"),
    ];
    for (text, expected) in table {
        refused(text, expected);
    }
}

#[test]
fn a_definition_beats_a_prefix_and_a_set() {
    let site = site(
        "map $arg_a $arg_b { 1 map; }
         map $arg_a $c { 1 map; }
         server {
             location /set { set $c set; return 200 $c; }
             location / { return 200 $arg_b|$c; }
         }",
    );
    assert_eq!(site.get("/?a=1&b=2").body(), "map|map");
    assert_eq!(site.get("/set?a=1").body(), "set");
}

#[test]
fn the_last_definition_wins() {
    let site = site(
        "map $arg_a $b { default first; }
         map $arg_a $b { default second; }
         server { return 200 $b; }",
    );
    assert_eq!(site.get("/").body(), "second");
}

#[test]
fn a_cycle_is_empty_and_logged() {
    let site = site(
        "error_log log;
         map $b $a { default a$b; }
         map $a $b { default b$a; }
         server { return 200 $a; }",
    );
    let body = site.get("/").body();
    assert!(body.starts_with("ab") && body.len() <= 101, "{body}");
    let messages = site.messages("log");
    assert!(messages[0].starts_with("[error] cycle while evaluating variable \""), "{messages:?}");
}

//! Lookups, and errors and warnings in nginx's words.

use crate::testing::{refused, site};

/// Checks the values of a `geo` block with these lines over `$arg_a`.
fn lookups(lines: &str, cases: &[(&str, &str)]) {
    let site = site(&format!("geo $arg_a $v {{ {lines} }} server {{ return 200 [$v]; }}"));
    for (address, expected) in cases {
        let body = site.get(&format!("/?a={address}")).body();
        assert_eq!(body, format!("[{expected}]"), "{lines} {address}");
    }
}

#[test]
fn the_smallest_network_wins() {
    lookups(
        "10.1.0.0/16 b; 10.0.0.0/8 a; 10.1.2.0/24 c; 10.1.2.3 d; 10.255.0.0/16 e;",
        &[
            ("9.255.255.255", ""),
            ("10.0.0.0", "a"),
            ("10.0.255.255", "a"),
            ("10.1.0.0", "b"),
            ("10.1.1.255", "b"),
            ("10.1.2.2", "c"),
            ("10.1.2.3", "d"),
            ("10.1.2.4", "c"),
            ("10.1.3.0", "b"),
            ("10.2.0.0", "a"),
            ("10.255.255.255", "e"),
            ("11.0.0.0", ""),
            ("::1", ""),
            ("junk", ""),
        ],
    );
}

#[test]
fn networks_of_both_families() {
    let lines = "default d; 255.255.255.255 none; ::1 loopback; 2001:db8::/32 test;
                 192.0.2.0/24 test; 2001:db8:0:1::/64 inner; ffff::/16 high;";
    lookups(
        lines,
        &[
            ("::1", "loopback"),
            ("::2", "d"),
            ("2001:0DB8::1", "test"),
            ("2001:db8:0:1::1", "inner"),
            ("2001:db8:0:2::1", "test"),
            ("2001:db9::", "d"),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "high"),
            ("::ffff:192.0.2.1", "test"),
            ("192.0.2.255", "test"),
            ("255.255.255.254", "d"),
            ("255.255.255.255", "none"),
            ("junk", "none"),
            ("", "none"),
        ],
    );
}

#[test]
fn networks_deleted_and_replaced() {
    let lines = "0.0.0.0/0 world; 127.0.0.0/8 loopback; delete 127.0.0.0/8; ::/0 six;
                 10.0.0.0/8 old; 10.0.0.0/8 new;";
    lookups(lines, &[("127.0.0.1", "world"), ("10.0.0.1", "new"), ("::1", "six")]);
}

#[test]
fn ranges() {
    let lines = "ranges; default d;
        127.0.0.0-127.0.0.255 t; 127.0.0.1-127.0.0.2 t2; 127.0.0.1-127.0.0.1 l;
        10.10.3.0-10.11.2.255 foo; 10.12.3.0-10.13.2.255 foo2; delete 10.10.3.0-10.11.2.255;
        192.0.2.0-192.0.2.9 a; 192.0.2.0-192.0.2.3 b; 192.0.2.6-192.0.2.9 c;
        255.255.255.0-255.255.255.254 end;";
    lookups(
        lines,
        &[
            ("126.255.255.255", "d"),
            ("127.0.0.0", "t"),
            ("127.0.0.1", "l"),
            ("127.0.0.2", "t2"),
            ("127.0.0.3", "t"),
            ("127.0.0.255", "t"),
            ("127.0.1.0", "d"),
            ("10.11.2.1", "d"),
            ("10.13.2.1", "foo2"),
            ("10.12.2.255", "d"),
            ("192.0.2.3", "b"),
            ("192.0.2.4", "a"),
            ("192.0.2.6", "c"),
            ("255.255.255.254", "end"),
            ("255.255.255.255", "d"),
            ("::ffff:127.0.0.1", "l"),
            ("::1", "d"),
            ("junk", "d"),
        ],
    );
}

#[test]
fn the_default_is_the_client_address() {
    let site = site(
        "geo $v { default d; 127.0.0.0/8 loopback; 192.0.2.0/24 test; }
         geo $p { default d; proxy 127.0.0.1; 127.0.0.0/8 loopback; 192.0.2.0/24 test; }
         geo $r { proxy_recursive; proxy 127.0.0.1; 127.0.0.0/8 loopback; 192.0.2.0/24 test; }
         server { return 200 $v,$p,$r; }",
    );
    let ask = |fields: &str| site.get_with("/", fields).body();
    assert_eq!(ask(""), "loopback,loopback,loopback");
    assert_eq!(ask("X-Forwarded-For: 192.0.2.1\n"), "loopback,test,test");
    assert_eq!(ask("X-Forwarded-For: 10.0.0.1, 192.0.2.1\n"), "loopback,test,test");
    assert_eq!(ask("X-Forwarded-For: 192.0.2.1, 127.0.0.1\n"), "loopback,loopback,test");
}

#[test]
fn looked_up_once_unless_volatile() {
    let site = site(
        "geo $uri $kept { default d; }
         geo $arg_a $fresh { volatile; default d; 10.0.0.0/8 ten; }
         geo $arg_a $cached { default d; 10.0.0.0/8 ten; }
         server {
             set $before $fresh$cached;
             set $args a=10.0.0.1;
             return 200 $before,$fresh$cached;
         }",
    );
    assert_eq!(site.get("/").body(), "dd,tend");
}

#[test]
fn warnings() {
    let site = site(
        "geo $a {
             10.0.0.1/8 a;
             10.0.0.0/8 b;
             delete 11.0.0.0/8;
             default x;
             default y;
         }
         geo $b {
             ranges;
             default x;
             default y;
             10.0.0.0-10.1.255.255 x;
             10.0.0.0-10.1.255.255 z;
             delete 10.0.0.1-10.0.0.2;
         }",
    );
    let expected = [
        "low address bits of 10.0.0.1/8 are meaningless:2",
        "duplicate network \"10.0.0.0/8\", value: \"b\", old value: \"a\":3",
        "no network \"11.0.0.0/8\" to delete:4",
        "duplicate network \"default\", value: \"y\", old value: \"x\":6",
        "duplicate network \"default\", value: \"y\", old value: \"x\":6",
        "duplicate default geo range value: \"y\", old value: \"x\":11",
        "duplicate range \"10.0.0.0-10.1.255.255\", value: \"z\", old value: \"x\":13",
        "no address range \"10.0.0.1-10.0.0.2\" to delete:14",
    ];
    assert_eq!(site.warnings, expected);
}

#[test]
fn invalid_directives_are_refused_in_nginx_words() {
    let table = [
        ("a { }", "invalid variable name \"a\":1"),
        ("a $a { }", "invalid variable name \"a\":1"),
        ("$a b { }", "invalid variable name \"b\":1"),
        ("$a {\n a;\n}", "invalid number of the geo parameters:2"),
        ("$a {\n a b c;\n}", "invalid number of the geo parameters:2"),
        ("$a {\n a b;\n}", "invalid network \"a\":2"),
        ("$a {\n 10.0.0.0/33 b;\n}", "invalid network \"10.0.0.0/33\":2"),
        ("$a {\n delete b;\n}", "invalid network \"b\":2"),
        ("$a {\n proxy b;\n}", "invalid network \"b\":2"),
        (
            "$a {\n default a;\n ranges;\n}",
            "the \"ranges\" directive must be the first directive inside \"geo\" block:3",
        ),
        ("$a {\n ranges;\n 10.0.0.0/8 a;\n}", "invalid range \"10.0.0.0/8\":3"),
        ("$a {\n ranges;\n 10.0.0.1-10.0.0.0 a;\n}", "invalid range \"10.0.0.1-10.0.0.0\":3"),
        (
            "$a {\n ranges;\n 10.0.0.0-255.255.255.255 a;\n}",
            "invalid range \"10.0.0.0-255.255.255.255\":3",
        ),
        (
            "$a {\n ranges;\n 10.0.0.5-10.0.1.0 a;\n 10.0.0.0-10.0.0.9 b;\n}",
            "range \"10.0.0.0-10.0.0.9\" overlaps \"10.0.0.5-10.0.1.0\":4",
        ),
        (
            "$a {\n ranges;\n 10.0.0.5-10.2.1.0 a;\n 10.2.0.0-10.3.0.9 b;\n}",
            "range \"10.2.0.0-10.3.0.9\" overlaps \"10.2.0.0-10.2.1.0\":4",
        ),
        ("$a {\n 10.0.0.0/8 { }\n}", "unexpected \"{\":2"),
    ];
    for (text, expected) in table {
        refused(&format!("geo {text}"), expected);
    }
}

//! Lookups, and errors in nginx's words.

use crate::testing::{refused, site};

/// Checks the values of a map with these lines over `$arg_a`.
fn lookups(lines: &str, cases: &[(&str, &str)]) {
    let site = site(&format!("map $arg_a $v {{ {lines} }} server {{ return 200 $v; }}"));
    for (text, expected) in cases {
        assert_eq!(site.get(&format!("/?a={text}")).body(), *expected, "{lines} {text}");
    }
}

#[test]
fn names_have_no_case() {
    lookups(
        "foo 1; BAR 2; \"\" none; default 3;",
        &[("foo", "1"), ("FOO", "1"), ("bar", "2"), ("", "none"), ("foo.", "3"), ("fo", "3")],
    );
    lookups("foo 1;", &[("foo", "1"), ("bar", "")]);
}

#[test]
fn patterns_come_after_names_in_their_order() {
    lookups(
        "~^a(?<n>.)c$ 1$n$1; ~*^A.C$ 2; abc 3; ~^a 4; ~. 5; ~^$ 6;",
        &[
            ("axc", "1xx"),
            ("aXC", "2"),
            ("axd", "4"),
            ("abc", "3"),
            ("b", "5"),
            // An empty text matches no pattern.
            ("", ""),
        ],
    );
    lookups("~*^A.C$ 2;", &[("axc", "2")]);
}

#[test]
fn special_words() {
    lookups(
        "\\default 1; \\hostnames 2; \\~a 3; default 5; volatile;",
        &[("default", "1"), ("hostnames", "2"), ("~a", "3"), ("x", "5")],
    );
}

#[test]
fn hostnames() {
    let lines = "*.before 0; hostnames; default 5; example.com 1; example.* 2; *.example.com 3;
                 .dot.example.com 4;";
    lookups(
        lines,
        &[
            ("EXAMPLE.COM", "1"),
            ("example.com.", "1"),
            ("example.org", "2"),
            ("www.example.com.", "3"),
            ("dot.example.com", "4"),
            ("www.dot.example.com", "4"),
            ("example", "5"),
            // Before `hostnames`, this is a plain name.
            ("a.before", "5"),
            ("*.before", "0"),
        ],
    );
}

#[test]
fn values_have_variables() {
    let site = site(
        "map $arg_a $x { default $y:foo; var foo:$y; $z dollar; }
         map $arg_a$arg_b $y { default bar; same baz; }
         server { return 200 $x; }",
    );
    assert_eq!(site.get("/").body(), "bar:foo");
    assert_eq!(site.get("/?a=var").body(), "foo:bar");
    assert_eq!(site.get("/?a=sa&b=me").body(), "baz:foo");
    // Names contain no variables.
    assert_eq!(site.get("/?a=$z").body(), "dollar");
}

#[test]
fn looked_up_once_unless_volatile() {
    let site = site(
        "map $uri $kept { default $uri; }
         map $uri $fresh { volatile; default $uri; }
         server {
             set $before $kept$fresh;
             rewrite ^ /new;
             return 200 $before,$kept$fresh;
         }",
    );
    assert_eq!(site.get("/old").body(), "/old/old,/old/new");
}

#[test]
fn a_match_in_a_map_is_the_last_match() {
    let site = site(
        "map $arg_a $m { ~(.)$ x; default y; }
         server { location ~ ^/(.*) { return 200 $1$m$1; } }",
    );
    assert_eq!(site.get("/p?a=end").body(), "pxd");
    assert_eq!(site.get("/p").body(), "pyp");
}

#[test]
fn many_names() {
    let lines: String = (0..5000).map(|n| format!("name{n} {}; ", n * 2)).collect();
    lookups(&lines, &[("name0", "0"), ("NAME4999", "9998"), ("name5000", "")]);
}

#[test]
fn invalid_directives_are_refused_in_nginx_words() {
    let table = [
        ("$arg_a a { }", "invalid variable name \"a\":1"),
        ("$arg_a $ { }", "invalid variable name \"$\":1"),
        ("$ $a { }", "invalid variable name:1"),
        ("$arg_a $b;", "directive \"map\" has no opening \"{\":1"),
        ("$arg_a { }", "invalid number of arguments in \"map\" directive:1"),
        ("a $a {\n a;\n}", "invalid number of the map parameters:2"),
        ("a $a {\n a b c;\n}", "invalid number of the map parameters:2"),
        (
            "a $a {\n hostnames on;\n hostnames;\n default;\n}",
            "invalid number of the map parameters:4",
        ),
        ("a $a {\n default a;\n default a;\n}", "duplicate default map parameter:3"),
        ("a $a {\n FOO a;\n foo b;\n}", "conflicting parameter \"foo\":3"),
        ("a $a {\n foo a;\n FOO b;\n}", "conflicting parameter \"foo\":3"),
        ("a $a {\n hostnames;\n .a.b c;\n A.b c;\n}", "conflicting parameter \"a.b\":4"),
        ("a $a {\n hostnames;\n A.*.b c;\n}", "invalid hostname or wildcard \"A.*.b\":3"),
        ("a $a {\n hostnames;\n a..b c;\n}", "invalid hostname or wildcard \"a..b\":3"),
        ("a $a {\n ~( a;\n}", "pcre2_compile() failed: missing closing parenthesis in \"(\":2"),
        ("a $a {\n a ${;\n}", "invalid variable name:2"),
        ("a $a {\n a { }\n}", "unexpected \"{\":2"),
    ];
    for (text, expected) in table {
        refused(&format!("map {text}"), expected);
    }
}

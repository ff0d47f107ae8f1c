//! The server and the location of a request, and configurations that are refused.

use crate::testing::{refused, site};

#[test]
fn locations_are_chosen_in_nginx_order() {
    let site = site(
        "server {
             location / { return 200 prefix; }
             location = / { return 200 exact; }
             location /a {
                 return 200 a;
                 location /a/b { return 200 ab; }
                 location ~ c$ { return 200 ac; }
             }
             location ^~ /final { return 200 final; }
             location ~ \\.php$ { return 200 php; }
             location ~* \\.PNG$ { return 200 png; }
             location =/joined { return 200 joined; }
             location ^~/fin { return 200 fin; }
             location ~^/joinedx { return 200 regex; }
             location ~*^/JOINEDY { return 200 caseless; }
         }",
    );
    let table = [
        ("/", "exact"),
        ("/x", "prefix"),
        ("/a", "a"),
        ("/a/b", "ab"),
        ("/ac", "ac"),
        ("/a.php", "php"),
        ("/a/b.php", "php"),
        ("/a/c.phpc", "ac"),
        ("/final.php", "final"),
        ("/fin.php", "fin"),
        ("/x.png", "png"),
        ("/x.pNg", "png"),
        ("/x.PHP", "prefix"),
        ("/joined", "joined"),
        ("/joinedx", "regex"),
        ("/joinedy", "caseless"),
    ];
    for (path, expected) in table {
        assert_eq!(site.get(path).body(), expected, "{path}");
    }
}

#[test]
fn servers_are_chosen_by_name() {
    let site = site(
        "server { listen 80; server_name a.org; return 200 a; }
         server { listen 80 default_server; server_name *.b.org .c.org; return 200 wild; }
         server { listen 80; return 200 nameless; }
         server { listen 80; server_name ~^d\\d ~^E; return 200 pattern; }
         server { listen 80; server_name www.*; return 200 trailing; }",
    );
    let ask = |host: &str| site.send(&format!("GET / HTTP/1.1\nHost: {host}\n\n")).body();
    let table = [
        ("a.org", "a"),
        ("A.ORG", "a"),
        ("x.b.org", "wild"),
        ("c.org", "wild"),
        ("x.c.org", "wild"),
        ("b.org", "wild"),
        ("d1.org", "pattern"),
        ("e.org", "pattern"),
        ("www.d1.org", "trailing"),
        ("unknown", "wild"),
    ];
    for (host, expected) in table {
        assert_eq!(ask(host), expected, "{host}");
    }
    // A request without a host goes to the server without a name, not to the default server.
    assert_eq!(site.send("GET / HTTP/1.0\n\n").body(), "nameless");
}

#[test]
fn captures_of_server_names_are_set_with_a_single_server() {
    let site = site("server { server_name ~^(?<sub>.)\\. x; return 200 [$sub]; }");
    let ask = |host: &str| site.send(&format!("GET / HTTP/1.1\nHost: {host}\n\n")).body();
    assert_eq!(ask("a.org"), "[a]");
    assert_eq!(ask("x"), "[]");
}

#[test]
fn a_later_default_server_does_not_hide_names() {
    let site = site(
        "server { listen 80; server_name a; return 200 a; }
         server { listen 80 default_server; server_name b; return 200 b; }",
    );
    let ask = |host: &str| site.send(&format!("GET / HTTP/1.1\nHost: {host}\n\n")).body();
    assert_eq!((ask("a"), ask("b"), ask("c")), ("a".into(), "b".into(), "b".into()));
}

#[test]
fn locations_are_refused_in_nginx_words() {
    let table = [
        ("location;", "directive \"location\" has no opening \"{\""),
        ("location { }", "invalid number of arguments in \"location\" directive"),
        ("location = / a { }", "invalid number of arguments in \"location\" directive"),
        ("location ! / { }", "invalid location modifier \"!\""),
        ("location \"\" / { }", "invalid location modifier \"\""),
        ("location ~( { }", "pcre2_compile() failed: missing closing parenthesis in \"(\""),
        (
            "location = /a { location /a/b { } }",
            "location \"/a/b\" cannot be inside the exact location \"/a\"",
        ),
        (
            "location @a { location ~ b { } }",
            "location \"b\" cannot be inside the named location \"@a\"",
        ),
        (
            "location /a { location @b { } }",
            "named location \"@b\" can be on the server level only",
        ),
        ("location /a { location /b { } }", "location \"/b\" is outside location \"/a\""),
        ("location ~ a$ { location /b { } }", "location \"/b\" is outside location \"a$\""),
        ("location /a { server { } }", "\"server\" directive is not allowed here"),
        (
            "location /b { } location = /b { } location /a { } location /a { } location /b { }",
            "duplicate location \"/a\" in",
        ),
    ];
    for (lines, expected) in table {
        let text = format!("server {{\n {lines}\n}}");
        refused(&text, &format!("{expected}:2").replace(" in:", ":"));
    }
}

#[test]
fn server_names_are_refused_in_nginx_words() {
    let table = [
        ("server_name *;", "server name \"*\" is invalid:2"),
        ("server_name *a.b;", "server name \"*a.b\" is invalid:2"),
        ("server_name .;", "server name \".\" is invalid:2"),
        ("server_name ~;", "empty regex in server name \"~\":2"),
        ("server_name ~(;", "pcre2_compile() failed: missing closing parenthesis in \"(\":2"),
        ("server_name a.*.b;", "invalid server name or wildcard \"a.*.b\" on 0.0.0.0:80"),
        ("server_name a..b;", "invalid server name or wildcard \"a..b\" on 0.0.0.0:80"),
    ];
    for (line, expected) in table {
        let other = "server { listen 80; server_name other; }";
        refused(&format!("server {{ listen 80;\n {line} }} {other}"), expected);
    }
    // With one server, names have no effect and are not checked.
    assert!(site("server { server_name a a a.*.b; }").warnings.is_empty());
}

#[test]
fn conflicting_server_names_cause_warnings() {
    let site = site(
        "server { listen 80; server_name a .b; }
         server { listen 80; server_name A c/d b; }
         server { listen 80; }
         server { listen 80; }",
    );
    let expected = [
        "server name \"c/d\" has suspicious symbols:2",
        "conflicting server name \"a\" on 0.0.0.0:80, ignored",
        "conflicting server name \"b\" on 0.0.0.0:80, ignored",
        "conflicting server name \"\" on 0.0.0.0:80, ignored",
    ];
    assert_eq!(site.warnings, expected);
}

#[test]
fn pool_numbers_survive_a_reload_that_adds_locations() {
    let numbers = |locations: &str| {
        let site = site(&format!(
            "server {{ listen 80; location /a {{ }} {locations} location /b {{ if ($uri) {{ }} }} }}
             server {{ listen 81; location /a {{ }} }}"
        ));
        let numbers = site.generation.locations.iter().map(|place| place.pool_number);
        numbers.collect::<std::collections::BTreeSet<_>>()
    };
    let (before, after) = (numbers(""), numbers("location /new { }"));
    assert_eq!((before.len(), after.len()), (6, 7), "all are different");
    assert!(before.is_subset(&after));
}

/// nginx's directives of `ngx_conf_set_bitmask_slot`, as far as they are supported.
#[test]
fn lines_of_a_bitmask_directive_are_combined() {
    let table = [
        ("proxy_next_upstream", "error", "non_idempotent"),
        ("fastcgi_next_upstream", "error", "http_500"),
        ("scgi_next_upstream", "error", "http_404"),
        ("uwsgi_next_upstream", "off", "http_404"),
        ("memcached_next_upstream", "error", "not_found"),
        ("proxy_ignore_headers", "Set-Cookie", "Cache-Control"),
        ("fastcgi_ignore_headers", "X-Accel-Redirect", "Vary"),
        ("scgi_ignore_headers", "Expires", "Vary"),
        ("uwsgi_ignore_headers", "Expires", "Vary"),
        ("ssl_protocols", "TLSv1.2", "TLSv1.3"),
        ("proxy_ssl_protocols", "TLSv1.3", "TLSv1.2"),
        ("uwsgi_ssl_protocols", "TLSv1.2", "TLSv1.3"),
        ("gzip_proxied", "off", "any"),
        ("keepalive_disable", "none", "safari"),
        ("userid_flags", "off", "secure"),
    ];
    for (name, one, other) in table {
        let lines = format!("{name} {one};\n{name} {other};\nserver {{ }}");
        assert_eq!(site(&lines).warnings, [""; 0], "{lines}");
        let again = format!("{name} {one};\n{name} {other} {one};\nserver {{ }}");
        let warning = format!("duplicate value \"{one}\":2");
        assert_eq!(site(&again).warnings, [warning], "{again}");
        let wrong = format!("{name} {one};\n{name} nothing;");
        refused(&wrong, "invalid value \"nothing\":2");
    }
}

#[test]
fn repeated_lines_that_nginx_accepts_cause_no_warning() {
    for lines in [
        "upstream u { zone a 64k; zone b 64k; server 127.0.0.1:1; }",
        "server { location / { fastcgi_split_path_info ^(a)(b)$; fastcgi_split_path_info (c)(d); \
         } }",
    ] {
        assert_eq!(site(lines).warnings, [""; 0], "{lines}");
    }
}

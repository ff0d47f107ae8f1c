use crate::testing::{TestSite, refused, site};

/// A server with the names `localhost` and a regular expression, and these lines in its location.
fn server(lines: &str) -> TestSite {
    site(&format!(
        "server {{
             server_name localhost ~^s[0-9]$;
             location / {{ {lines} return 200 <$invalid_referer>; }}
         }}"
    ))
}

fn is_valid(site: &TestSite, referer: &str) -> bool {
    let body = match referer {
        "-" => site.get("/").body(),
        referer => site.get_with("/", &format!("Referer: {referer}\n")).body(),
    };
    assert!(body == "<>" || body == "<1>", "{body}");
    body == "<>"
}

#[test]
fn referers_are_compared_with_names() {
    for (lines, valid, invalid) in [
        ("", "- http://www.example.org x", ""),
        (
            "valid_referers www.example.org;",
            "http://www.example.org https://WWW.example.org/a HTTP://www.example.org:80/b",
            "- x www.example.org http://example.org http://www.example.org.a ftp://www.example.org",
        ),
        ("valid_referers none www.example.org;", "-", "x http://www.example.com"),
        ("valid_referers blocked www.example.org;", "x http://a.b XXX://example.com/", "-"),
        (
            "valid_referers www.example.org/path *.example.com/;",
            "http://www.example.org/path/a http://www.example.org:80/paths http://a.example.com/",
            "http://www.example.org http://www.example.org/Path http://www.example.org/pat \
             http://a.example.com",
        ),
        (
            "valid_referers .example.org www.*;",
            "http://example.org http://a.b.example.org http://www.example.com",
            "http://anexample.org http://wwww.example.com",
        ),
        (
            "valid_referers ~example\\.(org|net)/x ~(?<uri>[0-9])$;",
            "http://a.EXAMPLE.org/x http://example.net/xy http://example.com/0",
            "http://example.org http://example.org/y -",
        ),
        (
            "valid_referers server_names;",
            "http://localhost/ http://LOCALHOST:8080",
            "http://www.localhost http://s10.example",
        ),
    ] {
        let site = server(lines);
        for referer in valid.split_whitespace() {
            assert!(is_valid(&site, referer), "{lines} {referer}");
        }
        for referer in invalid.split_whitespace() {
            assert!(!is_valid(&site, referer), "{lines} {referer}");
        }
    }
}

#[test]
fn servers_regular_expressions_see_the_host() {
    let site = server("valid_referers server_names;");
    assert!(is_valid(&site, "http://s1/a-long-path") && is_valid(&site, "http://S1:80/a"));
    assert!(!is_valid(&site, "http://s12/a-long-path"));
}

#[test]
fn hosts_over_256_bytes_are_invalid() {
    let site = server("valid_referers ~.*;");
    assert!(is_valid(&site, &format!("http://{}/b", "a".repeat(256))));
    assert!(!is_valid(&site, &format!("http://{}/b", "a".repeat(257))));
}

#[test]
fn names_replace_outer_names_but_keep_outer_expressions() {
    let site = site(
        "server {
             valid_referers none names.example ~^pattern; server_name me ~^mine;
             return 200 <$invalid_referer>;
         }
         server {
             server_name other; valid_referers none server_names ~^pattern;
             location / { return 200 <$invalid_referer>; }
             location /own { valid_referers own.example; return 200 <$invalid_referer>; }
             location /own/silent { return 200 <$invalid_referer>; }
         }",
    );
    let ask = |path: &str, referer: &str| {
        let head = format!("GET {path} HTTP/1.1\nHost: other\nReferer: {referer}\n\n");
        site.send(&head).body() == "<>"
    };
    assert!(ask("/", "http://other/") && ask("/", "http://pattern.example"));
    assert!(ask("/own", "http://own.example") && ask("/own", "http://pattern.example"));
    assert!(!ask("/own", "http://other/a/path") && !ask("/own/silent", "http://own.example"));
    assert_eq!(site.send("GET /own HTTP/1.1\nHost: other\n\n").body(), "<1>");
    assert_eq!(site.send("GET / HTTP/1.1\nHost: me\n\n").body(), "<>");
}

#[test]
fn set_may_change_it() {
    let site = site("server { set $invalid_referer x; return 200 $invalid_referer; }");
    assert_eq!(site.get("/").body(), "x");
}

#[test]
fn invalid_directives_are_refused() {
    let refused = |lines: &str, message: &str| {
        refused(&format!("server {{ server_name a; valid_referers {lines}; }}"), message);
    };
    refused("''", "invalid referer \"\":1");
    refused("~", "empty regex in \"~\":1");
    refused("a.b*", "invalid hostname or wildcard \"a.b*\":1");
    refused("b.c B.C", "conflicting parameter \"b.c\":1");
    let without = "the \"none\" or \"blocked\" referers are specified in the \"valid_referers\" \
                   directive without any valid referer";
    refused("none", without);
    refused("blocked ~a", without);
}

use std::net::{IpAddr, SocketAddr};

use crate::testing::{TestAnswer, TestSite, refused, site};

/// Sends a request from that address; `unix:` for a Unix socket.
fn ask(site: &TestSite, ip: &str) -> TestAnswer {
    let ip = match ip {
        "unix:" => None,
        ip => Some(ip.parse::<IpAddr>().unwrap()),
    };
    site.send_from(ip.map(|ip| SocketAddr::new(ip, 1)), "GET /a HTTP/1.1\nHost: h\n\n")
}

/// The clients that these rules of a location refuse.
fn denied<'i>(rules: &str, ips: &[&'i str]) -> Vec<&'i str> {
    let site = site(&format!("server {{ location / {{ {rules} }} }}"));
    site.file("a", "");
    ips.iter().copied().filter(|ip| ask(&site, ip).status() == 403).collect()
}

const IPS: [&str; 5] = ["10.1.2.3", "192.0.2.1", "2001:db8::1", "::ffff:10.1.2.3", "unix:"];

#[test]
fn the_first_matching_rule_decides() {
    for (rules, expected) in [
        ("allow 10.0.0.0/8; deny all;", &["192.0.2.1", "2001:db8::1", "unix:"][..]),
        ("deny 10.0.0.0/8; allow all;", &["10.1.2.3", "::ffff:10.1.2.3"]),
        ("deny 10.1.2.3;", &["10.1.2.3", "::ffff:10.1.2.3"]),
        ("allow all; deny all;", &[]),
        ("deny all; allow all;", &IPS),
        ("allow 2001:db8::/32; deny all;", &["10.1.2.3", "192.0.2.1", "::ffff:10.1.2.3", "unix:"]),
        ("deny unix:;", &["unix:"]),
        ("allow unix:; deny all;", &["10.1.2.3", "192.0.2.1", "2001:db8::1", "::ffff:10.1.2.3"]),
        ("deny 0.0.0.0/0;", &["10.1.2.3", "192.0.2.1", "::ffff:10.1.2.3"]),
        // Without IPv4 rules, IPv4-mapped addresses are matched as IPv6.
        ("deny ::/0;", &["2001:db8::1", "::ffff:10.1.2.3"]),
    ] {
        assert_eq!(denied(rules, &IPS), expected, "{rules}");
    }
}

#[test]
fn a_refusal_is_logged() {
    let site = site("error_log log; server { deny 10.0.0.0/8; }");
    site.file("a", "");
    assert_eq!(ask(&site, "10.0.0.1").status(), 403);
    assert_eq!(ask(&site, "192.0.2.1").status(), 200);
    assert_eq!(site.messages("log"), ["[error] access forbidden by rule"]);
}

#[test]
fn rules_of_a_block_replace_outer_ones() {
    let site = site(
        "deny all; server {
             location /a { allow 10.0.0.1; }
             location /a/silent { }
         }",
    );
    for (path, ip, status) in [
        ("/a", "10.0.0.1", 404),
        ("/a", "10.0.0.2", 404),
        ("/a/silent", "10.0.0.1", 403),
        ("/b", "10.0.0.1", 403),
    ] {
        let peer = Some(SocketAddr::new(ip.parse().unwrap(), 1));
        let head = format!("GET {path} HTTP/1.1\nHost: h\n\n");
        assert_eq!(site.send_from(peer, &head).status(), status, "{path} {ip}");
    }
}

#[test]
fn limit_except_limits_other_methods() {
    let site = site("server { location / { limit_except GET { deny all; } } }");
    site.file("a", "");
    assert_eq!(ask(&site, "10.0.0.1").status(), 200);
    assert_eq!(site.send("POST /a HTTP/1.1\nHost: h\n\n").status(), 403);
}

#[test]
fn limit_except_applies_in_named_locations() {
    let site = site(
        "server {
             error_page 404 = @missing;
             location /tried { try_files $uri @limited; }
             location /missing { return 404; }
             location @limited { limit_except GET { deny all; } return 200 tried; }
             location @missing { limit_except GET { deny all; } return 200 missing; }
         }",
    );
    for (path, answer) in [("/tried", "tried"), ("/missing", "missing")] {
        assert_eq!(site.get(path).body(), answer, "GET {path}");
        let refused = site.send(&format!("DELETE {path} HTTP/1.1\nHost: h\n\n"));
        assert_eq!(refused.status(), 403, "DELETE {path}");
    }
}

#[test]
fn a_location_has_one_limit_except() {
    refused(
        "server { location / { limit_except GET { deny all; } limit_except POST { deny all; } } }",
        "\"limit_except\" directive is duplicate:1",
    );
}

#[test]
fn an_error_page_is_not_refused_again() {
    let site =
        site("error_log log; server { deny all; error_page 403 /e; location /e { allow all; } }");
    site.file("e", "sorry");
    let answer = ask(&site, "10.0.0.1");
    assert_eq!((answer.status(), answer.body().as_str()), (403, "sorry"));
}

#[test]
fn invalid_directives_are_refused() {
    refused("server { allow 10.0.0.0/33; }", "invalid parameter \"10.0.0.0/33\":1");
    refused("deny localhost;", "invalid parameter \"localhost\":1");
    refused("deny ALL;", "invalid parameter \"ALL\":1");
    let site = site("server { deny 10.0.0.1/8; }");
    assert_eq!(site.warnings, ["low address bits of 10.0.0.1/8 are meaningless:1"]);
}

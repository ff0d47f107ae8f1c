//! Clients of trusted proxies, and errors in nginx's words.

use crate::testing::{TestSite, refused, site};

/// A site that answers with the client.
fn asked(lines: &str) -> TestSite {
    site(&format!(
        "log_format all '$remote_addr:$remote_port $realip_remote_addr:$realip_remote_port';
         geo $where {{ default d; 192.0.2.0/24 test; 127.0.0.0/8 loopback; }}
         server {{ access_log a.log all; error_log e.log info; {lines}
             location / {{ return 200 $remote_addr,$remote_port,$where; }}
             location /none {{ }}
         }}"
    ))
}

fn client(lines: &str, fields: &str) -> String {
    asked(lines).get_with("/", fields).body()
}

const LOOPBACK: &str = "127.0.0.1,12345,loopback";

#[test]
fn a_trusted_proxy_is_believed() {
    let table = [
        ("", "X-Real-IP: 192.0.2.1\n", LOOPBACK),
        ("set_real_ip_from 10.0.0.0/8;", "X-Real-IP: 192.0.2.1\n", LOOPBACK),
        ("set_real_ip_from 127.0.0.0/8;", "", LOOPBACK),
        ("set_real_ip_from 127.0.0.0/8;", "X-Real-IP: junk\n", LOOPBACK),
        ("set_real_ip_from 127.0.0.0/8;", "X-Real-IP: 192.0.2.1\n", "192.0.2.1,,test"),
        ("set_real_ip_from localhost;", "X-Real-IP: 192.0.2.1:80\n", "192.0.2.1,80,test"),
        ("set_real_ip_from 0.0.0.0/0;", "X-Real-IP: [::1]:80\n", "::1,80,d"),
        ("set_real_ip_from unix:;", "X-Real-IP: 192.0.2.1\n", LOOPBACK),
    ];
    for (lines, fields, expected) in table {
        assert_eq!(client(lines, fields), expected, "{lines} {fields}");
    }
}

#[test]
fn addresses_are_read_from_fields() {
    let trust = "set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8;";
    let forwarded = "X-Forwarded-For: 192.0.2.1, 192.0.2.2\nX-Forwarded-For: 10.0.0.1\n";
    let table = [
        ("real_ip_header X-Forwarded-For;", forwarded, "10.0.0.1,,d"),
        ("real_ip_header X-Forwarded-For; real_ip_recursive on;", forwarded, "192.0.2.2,,test"),
        ("real_ip_header x-forwarded-for;", forwarded, "192.0.2.2,,test"),
        ("real_ip_header X-Client;", "x-CLIENT: 192.0.2.3\nX-Client: 1\n", "192.0.2.3,,test"),
        ("real_ip_header proxy_protocol;", forwarded, LOOPBACK),
    ];
    for (lines, fields, expected) in table {
        assert_eq!(client(&format!("{trust} {lines}"), fields), expected, "{lines}");
    }
}

#[test]
fn the_first_address_found_is_kept() {
    let lines = "set_real_ip_from 127.0.0.1; location /a { set_real_ip_from 192.0.2.1;
                 real_ip_header X-Other; return 200 $remote_addr; }";
    let fields = "X-Real-IP: 192.0.2.1\nX-Other: 192.0.2.2\n";
    assert_eq!(asked(lines).get_with("/a", fields).body(), "192.0.2.1");
    // `return` runs before the handler of the location, files after it.
    let lines = "location /b { set_real_ip_from 127.0.0.1; add_header X $remote_addr always; }";
    let answer = asked(lines).get_with("/b", fields);
    assert_eq!((answer.status(), answer.field("X").unwrap().as_str()), (404, "192.0.2.1"));
}

#[test]
fn logs_contain_both_addresses() {
    let site = asked("set_real_ip_from 127.0.0.1;");
    assert_eq!(site.get_with("/none", "X-Real-IP: 192.0.2.1:80\n").status(), 404);
    assert_eq!(site.log("a.log"), "192.0.2.1:80 127.0.0.1:12345\n");
    assert!(site.log("e.log").contains(", client: 192.0.2.1, "), "{}", site.log("e.log"));
    // The next request on the connection is from the proxy itself.
    site.get("/");
    assert!(site.log("a.log").ends_with("\n127.0.0.1:12345 127.0.0.1:12345\n"));
}

#[test]
fn nginx_words() {
    let warned = site("server { set_real_ip_from 10.0.0.1/8; }").warnings;
    assert_eq!(warned, ["low address bits of 10.0.0.1/8 are meaningless:1"]);
    let table = [
        (
            "set_real_ip_from no.such.invalid;",
            "host not found in set_real_ip_from \"no.such.invalid\":1",
        ),
        ("real_ip_header a; real_ip_header b;", "\"real_ip_header\" directive is duplicate:1"),
        (
            "real_ip_recursive 1;",
            "invalid value \"1\" in \"real_ip_recursive\" directive, \
             it must be \"on\" or \"off\":1",
        ),
    ];
    for (line, expected) in table {
        refused(&format!("server {{ {line} }}"), expected);
    }
}

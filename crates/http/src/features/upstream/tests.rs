use crate::testing::{refusal, refused, site};

#[test]
fn blocks_are_checked_as_in_nginx() {
    let table = [
        ("upstream u { }", "no servers are inside upstream:1"),
        ("upstream u { server }", "unexpected \"}\":1"),
        (
            "server { location / { proxy_pass http://u:80; } } upstream u { server 127.0.0.1; }",
            "upstream \"u\" may not have port 80:1",
        ),
        ("upstream u { server a b; }", "invalid parameter \"b\":1"),
        (
            "upstream u { server 127.0.0.1; } upstream U { server 127.0.0.1; }",
            "duplicate upstream \"U\":1",
        ),
        ("upstream u { server 127.0.0.1 backup; }", "no servers in upstream \"u\":1"),
        ("upstream u { server 127.0.0.1:0; }", "invalid port in upstream \"127.0.0.1:0\":1"),
        ("upstream u { server 127.0.0.1 weight=0; }", "invalid parameter \"weight=0\":1"),
        ("upstream u { server 127.0.0.1 max_fails=x; }", "invalid parameter \"max_fails=x\":1"),
        (
            "upstream u { server 127.0.0.1; keepalive x; }",
            "invalid value \"x\" in \"keepalive\" directive:1",
        ),
        ("upstream u { server 127.0.0.1; zone u 1k; }", "zone \"u\" is too small:1"),
        ("upstream u { server 127.0.0.1; zone u x; }", "invalid zone size \"x\":1"),
        (
            "upstream u { server 127.0.0.1; listen 80; }",
            "\"listen\" directive is not allowed here:1",
        ),
        (
            "upstream u { server 127.0.0.1; server; }",
            "invalid number of arguments in \"server\" directive:1",
        ),
        (
            "server { upstream u { server 127.0.0.1; } }",
            "\"upstream\" directive is not allowed here:1",
        ),
    ];
    for (text, expected) in table {
        refused(text, expected);
    }
}

#[test]
fn unknown_hosts_are_down_or_refused() {
    let warning = "host not found in upstream \"does-not-exist.invalid\":1";
    for text in [
        "upstream u { server does-not-exist.invalid; }",
        "server { location / { proxy_pass http://does-not-exist.invalid; } }",
    ] {
        assert_eq!(site(text).warnings, [warning]);
        assert_eq!(refusal(&format!("{text} upstream_host_not_found refuse;")), warning);
    }
}

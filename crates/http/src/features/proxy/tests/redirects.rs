//! `proxy_redirect`

use crate::backend::testing::{TestBackend, echoed, echoing};
use crate::h1::tests::Server;
use crate::testing::refused;

/// `Location` and `Refresh` as a location rewrites them.
fn check(locations: impl Fn(&TestBackend) -> String, rows: &[(&str, &str, &str)]) {
    for name in ["Location", "Refresh"] {
        let backend = echoing(name);
        let address = backend.address();
        let server =
            Server::start(format!("server {{ port_in_redirect off; {} }}", locations(&backend)));
        for (target, value, expected) in rows {
            let prefix = if name == "Refresh" { "7; URL=" } else { "" };
            let sent = format!("{prefix}{}", value.replace("{}", &address));
            let completed = match expected.strip_prefix('/') {
                Some(path) if name == "Location" && *expected != *value => {
                    format!("http://h/{path}")
                }
                _ => format!("{prefix}{}", expected.replace("{}", &address)),
            };
            assert_eq!(echoed(&server, target, name, &sent), completed, "{name}: {value}");
        }
    }
}

#[test]
fn by_default_the_location_replaces_the_backend() {
    let locations = |backend: &TestBackend| {
        let address = backend.address();
        format!(
            "location / {{ proxy_pass http://{address}; }}
             location /a/ {{ proxy_pass http://{address}/b/; }}
             location /c/ {{ proxy_pass http://{address}/; proxy_redirect default; }}
             location /off/ {{ proxy_pass http://{address}/; proxy_redirect off; }}
             location /var/ {{ set $b {address}; proxy_pass http://$b/; }}"
        )
    };
    check(
        locations,
        &[
            ("/", "http://{}/x", "/x"),
            ("/", "http://{}x", "http://{}x"),
            ("/", "HTTP://{}/x", "HTTP://{}/x"),
            ("/", "/x", "/x"),
            ("/a/", "http://{}/b/x?y", "/a/x?y"),
            ("/a/", "http://{}/x", "http://{}/x"),
            ("/c/", "http://{}/x", "/c/x"),
            ("/off/", "http://{}/x", "http://{}/x"),
            ("/var/", "http://{}/x", "http://{}/x"),
        ],
    );
}

#[test]
fn beginnings_patterns_and_variables() {
    let locations = |backend: &TestBackend| {
        let address = backend.address();
        format!(
            "location / {{
                 proxy_pass http://{address};
                 proxy_redirect http://one/ https://other/;
                 proxy_redirect http://$arg_host/ /$arg_path/;
                 proxy_redirect ~^http://(\\w+)/two /$1;
                 proxy_redirect ~*^http://(?<name>\\w+)/three/ $name;
                 location /inner {{ proxy_pass http://{address}; }}
             }}"
        )
    };
    check(
        locations,
        &[
            ("/", "http://one/x", "https://other/x"),
            ("/?host=h2&path=p", "http://h2/x", "/p/x"),
            ("/", "http://b/two/x", "/b"),
            ("/", "HTTP://b/two/x", "HTTP://b/two/x"),
            ("/", "HTTP://b/three/x", "b"),
            // A line of the location replaces the default, also in blocks inside.
            ("/", "http://{}/x", "http://{}/x"),
            ("/inner", "http://one/x", "https://other/x"),
        ],
    );
}

#[test]
fn a_refresh_without_a_url_stays() {
    let backend = echoing("Refresh");
    let address = backend.address();
    let server = Server::start(format!(
        "server {{ location / {{ proxy_pass http://{address}; proxy_redirect ~. /x; }} }}"
    ));
    assert_eq!(echoed(&server, "/", "Refresh", "7"), "7");
    assert_eq!(echoed(&server, "/", "Refresh", "7;url=y"), "7;url=/x");
}

#[test]
fn refusals() {
    let location = |lines: &str| format!("server {{ location /a/ {{ {lines} }} }}");
    for (lines, message) in [
        ("proxy_redirect on;", "invalid parameter \"on\":1"),
        ("proxy_redirect off; proxy_redirect a b;", "\"proxy_redirect\" directive is duplicate:1"),
        ("proxy_redirect a b; proxy_redirect off;", "\"proxy_redirect\" directive is duplicate:1"),
        (
            "proxy_redirect default; proxy_pass http://127.0.0.1;",
            "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive:1",
        ),
        (
            "proxy_pass http://127.0.0.1; location /a/b { proxy_redirect default; }",
            "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive:1",
        ),
        (
            "proxy_pass http://$host; proxy_redirect default;",
            "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with \
             variables:1",
        ),
    ] {
        refused(&location(lines), message);
    }
}

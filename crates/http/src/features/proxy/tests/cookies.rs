//! `proxy_cookie_domain`, `proxy_cookie_path`, `proxy_cookie_flags`

use crate::backend::testing::{echoed, echoing};
use crate::h1::tests::Server;
use crate::testing::refused;

fn check(lines: &str, target: &str, rows: &[(&str, &str)]) {
    let backend = echoing("Set-Cookie");
    let address = backend.address();
    let server = Server::start(format!(
        "server {{ {lines} location / {{ proxy_pass http://{address}; }} }}"
    ));
    for (cookie, expected) in rows {
        assert_eq!(echoed(&server, target, "Set-Cookie", cookie), *expected, "{lines} {cookie}");
    }
}

#[test]
fn domains() {
    check(
        "proxy_cookie_domain www.example.org .example.com; proxy_cookie_domain .$arg_d $host;
         proxy_cookie_domain ~^(\\w+)\\.old$ $1.new;",
        "/?d=d.org",
        &[
            ("a=b; domain=www.example.org", "a=b; domain=example.com"),
            ("a=b; Domain=.WWW.Example.Org; x", "a=b; Domain=.example.com; x"),
            ("a=b;Secure;  domain = www.example.org ;y=", "a=b; Secure; domain=example.com; y="),
            ("a=b; domain=xwww.example.org", "a=b; domain=xwww.example.org"),
            ("a=b; domain=d.org", "a=b; domain=h"),
            ("a=b; domain=SUB.OLD", "a=b; domain=SUB.new"),
            ("a=b; domain", "a=b; domain"),
            ("a; domain=www.example.org", "a; domain=www.example.org"),
            ("domain=www.example.org; x", "domain=www.example.org; x"),
        ],
    );
}

#[test]
fn paths() {
    check(
        "proxy_cookie_path /one /uno; proxy_cookie_path $arg_p /dos;
         proxy_cookie_path ~^/(three) /$1/$1; proxy_cookie_path ~*^/four /cuatro;",
        "/?p=/two",
        &[
            ("a=b; path=/one/x", "a=b; path=/uno/x"),
            ("a=b;  PATH=/two; HttpOnly", "a=b; PATH=/dos; HttpOnly"),
            ("a=b; path=/three/x", "a=b; path=/three/three"),
            ("a=b; path=/THREE", "a=b; path=/THREE"),
            ("a=b; path=/FOUR/x", "a=b; path=/cuatro"),
            ("a=b; Path=/else;x", "a=b; Path=/else;x"),
        ],
    );
}

#[test]
fn flags() {
    check(
        "proxy_cookie_flags a secure httponly samesite=strict;
         proxy_cookie_flags b nosecure nohttponly nosamesite;
         proxy_cookie_flags c $arg_flag;
         proxy_cookie_flags ~^d samesite=Lax samesite=none;",
        "/?flag=Secure",
        &[
            ("a=1", "a=1; Secure; HttpOnly; SameSite=Strict"),
            ("A=1; secure; httponly", "A=1; secure; httponly; SameSite=Strict"),
            ("a=1;samesite=lax;x", "a=1; SameSite=Strict; x; Secure; HttpOnly"),
            ("a=1; samesite=STRICT", "a=1; samesite=STRICT; Secure; HttpOnly"),
            ("b=1; Secure; x=y; HttpOnly; SameSite=None", "b=1; x=y"),
            ("b=1;x", "b=1; x"),
            ("c=1;x", "c=1; x; Secure"),
            ("D2=1; SameSite=x", "D2=1; SameSite=Lax; SameSite=None"),
            ("e=1;x", "e=1;x"),
            ("a", "a"),
        ],
    );
    check("proxy_cookie_flags c $arg_flag;", "/?flag=none", &[("c=1;x", "c=1;x")]);
}

#[test]
fn refusals() {
    for (lines, message) in [
        ("proxy_cookie_domain on;", "invalid parameter \"on\":1"),
        (
            "proxy_cookie_path a b; proxy_cookie_path off;",
            "\"proxy_cookie_path\" directive is duplicate:1",
        ),
        (
            "proxy_cookie_flags off; proxy_cookie_flags a secure;",
            "\"proxy_cookie_flags\" directive is duplicate:1",
        ),
        (
            "proxy_cookie_flags a b c d e;",
            "invalid number of arguments in \"proxy_cookie_flags\" directive:1",
        ),
    ] {
        refused(&format!("server {{ {lines} }}"), message);
    }
}

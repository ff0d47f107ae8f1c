use std::collections::HashMap;

use conf::{Values, VariableId};

use crate::testing::{ask, group, lease, load, short};
use crate::{Ask, Attempt, ServerChoice};

const NOW: u64 = 1_000_000;

/// Variables with fixed values, by number.
struct Fixed(HashMap<u32, &'static str>);

impl Values for Fixed {
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
        let value = self.0.get(&id.0);
        out.extend_from_slice(value.unwrap_or(&"").as_bytes());
        value.is_some()
    }
    fn capture(&mut self, _: u8, _: &mut Vec<u8>) {}
}

fn bound(id: &str) -> Ask<'_> {
    Ask { sticky: Some(id.as_bytes()), now_ms: NOW, ..Ask::default() }
}

const THREE: &str = "server 10.0.0.1 route=a; server 10.0.0.2 route=b; server 10.0.0.3;";

#[test]
fn every_method_keeps_a_request_with_its_server() {
    let methods = ["", "least_conn;", "ip_hash;", "hash $k;", "hash $k consistent;", "random;"];
    for method in methods {
        let group = group(&format!("{method} {THREE} sticky route $r;"));
        for _ in 0..5 {
            assert_eq!(short(&lease(ask(&group, bound("b")))), "2", "{method}");
        }
        // The MD5 of "10.0.0.3:80" is the name of the server without a route.
        let sid = String::from_utf8(crate::server::sid(b"10.0.0.3:80").to_vec()).unwrap();
        assert_eq!(short(&lease(ask(&group, bound(&sid)))), "3", "{method}");
    }
}

#[test]
fn the_name_of_a_server_is_the_md5_of_its_address() {
    assert_eq!(&*crate::server::sid(b"127.0.0.1:8081"), md5_of_shell(b"127.0.0.1:8081"));
}

/// The MD5 by coreutils, if they are installed.
fn md5_of_shell(text: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(text).unwrap();
    let script = format!("printf %s {text} | md5sum | cut -c1-32 | tr -d '\\n'");
    std::process::Command::new("sh").args(["-c", &script]).output().unwrap().stdout
}

#[test]
fn unknown_and_unusable_servers_are_ignored() {
    let group = group(&format!("{THREE} sticky route $r;"));
    let names: Vec<String> =
        ["x", "", &"y".repeat(40)].iter().map(|id| short(&lease(ask(&group, bound(id))))).collect();
    assert_eq!(names.join(" "), "1 2 3");
    let mut attempt = Attempt::default();
    assert_eq!(short(&lease(group.choose(&mut attempt, &bound("b")))), "2");
    assert_ne!(short(&lease(group.choose(&mut attempt, &bound("b")))), "2", "it has been tried");
}

#[test]
fn bound_requests_count_in_the_rotation_without_endless_debt() {
    let group = group("server 10.0.0.1 route=a; server 10.0.0.2; sticky route $r;");
    for _ in 0..50 {
        assert_eq!(short(&lease(ask(&group, bound("a")))), "1");
    }
    let free = |_| short(&lease(ask(&group, Ask { now_ms: NOW, ..Ask::default() })));
    let names: Vec<String> = (0..6).map(free).collect();
    // Fifty in a row cost as much as one.
    assert_eq!(names.join(" "), "2 1 2 1 2 1");
}

#[test]
fn a_draining_server_serves_bound_requests_only() {
    let group = group("server 10.0.0.1 drain route=a; server 10.0.0.2; sticky route $r;");
    assert_eq!(short(&lease(ask(&group, bound("a")))), "1");
    assert_eq!(short(&lease(ask(&group, bound("x")))), "2");
    let alone = crate::testing::group("server 10.0.0.1 drain route=a; sticky route $r;");
    assert_eq!(short(&lease(ask(&alone, bound("a")))), "1");
    assert!(matches!(ask(&alone, bound("x")), ServerChoice::None));
}

#[test]
fn a_backup_is_found_by_its_name_once_primaries_are_through() {
    let group = group(
        "server 10.0.0.1; server 10.0.0.8 backup route=a; server 10.0.0.9 backup route=b; \
         sticky route $r;",
    );
    let mut attempt = Attempt::default();
    let mut next = || short(&lease(group.choose(&mut attempt, &bound("b"))));
    assert_eq!([next(), next(), next()].join(" "), "1 9 8");
}

#[test]
fn sessions_are_learned() {
    let lines = "server 10.0.0.1; server 10.0.0.2; \
                 sticky learn create=$c lookup=$l zone=learned:1m timeout=2s;";
    let group = group(lines);
    let learn = group.sticky().unwrap().learn().unwrap();
    let choose = |now_ms| lease(ask(&group, Ask { now_ms, ..bound("session") }));
    drop(choose(NOW));
    let second = choose(NOW);
    learn.learn(second.server(), Some(b"session"), None, NOW);
    let name = short(&second);
    for _ in 0..3 {
        assert_eq!(short(&choose(NOW + 1999)), name);
    }
    let other = choose(NOW + 2000);
    assert_ne!((short(&other), short(&choose(NOW + 2000))), (name.clone(), name));
}

#[test]
fn the_first_variable_with_a_value_counts() {
    let group = group("server 10.0.0.1; sticky route $a $b $c;");
    let sticky = group.sticky().unwrap();
    let id = |values: &[(u32, &'static str)]| {
        let mut out = Vec::new();
        let found = sticky.id(&mut Fixed(values.iter().copied().collect()), &mut out);
        assert_eq!(found, !out.is_empty());
        String::from_utf8(out).unwrap()
    };
    assert_eq!(id(&[(0, "x"), (1, "y")]), "x");
    assert_eq!(id(&[(0, ""), (2, "z")]), "z");
    assert_eq!(id(&[]), "");
}

/// The `Set-Cookie` field of these parameters, 100 seconds after 1970.
fn cookie(parameters: &str, values: &[(u32, &'static str)]) -> String {
    let group = group(&format!("server 10.0.0.1 route=r; sticky cookie srv {parameters};"));
    let lease = lease(ask(&group, Ask { now_ms: NOW, ..Ask::default() }));
    let cookie = group.sticky().unwrap().cookie().unwrap();
    let mut out = Vec::new();
    cookie.write(lease.server(), 100, &mut Fixed(values.iter().copied().collect()), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_cookie_that_is_set() {
    let table = [
        ("", "srv=r"),
        ("path=/a", "srv=r; path=/a"),
        ("expires=max", "srv=r; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000"),
        ("expires=1h", "srv=r; expires=Thu, 01-Jan-70 01:01:40 GMT; max-age=3600"),
        ("expires=80y", "srv=r; expires=Sun, 12-Dec-2049 00:01:40 GMT; max-age=2522880000"),
        (
            "secure samesite=Lax path=/ domain=a.b httponly",
            "srv=r; domain=a.b; httponly; secure; samesite=Lax; path=/",
        ),
    ];
    for (parameters, expected) in table {
        assert_eq!(cookie(parameters, &[]), expected);
    }
    // Variable 0 is the cookie in the request.
    let variables = "domain=$d samesite=$s";
    assert_eq!(cookie(variables, &[]), "srv=r");
    assert_eq!(cookie(variables, &[(1, "d"), (2, "odd")]), "srv=r; domain=d; samesite=strict");
}

#[test]
fn refusals_in_nginx_s_words() {
    let table = [
        ("odd x", "unknown parameter \"odd\""),
        ("cookie \"\"", "\"sticky\" directive empty cookie name"),
        ("cookie a odd", "unknown parameter \"odd\""),
        ("cookie a path=", "\"sticky\" directive no value for \"path\""),
        ("cookie a path=/ path=/", "\"sticky\" directive parameter \"path\" is duplicate"),
        ("cookie a expires=x", "\"sticky\" directive invalid \"expires\" parameter value"),
        ("cookie a samesite=x", "\"sticky\" directive invalid \"samesite\" parameter value"),
        ("route a", "invalid variable name \"a\""),
        ("learn zone=a:1m create=$a", "\"sticky\" directive \"lookup\" parameter is not specified"),
        ("learn zone=a:1m lookup=$a", "\"sticky\" directive \"create\" parameter is not specified"),
        ("learn create=$a lookup=$a", "\"sticky\" directive \"zone\" parameter is not specified"),
        ("learn create=a", "\"sticky\" directive missing variable in the \"create\" parameter"),
        ("learn zone=a", "\"sticky\" directive zone size is not specified"),
        ("learn zone=:1m", "\"sticky\" directive zone name is not specified"),
        ("learn zone=a:1k", "\"sticky\" directive zone is too small"),
        ("learn timeout=0", "\"sticky\" directive invalid timeout"),
    ];
    for (words, expected) in table {
        let refusal = load(&format!("server 10.0.0.1; sticky {words};")).unwrap_err();
        assert_eq!(refusal, expected, "{words}");
    }
}

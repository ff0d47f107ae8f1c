use wire::Method;
use wire::base64;

use crate::exchange::{Exchange, Flow};
use crate::testing::{TestAnswer, TestSite, refused, site, site_in, site_with};

const USERS: &str = "plain:{PLAIN}secret\nslow:$apr1$saltsalt$yAAkm4libquA.ZWLHbSBq/\n\
                     other:$7$C6..../....SodiumChloride$x\n";

/// A site with a user file.
fn site_of_users(http: &str) -> TestSite {
    with_files(site(&format!("error_log log info; {http}")))
}

/// A server that requires users of that file.
fn asking(inside: &str) -> TestSite {
    with_files(site_in(|folder| {
        let users = folder.join("html/users");
        let file = format!("auth_basic_user_file {};", users.display());
        format!("error_log log info; {file} server {{ {inside} }}")
    }))
}

fn with_files(site: TestSite) -> TestSite {
    site.file("users", USERS);
    site.file("a", "here");
    site
}

fn ask(site: &TestSite, path: &str, credentials: &str) -> TestAnswer {
    site.get_with(path, &authorization(credentials))
}

fn authorization(credentials: &str) -> String {
    let mut text = b"Authorization: Basic ".to_vec();
    base64::encode(credentials.as_bytes(), &mut text);
    text.push(b'\n');
    String::from_utf8(text).unwrap()
}

#[test]
fn a_user_name_and_password_are_required() {
    let site = asking("auth_basic \"the $arg_realm site\";");
    let answer = site.get("/a?realm=closed");
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.field("WWW-Authenticate").unwrap(), "Basic realm=\"the closed site\"");
    for (credentials, status) in [
        ("plain:secret", 200),
        ("plain:Secret", 401),
        ("plain:", 401),
        ("plain", 401),
        (":secret", 401),
        ("nobody:secret", 401),
        ("slow:password", 200),
        ("slow:passwort", 401),
        ("other:pleaseletmein", 500),
    ] {
        let answer = ask(&site, "/a", credentials);
        assert_eq!(answer.status(), status, "{credentials}");
        assert_eq!(answer.field("WWW-Authenticate").is_some(), status == 401, "{credentials}");
    }
}

#[test]
fn refusals_are_logged_with_their_reason() {
    let site = asking("auth_basic a;");
    let users = site.file("users", USERS).display().to_string();
    let said = |credentials: &str| {
        ask(&site, "/a", credentials);
        let message = site.messages("log").pop().unwrap();
        message.replace(&users, "USERS")
    };
    assert_eq!(said("plain:x"), "[error] user \"plain\": password mismatch");
    assert_eq!(said("slow:x"), "[error] user \"slow\": password mismatch");
    assert_eq!(said("me:x"), "[error] user \"me\" was not found in \"USERS\"");
    assert_eq!(said("x"), "[info] no user/password was provided for basic authentication");
    let kind = "passwords of the kind \"$7$\" are not supported";
    assert_eq!(said("other:x"), format!("[crit] user \"other\" in \"USERS\": {kind}"));
}

#[test]
fn an_unreadable_user_file_is_an_error() {
    let site = site_of_users(
        "auth_basic a; server {
             location /none { auth_basic_user_file /nonexistent/users; }
             location /folder { auth_basic_user_file /; }
             location / { auth_basic_user_file $arg_file; }
         }",
    );
    assert_eq!(ask(&site, "/none", "a:b").status(), 403);
    assert_eq!(ask(&site, "/folder", "a:b").status(), 500);
    let users = site.file("users", USERS);
    let named = format!("/a?file={}", users.display());
    assert_eq!(ask(&site, &named, "plain:secret").status(), 200);
    assert_eq!(
        site.messages("log"),
        [
            "[error] open() \"/nonexistent/users\" failed (2: No such file or directory)",
            "[crit] pread() \"/\" failed (21: Is a directory)",
        ]
    );
}

#[test]
fn a_change_of_the_user_file_has_an_immediate_effect() {
    let site = site_of_users("server { auth_basic a; auth_basic_user_file $arg_file; }");
    for password in ["one", "two", "six"] {
        let users = site.file("users", format!("me:{{PLAIN}}{password}"));
        let path = format!("/a?file={}", users.display());
        for _ in 0..3 {
            assert_eq!(ask(&site, &path, &format!("me:{password}")).status(), 200);
            assert_eq!(ask(&site, &path, "me:other").status(), 401);
        }
    }
}

#[test]
fn off_applies_to_a_block_and_inner_blocks_may_set_a_realm() {
    let site = asking(
        "auth_basic a;
         location /off { auth_basic off; return 200; }
         location /off/on { auth_basic b; root /nonexistent; }
         location /var { auth_basic $arg_r; alias /nonexistent; }
         location /limit { root /nonexistent; limit_except GET { auth_basic off; } }",
    );
    for (path, status) in [
        ("/a", 401),
        ("/off", 200),
        ("/off/on", 401),
        ("/var?r=off", 404),
        ("/var?r=of", 401),
        ("/limit", 401),
    ] {
        assert_eq!(site.get(path).status(), status, "{path}");
    }
    assert_eq!(site.send("POST /limit HTTP/1.1\nHost: h\n\n").status(), 404);
}

#[test]
fn satisfy_all_requires_every_check() {
    let site = asking("auth_basic a; allow 127.0.0.1; deny all;");
    let from = |ip: &str, fields: &str| {
        let peer = std::net::SocketAddr::new(ip.parse().unwrap(), 1);
        site.send_from(Some(peer), &format!("GET /a HTTP/1.1\nHost: h\n{fields}\n"))
    };
    let known = authorization("plain:secret");
    assert_eq!(from("127.0.0.1", &known).status(), 200);
    assert_eq!(from("127.0.0.1", "").status(), 401);
    assert_eq!(from("10.0.0.1", &known).status(), 403);
}

#[test]
fn satisfy_any_requires_one_check() {
    let site = asking(
        "satisfy any; auth_basic a; allow 127.0.0.1; deny all;
         location /address { auth_basic off; root /nonexistent; }
         location /neutral { allow 127.0.0.1; auth_basic a; root /nonexistent; }",
    );
    let from = |ip: &str, path: &str, fields: &str| {
        let peer = std::net::SocketAddr::new(ip.parse().unwrap(), 1);
        site.send_from(Some(peer), &format!("GET {path} HTTP/1.1\nHost: h\n{fields}\n"))
    };
    let known = authorization("slow:password");
    let (answer, asked) = (from("127.0.0.1", "/a", ""), from("10.0.0.1", "/a", ""));
    assert_eq!((answer.status(), answer.field("WWW-Authenticate")), (200, None));
    assert_eq!(asked.status(), 401);
    assert_eq!(asked.field("WWW-Authenticate").unwrap(), "Basic realm=\"a\"");
    assert_eq!(from("10.0.0.1", "/a", &known).status(), 200);
    assert_eq!(from("10.0.0.1", "/neutral", "").status(), 401);
    assert_eq!(from("10.0.0.1", "/neutral", &known).status(), 404);
    assert!(!site.log("log").contains("forbidden by rule"));
    assert_eq!(from("10.0.0.1", "/address", &known).status(), 403);
    assert!(site.log("log").contains("access forbidden by rule"));
}

#[test]
fn a_proxy_client_is_challenged_with_407() {
    let http = "auth_basic_user_file $document_root/users;
        server { satisfy any; auth_basic a; deny all; }";
    // CONNECT is not supported, so a handler changes the method.
    let connect = |x: &mut Exchange| {
        x.request.head.method = Method::Connect;
        Flow::Next
    };
    let site = site_with(http, |site| {
        for location in &mut site.locations {
            let feature = conf::FeatureName::default();
            location.rewrite = Box::new([session::Hook { feature, run: Box::new(connect) }]);
        }
    });
    site.file("users", USERS);
    let known = authorization("plain:secret");
    let answer = site.get_with("/", &known);
    assert_eq!(answer.status(), 407);
    assert_eq!(answer.field("Proxy-Authenticate").unwrap(), "Basic realm=\"a\"");
    assert_ne!(site.get_with("/", &format!("Proxy-{known}")).status(), 407);
}

#[test]
fn auth_delay_delays_only_401() {
    let site = asking("auth_basic a; auth_delay 50ms; location /no { deny all; }");
    let times = |path: &str, credentials: &str| {
        let answer = ask(&site, path, credentials);
        (answer.status(), answer.took_ms)
    };
    assert_eq!(times("/a", "plain:secret"), (200, 0));
    assert_eq!(times("/a", "plain:x"), (401, 50));
    assert_eq!(times("/a", "slow:x"), (401, 50));
    assert_eq!(times("/no", "plain:secret"), (403, 0));
    assert!(
        site.log("log").contains("[info]") && site.log("log").contains("delaying unauthorized")
    );
}

#[test]
fn invalid_directives_are_refused() {
    refused("auth_basic a; auth_basic b;", "\"auth_basic\" directive is duplicate:1");
    refused("server { auth_basic_user_file $; }", "invalid variable name:1");
}

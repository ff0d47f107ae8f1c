use wire::http1::response::ResponseHeadParser;

use crate::testing::{TestSite, refusal, site};

const UPSTREAM: &str = "upstream u { server 127.0.0.1:1; }";

fn with_match(lines: &str) -> TestSite {
    site(&format!(
        "match m {{ {lines} }} {UPSTREAM}
         server {{
             location / {{ proxy_pass http://u; health_check match=m; }}
             location /ok {{ return 200; }}
         }}"
    ))
}

/// The last test, or the failure.
fn judge(lines: &str, reply: &str) -> Result<&'static str, String> {
    let site = with_match(lines);
    let mut x = site.get("/ok?one=1&nought=0").x;
    let (head, body) = reply.split_once("\n\n").unwrap();
    let text = format!("{}\r\n\r\n", head.replace('\n', "\r\n")).into_bytes();
    let parsed = ResponseHeadParser::default().parse(&mut x.backends.head, &text);
    assert_eq!(parsed, Ok(Some(text.len())));
    x.backends.head_text = text;
    let mut checks = site
        .generation
        .locations
        .iter()
        .filter_map(|l| l.core.own.find::<std::sync::Arc<crate::health::LocationCheck>>());
    let check = checks.next().unwrap();
    check.matching.judge(&mut x, body.as_bytes()).map_err(|failure| failure.cause)
}

#[test]
fn statuses() {
    let table = [
        ("status 200;", &[200][..], &[201, 404][..]),
        ("status ! 500;", &[200, 501], &[500]),
        ("status 200 204;", &[200, 204], &[201]),
        ("status ! 301 302;", &[200, 303], &[301, 302]),
        ("status 200-399;", &[200, 399], &[199, 400]),
        ("status ! 400-599;", &[200, 600], &[400, 599]),
        ("status 301-303 307;", &[301, 303, 307], &[300, 304]),
        ("status 200-299; status ! 204;", &[200], &[204, 300]),
        ("", &[200, 500], &[]),
    ];
    for (lines, passing, failing) in table {
        for status in passing {
            let judged = judge(lines, &format!("HTTP/1.1 {status} x\n\n"));
            assert_eq!(judged, Ok("checking status code"), "{lines} {status}");
        }
        for status in failing {
            let judged = judge(lines, &format!("HTTP/1.1 {status} x\n\n"));
            assert_eq!(judged, Err(format!("unexpected status code {status}")), "{lines}");
        }
    }
}

#[test]
fn headers() {
    let html = "Content-Type: text/html";
    let table = [
        ("header Content-Type;", html, true),
        ("header content-type;", html, true),
        ("header X;", html, false),
        ("header ! X;", html, true),
        ("header ! Content-Type;", html, false),
        ("header Content-Type = text/html;", html, true),
        ("header Content-Type = text;", html, false),
        ("header Content-Type = Text/Html;", html, false),
        ("header Content-Type != text/plain;", html, true),
        ("header Content-Type != text/html;", html, false),
        ("header X != y;", html, false),
        ("header Content-Type ~ ^text/;", html, true),
        ("header Content-Type ~ ^html;", html, false),
        ("header Content-Type !~ ^html;", html, true),
        ("header Content-Type !~ html$;", html, false),
        ("header X !~ y;", html, false),
        ("header X = b;", "X: a\nX: b", true),
        ("header X != b;", "X: a\nX: b", false),
        ("header X; header Y;", "X: a", false),
    ];
    for (lines, fields, passes) in table {
        let judged = judge(lines, &format!("HTTP/1.1 200 OK\n{fields}\n\n"));
        assert_eq!(judged.is_ok(), passes, "{lines} {fields}: {judged:?}");
        if passes {
            assert_eq!(judged, Ok("checking header"));
        }
    }
}

#[test]
fn bodies_and_variables() {
    let welcome = "status 200; body ~ \"Welcome to nginx!\";";
    let table = [
        (welcome, Ok("checking body")),
        ("body ~ ^Welcome; body !~ \"maintenance mode\";", Ok("checking body")),
        ("body !~ Welcome;", Err("unexpected body")),
        ("body ~ welcome;", Err("unexpected body")),
        ("require $arg_one $host;", Ok("checking variables")),
        ("require $arg_one $arg_nought;", Err("\"$arg_nought\" is \"0\"")),
        ("require $arg_none;", Err("\"$arg_none\" is \"\"")),
    ];
    for (lines, expected) in table {
        let judged = judge(lines, "HTTP/1.1 200 OK\n\nWelcome to nginx!");
        assert_eq!(judged, expected.map_err(Into::into), "{lines}");
    }
}

#[test]
fn without_a_match_block_2xx_and_3xx_pass() {
    let default = crate::health::matching::Match::default();
    let mut x = site("server { return 200; }").get("/").x;
    for (status, passes) in [(199, false), (200, true), (399, true), (400, false)] {
        x.backends.head.status = status;
        assert_eq!(default.judge(&mut x, b"").is_ok(), passes, "{status}");
    }
}

#[test]
fn invalid_match_blocks_are_refused() {
    let table = [
        ("status;", "invalid number of arguments in \"status\" directive:1"),
        ("status !;", "invalid parameter \"!\":1"),
        ("status 99;", "invalid parameter \"99\":1"),
        ("status 300-200;", "invalid parameter \"300-200\":1"),
        ("status 2xx;", "invalid parameter \"2xx\":1"),
        ("header !;", "invalid parameter \"!\":1"),
        ("header A B;", "invalid parameter \"A\":1"),
        ("header A ~* b;", "invalid parameter \"~*\":1"),
        ("header A = b c;", "invalid parameter \"A\":1"),
        ("body = x;", "invalid parameter \"=\":1"),
        ("body ~;", "invalid parameter \"~\":1"),
        ("require x;", "invalid variable name \"x\":1"),
        ("require $host$uri;", "invalid variable name \"$host$uri\":1"),
        ("require $nothing_like_it;", "unknown \"nothing_like_it\" variable"),
        ("stutus 200;", "unknown directive \"stutus\":1"),
        ("status { }", "unexpected \"{\":1"),
    ];
    for (lines, expected) in table {
        let refusal = refusal(&format!("match m {{ {lines} }} server {{ }}"));
        assert!(refusal.starts_with(expected), "{lines}: {refusal}");
    }
    assert_eq!(refusal("match m { } match m { }"), "duplicate match \"m\":1");
}

#[test]
fn invalid_health_checks_are_refused() {
    let pass = "proxy_pass http://u;";
    let requires = "\"health_check\" directive requires";
    let table = [
        ("health_check;", format!("{requires} \"proxy_pass\" in its location:1")),
        (
            "proxy_pass http://127.0.0.1; health_check;",
            format!("{requires} a \"proxy_pass\" that names an upstream:1"),
        ),
        (
            "proxy_pass http://$host; health_check;",
            format!("{requires} a \"proxy_pass\" that names an upstream:1"),
        ),
    ];
    for (lines, expected) in table {
        let text = format!("{UPSTREAM} server {{ location / {{ {lines} }} }}");
        assert_eq!(refusal(&text), expected, "{lines}");
    }
    let table = [
        ("interval=0", "invalid parameter \"interval=0\":1"),
        ("interval=x", "invalid parameter \"interval=x\":1"),
        ("fails=0", "invalid parameter \"fails=0\":1"),
        ("passes=", "invalid parameter \"passes=\":1"),
        ("uri=x", "invalid parameter \"uri=x\":1"),
        ("\"uri=/a b\"", "invalid parameter \"uri=/a b\":1"),
        ("port=0", "invalid parameter \"port=0\":1"),
        ("port=65536", "invalid parameter \"port=65536\":1"),
        ("jitter", "invalid parameter \"jitter\":1"),
        ("match=", "invalid parameter \"match=\":1"),
        ("match=none", "match \"none\" is not defined:1"),
        ("persistent", "\"persistent\" requires \"mandatory\":1"),
        ("grpc_service=a", "invalid parameter \"grpc_service=a\":1"),
        (
            "type=grpc",
            "\"health_check\" directive with \"type=grpc\" requires \"grpc_pass\" in its \
             location:1",
        ),
        (
            "type=grpc fails=2",
            "only \"grpc_service\" and \"grpc_status\" may follow \"type=grpc\", not \"fails=2\":1",
        ),
        ("type=grpc grpc_status=17", "invalid parameter \"grpc_status=17\":1"),
        (
            "uri=/ type=grpc",
            "\"health_check\" directive cannot have \"uri\" or \"match\" with \"type=grpc\":1",
        ),
        ("type=tcp", "invalid parameter \"type=tcp\":1"),
    ];
    for (parameter, expected) in table {
        let text =
            format!("{UPSTREAM} server {{ location / {{ {pass} health_check {parameter}; }} }}");
        assert_eq!(refusal(&text), expected, "{parameter}");
    }
    let text = "server { health_check; }";
    assert_eq!(refusal(text), "\"health_check\" directive is not allowed here:1");
}

#[test]
fn all_parameters_are_accepted() {
    let site = site(&format!(
        "{UPSTREAM}
         server {{
             location / {{
                 proxy_pass http://u;
                 health_check interval=1500ms jitter=1s fails=2 passes=3 uri=/h?x port=81
                              mandatory persistent match=later keepalive_time=1m;
                 location /inner {{ }}
             }}
         }}
         match later {{ }}"
    ));
    let checks = site
        .generation
        .locations
        .iter()
        .filter_map(|l| l.core.own.find::<std::sync::Arc<crate::health::LocationCheck>>());
    let [check] = checks.collect::<Vec<_>>()[..] else { panic!("one location has a check") };
    let terms = check.terms;
    assert_eq!((terms.interval_ms, terms.jitter_ms), (1500, 1000));
    assert_eq!((terms.fails, terms.passes), (2, 3));
    assert_eq!(
        (&*check.uri, check.port, check.keepalive_time_ms),
        (&b"/h?x"[..], Some(81), 60_000)
    );
    assert_eq!(check.matching.name(), b"later");
}

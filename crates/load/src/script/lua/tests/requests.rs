//! What a script says while its thread runs.

use super::*;
use crate::script::requests_in;

#[test]
fn without_functions_one_request_serves_for_all() {
    let script = begun("");
    assert!(!script.has_request() && !script.has_delay() && !script.wants_response());
    let expected = "GET /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\n\r\n";
    assert_eq!(request(&script), expected);
    assert_eq!(request(&script), expected);
}

#[test]
fn the_one_request_is_composed_after_init() {
    let script = begun(
        "function init() wrk.method = 'PUT' wrk.path = '/p' wrk.body = 'text' wrk.headers = {} end
        function later() wrk.path = '/q' end",
    );
    let expected = "PUT /p HTTP/1.1\r\nContent-Length: 4\r\n\r\ntext";
    assert_eq!(request(&script), expected);
    script.set("wrk", &LuaValue::Nil).unwrap();
    assert_eq!(request(&script), expected);
}

#[test]
fn the_host_is_the_urls_unless_a_header_sets_it() {
    let host = |target: &ScriptTarget| {
        let script = Script::load("test.lua", b"", target).unwrap();
        script.init(&[]).unwrap();
        let request = request(&script);
        let line = request.lines().find_map(|line| line.strip_prefix("Host: "));
        line.unwrap().to_owned()
    };
    assert_eq!(host(&ScriptTarget { port: None, ..target() }), "example.org");
    assert_eq!(host(&ScriptTarget { host: "::1".into(), ..target() }), "[::1]:8080");
    let headers = vec![("Host".into(), "other".into())];
    assert_eq!(host(&ScriptTarget { headers, ..target() }), "other");
}

#[test]
fn a_request_is_made_of_what_is_given_and_of_the_table() {
    let script = begun(
        "function init()
            local given = { A = 1.5, ['Content-Length'] = 9 }
            seen = wrk.format('PUT', '/p', given)
            host, length = given.Host, tostring(given['Content-Length'])
            wrk.format(nil, nil, given, 'text')
            other = given['Content-Length']
            number = wrk.format(nil, 2, {}, 34)
        end",
    );
    let lines = text(&script, "seen");
    let mut lines: Vec<&str> = lines.split("\r\n").collect();
    lines[1..3].sort();
    assert_eq!(lines, ["PUT /p HTTP/1.1", "A: 1.5", "Host: example.org:8080", "", ""]);
    assert_eq!(
        (text(&script, "host"), text(&script, "length")),
        ("example.org:8080".into(), "nil".into())
    );
    assert_eq!(script.get("other"), Ok(LuaValue::Number(4.0)));
    let number = text(&script, "number");
    assert!(number.starts_with("GET 2 HTTP/1.1\r\n") && number.ends_with("\r\n\r\n34"), "{number}");
}

#[test]
fn bytes_of_every_kind_pass() {
    let script =
        begun("function request() return wrk.format('POST', '/', {}, '\\0\\255\\r\\n') end");
    let mut out = Vec::new();
    script.request(&mut out).unwrap();
    assert!(out.ends_with(b"\r\n\r\n\0\xff\r\n"), "{out:?}");
}

#[test]
fn request_is_asked_each_time() {
    let script = begun(
        "n = 0
        function request() n = n + 1 return wrk.format(nil, '/' .. n) end",
    );
    assert!(script.has_request());
    assert!(request(&script).starts_with("GET /1 "));
    assert!(request(&script).starts_with("GET /2 "));
}

#[test]
fn request_may_return_several() {
    let script = begun(
        "function init() all = wrk.format(nil, '/a') .. wrk.format('POST', '/b', nil, 'x') end
        function request() return all end",
    );
    assert_eq!(requests_in(request(&script).as_bytes()), Ok(2));
}

#[test]
fn request_may_hand_on_the_one_request() {
    let script = begun("function request() return wrk.request() end");
    assert_eq!(request(&script), request(&begun("")));
}

/// A login, then the rest: the function that asked is not the one that goes on.
#[test]
fn functions_may_be_replaced_while_they_run() {
    let script = begun(
        "function request() return wrk.format(nil, '/login') end
        function response(status, headers)
            wrk.headers.Token = headers.Token
            request = function() return wrk.format(nil, '/rest') end
            response = nil
        end",
    );
    assert!(request(&script).starts_with("GET /login "));
    respond(&script, &[("Token", "t")], b"").unwrap();
    let next = request(&script);
    assert!(next.starts_with("GET /rest ") && next.contains("\r\nToken: t\r\n"), "{next}");
    respond(&script, &[], b"").unwrap();
}

#[test]
fn delays_are_whole_milliseconds() {
    let script = begun("function delay() return answer end");
    assert!(script.has_delay());
    let table = [
        (LuaValue::Number(25.0), 25),
        (LuaValue::Number(1.9), 1),
        (LuaValue::String(b"7".to_vec()), 7),
        (LuaValue::Nil, 0),
        (LuaValue::Number(-1.0), 0),
        (LuaValue::Number(f64::NAN), 0),
        (LuaValue::Number(f64::INFINITY), DELAY_MAX_MS as u64),
    ];
    for (answer, expected) in table {
        script.set("answer", &answer).unwrap();
        assert_eq!(script.delay(), Ok(Duration::from_millis(expected)), "{answer:?}");
    }
}

#[test]
fn response_sees_status_headers_and_body() {
    let script = begun(
        "function response(status, headers, body)
            seen = status .. headers['X-A'] .. headers['x-a'] .. #body .. body:byte(2)
        end",
    );
    assert!(script.wants_response());
    respond(&script, &[("X-A", "first"), ("X-A", "last"), ("x-a", "")], b"a\0\xff").unwrap();
    assert_eq!(text(&script, "seen"), "200last30");
}

use super::*;

fn target() -> Target {
    Target {
        scheme: "http".into(),
        host: "example.org".into(),
        port: Some(8080),
        path: "/a?b=c".into(),
        method: "GET".into(),
        ..Target::default()
    }
}

fn load(source: &str) -> Script {
    Script::load("test.lua", source.as_bytes(), &target()).expect("a script that is right")
}

/// A script whose thread has begun.
fn begun(source: &str) -> Script {
    let script = load(source);
    script.init(&["http://example.org:8080/".into(), "one".into(), "two".into()]).unwrap();
    script
}

fn request(script: &Script) -> String {
    let mut out = b"left over".to_vec();
    script.request(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn without_functions_one_request_serves_for_all() {
    let script = begun("");
    assert!(!script.has_request() && !script.has_delay() && !script.wants_response());
    let expected = "GET /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\n\r\n";
    assert_eq!(request(&script), expected);
    assert_eq!(request(&script), expected);
}

#[test]
fn the_static_request_is_composed_after_init() {
    let script = begun(
        "function init() wrk.method = 'PUT' wrk.path = '/p' wrk.body = 'text' wrk.headers = {} end",
    );
    assert_eq!(request(&script), "PUT /p HTTP/1.1\r\nContent-Length: 4\r\n\r\ntext");
}

#[test]
fn the_host_is_what_the_url_says_or_what_was_asked_for() {
    let host = |target: &Target| {
        let script = Script::load("test.lua", b"", target).unwrap();
        script.init(&[]).unwrap();
        let request = request(&script);
        let line = request.lines().find_map(|line| line.strip_prefix("Host: "));
        line.unwrap().to_owned()
    };
    assert_eq!(host(&Target { port: None, ..target() }), "example.org");
    assert_eq!(host(&Target { host: "::1".into(), ..target() }), "[::1]:8080");
    let headers = vec![("Host".into(), "other".into())];
    assert_eq!(host(&Target { headers, ..target() }), "other");
}

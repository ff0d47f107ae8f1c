use crate::testing::{TestAnswer, TestSite, refusal, site};

fn file(settings: &str) -> TestSite {
    let site = site(&format!("server {{ {settings} }}"));
    site.file("a.html", "text");
    site
}

fn values(answer: &TestAnswer, name: &str) -> Vec<String> {
    let is_named = |(found, _): &(&str, &str)| found.eq_ignore_ascii_case(name);
    let head = answer.head();
    let fields = head.iter().filter_map(|line| line.split_once(": "));
    fields.filter(is_named).map(|(_, value)| value.to_owned()).collect()
}

#[test]
fn fields_are_set_in_replies_of_every_status() {
    let site = file(
        "add_header X-One old always;
         more_set_headers 'X-Uri: $uri' X-Two:2 'X-Empty: $arg_none';
         location = /a.html { more_set_headers 'X-Uri: inner'; }",
    );
    let found = site.get("/a.html");
    assert_eq!(values(&found, "X-Uri"), ["inner"]);
    assert_eq!(values(&found, "X-Two"), ["2"]);
    assert!(values(&found, "X-Empty").is_empty());
    let missing = site.get("/none");
    assert_eq!((missing.status(), values(&missing, "X-Uri")), (404, vec!["/none".into()]));
}

#[test]
fn fields_that_weir_writes_itself_are_replaced() {
    let site = file(
        "more_set_headers 'Server: shop' 'Date: never' 'ETag: \"1\"'
             'Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT' 'Content-Type: text/x; a=b';
         location = /moved { return 301 /a; more_set_headers 'Location: http://b/'; }",
    );
    let answer = site.get("/a.html");
    for (name, value) in [
        ("Server", "shop"),
        ("Date", "never"),
        ("ETag", "\"1\""),
        ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("Content-Type", "text/x; a=b"),
        ("Content-Length", "4"),
    ] {
        assert_eq!(values(&answer, name), [value], "{name}");
    }
    assert_eq!(values(&site.get("/moved"), "Location"), ["http://b/"]);
}

#[test]
fn fields_are_removed_by_name_and_by_prefix() {
    let site = file(
        "more_clear_headers Server Date: ETag Last-Modified Content-Type;
         location = /moved { return 301 /a; more_clear_headers location; }
         location = /prefix { more_set_headers 'X-Ab: 1' 'x-ac: 2' 'X-B: 3';
             more_clear_headers 'X-A*'; return 204; }
         location = /all { more_set_headers 'X-B: 3'; more_clear_headers '*'; return 301 /a; }",
    );
    let answer = site.get("/a.html");
    for name in ["Server", "Date", "ETag", "Last-Modified", "Content-Type"] {
        assert!(values(&answer, name).is_empty(), "{name}");
    }
    assert!(values(&site.get("/moved"), "Location").is_empty());
    let prefix = site.get("/prefix");
    assert!(values(&prefix, "X-Ab").is_empty() && values(&prefix, "X-Ac").is_empty());
    assert_eq!(values(&prefix, "X-B"), ["3"]);
    let all = site.get("/all");
    assert!(values(&all, "X-B").is_empty() && values(&all, "Location").is_empty());
}

#[test]
fn without_accept_ranges_there_are_no_ranges() {
    for (lines, status) in [
        ("more_clear_headers accept-ranges;", 200),
        ("more_set_headers 'Accept-Ranges: $arg_none';", 200),
        ("more_clear_headers 'Accept-*';", 206),
    ] {
        let site = file(lines);
        assert_eq!(site.get_with("/a.html", "Range: bytes=1-2\n").status(), status, "{lines}");
        let fields = values(&site.get("/a.html"), "Accept-Ranges");
        assert_eq!(fields.is_empty(), status == 200, "{lines}");
    }
}

#[test]
fn the_length_can_be_removed() {
    let site = file("more_clear_headers Content-Length; location = /text { return 200 hello; }");
    for (path, body) in [("/a.html", "text"), ("/text", "hello")] {
        let answer = site.get(path);
        assert!(values(&answer, "Content-Length").is_empty());
        assert_eq!(answer.body(), body);
    }
}

#[test]
fn lines_apply_to_the_statuses_and_types_that_they_name() {
    let site = file(
        "more_set_headers -s '404 410' -s 500 'X-S: 1';
         more_set_headers -t 'text/css TEXT/html' 'X-T: 2';
         more_set_headers -s 200 -t text/css 'X-Both: 3';
         location = /gone { return 410; }",
    );
    let answer = site.get("/a.html");
    assert!(values(&answer, "X-S").is_empty() && values(&answer, "X-Both").is_empty());
    assert_eq!(values(&answer, "X-T"), ["2"]);
    for path in ["/none", "/gone"] {
        assert_eq!(values(&site.get(path), "X-S"), ["1"], "{path}");
    }
}

#[test]
fn fields_are_added_to_those_of_the_same_name() {
    let site = file("more_set_headers 'X: 1'; more_set_headers -a 'X: 2' 'X: 3'; add_header X 4;");
    assert_eq!(values(&site.get("/a.html"), "X"), ["1", "2", "3", "4"]);
}

#[test]
fn a_value_with_a_line_break_is_not_set() {
    let site = file("location / { more_set_headers 'X: $uri' 'Content-Type: $uri' 'Y: 1'; }");
    let answer = site.get("/%0d%0aX-Split:%20yes");
    assert!(values(&answer, "X").is_empty() && values(&answer, "X-Split").is_empty());
    assert_eq!(values(&answer, "Y"), ["1"]);
}

#[test]
fn lines_that_cannot_work_are_refused() {
    for (line, message) in [
        ("more_set_headers 'Content-Length: 1'", "would make the length of the body wrong"),
        ("more_clear_headers Transfer-Encoding", "would make the length of the body wrong"),
        ("more_set_headers 'Connection: a'", "is a field that Weir writes for each connection"),
        ("more_set_headers ': a'", "does not begin with the name of a field"),
        ("more_set_headers 'A B: c'", "does not begin with the name of a field"),
        ("more_set_headers -s 404", "no field is named"),
        ("more_set_headers -s", "option \"-s\" takes an argument"),
        ("more_set_headers -s '20x' 'A: b'", "invalid status \"20x\""),
        ("more_set_headers -r 'A: b'", "invalid option \"-r\""),
        ("more_clear_headers -a A", "invalid option \"-a\""),
        ("more_set_headers -a 'Server: b'", "\"Server\" cannot be added with \"-a\""),
    ] {
        let found = refusal(&format!("server {{ {line}; }}"));
        assert!(found.contains(message), "{line}: {found}");
    }
}

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use super::*;

fn parse(input: &[u8]) -> (RequestHead, Result<HeadProgress, HeadError>) {
    parse_with(input, &HeadLimits::default())
}

fn parse_with(input: &[u8], limits: &HeadLimits) -> (RequestHead, Result<HeadProgress, HeadError>) {
    let mut head = RequestHead::default();
    let progress = RequestHeadParser::default().parse(&mut head, input, limits);
    (head, progress)
}

fn message(error: &HeadError, input: &[u8]) -> String {
    let mut out = Vec::new();
    error.write_message(input, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn request_lines() {
    // line, method text, target, path, args, schema, authority, protocol
    let table: &[(&str, [&str; 7])] = &[
        ("GET / HTTP/1.1", ["GET", "/", "/", "-", "", "", "HTTP/1.1"]),
        ("GET  /  HTTP/1.1  ", ["GET", "/", "/", "-", "", "", "HTTP/1.1  "]),
        ("GET /a?b#c HTTP/1.0", ["GET", "/a?b#c", "/a", "b", "", "", "HTTP/1.0"]),
        ("GET /a#c?b HTTP/1.0", ["GET", "/a#c?b", "/a", "-", "", "", "HTTP/1.0"]),
        ("GET /a? HTTP/1.0", ["GET", "/a?", "/a", "", "", "", "HTTP/1.0"]),
        ("GET /a?b?c HTTP/1.0", ["GET", "/a?b?c", "/a", "b?c", "", "", "HTTP/1.0"]),
        (
            "GET /\u{e9}<\"> HTTP/1.0",
            ["GET", "/\u{e9}<\">", "/\u{e9}<\">", "-", "", "", "HTTP/1.0"],
        ),
        ("GET /", ["GET", "/", "/", "-", "", "", ""]),
        ("GET / ", ["GET", "/", "/", "-", "", "", ""]),
        ("X-_Y /z HTTP/1.999", ["X-_Y", "/z", "/z", "-", "", "", "HTTP/1.999"]),
        ("GET http://h HTTP/1.1", ["GET", "/", "/", "-", "http", "h", "HTTP/1.1"]),
        ("GET a+b.c-1://h:/p HTTP/1.1", ["GET", "/p", "/p", "-", "a+b.c-1", "h:", "HTTP/1.1"]),
        ("GET http://[::1]:8/?q HTTP/1.1", ["GET", "/?q", "/", "q", "http", "[::1]:8", "HTTP/1.1"]),
        ("GET http://h?q#f HTTP/1.1", ["GET", "?q#f", "/", "q", "http", "h", "HTTP/1.1"]),
        ("GET http://h:80 HTTP/1.1", ["GET", "/", "/", "-", "http", "h:80", "HTTP/1.1"]),
        ("CONNECT h:443 HTTP/1.1", ["CONNECT", "/", "/", "-", "", "h:443", "HTTP/1.1"]),
    ];
    for (line, expected) in table {
        let input = format!("{line}\r\n\r\n").into_bytes();
        let (head, progress) = parse(&input);
        assert!(matches!(progress, Ok(HeadProgress::Complete { .. })), "{line}: {progress:?}");
        let text = |slice: Slice| String::from_utf8_lossy(slice.of(&input)).into_owned();
        let found = [
            text(head.method_text),
            text(head.target),
            text(head.path),
            head.args.map_or(String::from("-"), text),
            text(head.schema),
            text(head.authority),
            text(head.protocol),
        ];
        assert_eq!(&found, expected, "{line}");
        assert_eq!(text(head.line), *line);
    }
}

#[test]
fn protocol_marks_the_place_of_a_refused_version() {
    let table =
        [("GET / HTTP/3.0", 6), ("GET /  HTTP/1.x", 7), ("GET / FTP/1.1", 0), ("GET /\x01", 0)];
    for (line, start) in table {
        let (head, progress) = parse(format!("{line}\r\n\r\n").as_bytes());
        assert!(progress.is_err(), "{line}");
        assert_eq!((head.protocol.start, head.protocol.end), (start, start), "{line}");
    }
}

#[test]
fn invalid_request_lines_are_refused() {
    let table: &[(&str, u16, &str)] = &[
        ("get / HTTP/1.1", 400, "client sent invalid method"),
        ("GET", 400, "client sent invalid method"),
        ("GET\t/ HTTP/1.1", 400, "client sent invalid method"),
        (" GET / HTTP/1.1", 400, "client sent invalid method"),
        ("GET ", 400, "client sent invalid request"),
        ("GET * HTTP/1.1", 400, "client sent invalid request"),
        ("OPTIONS * HTTP/1.1", 400, "client sent invalid request"),
        ("GET / / HTTP/1.1", 400, "client sent invalid request"),
        ("GET /\x02 HTTP/1.1", 400, "client sent invalid request"),
        ("GET /?\x7f HTTP/1.1", 400, "client sent invalid request"),
        ("GET /#\t HTTP/1.1", 400, "client sent invalid request"),
        ("GET /\thttp HTTP/1.1", 400, "client sent invalid request"),
        ("GET / http/1.1", 400, "client sent invalid request"),
        ("GET / HTTP/0.9", 400, "client sent invalid request"),
        ("GET / HTTP/1", 400, "client sent invalid request"),
        ("GET / HTTP/1.", 400, "client sent invalid request"),
        ("GET / HTTP/1.1x", 400, "client sent invalid request"),
        ("GET / HTTP/1.1 x", 400, "client sent invalid request"),
        ("GET / HTTP/1.1\t", 400, "client sent invalid request"),
        ("GET / HTTP/1.1000", 400, "client sent invalid request"),
        ("GET / HTTP/01.1", 400, "client sent invalid request"),
        ("GET / HTTP/2.0", 505, "client sent invalid version"),
        ("GET / HTTP/10.1", 505, "client sent invalid version"),
        ("POST /", 400, "client sent invalid method in HTTP/0.9 request"),
        ("GET http:/h/ HTTP/1.1", 400, "client sent invalid request"),
        ("GET http://h", 400, "client sent invalid request"),
        ("GET http://u@h/ HTTP/1.1", 400, "client sent invalid request"),
        ("GET http://h_/ HTTP/1.1", 400, "client sent invalid request"),
        ("GET http://h:8:8/ HTTP/1.1", 400, "client sent invalid request"),
        ("GET http://[::1/ HTTP/1.1", 400, "client sent invalid request"),
        ("GET http://[::%1]/ HTTP/1.1", 400, "client sent invalid request"),
        ("GET http:/// HTTP/1.1", 400, "client sent invalid host in request line"),
        ("GET http://a..b/ HTTP/1.1", 400, "client sent invalid host in request line"),
        ("GET http://a:65536/ HTTP/1.1", 400, "client sent invalid host in request line"),
        ("CONNECT / HTTP/1.1", 400, "client sent invalid request"),
        ("CONNECT h HTTP/1.1", 400, "client sent invalid request"),
        ("CONNECT h: HTTP/1.1", 400, "client sent invalid request"),
        ("CONNECT h:1/ HTTP/1.1", 400, "client sent invalid request"),
        ("CONNECT h:1", 400, "client sent invalid request"),
        ("CONNECT h:1 ", 400, "client sent invalid method in HTTP/0.9 request"),
        ("CONNECT :1 HTTP/1.1", 400, "client sent invalid host in request line"),
    ];
    for &(line, status, text) in table {
        let input = format!("{line}\r\n\r\n").into_bytes();
        let (_, progress) = parse(&input);
        let error = progress.expect_err(line);
        assert_eq!((error.status(), &*message(&error, &input)), (status, text), "{line:?}");
    }
}

#[test]
fn path_flags() {
    // path, needs_normalising, quoted, plus
    let table: &[(&str, [bool; 3])] = &[
        ("/", [false; 3]),
        ("/a.b/c", [false; 3]),
        ("/a/?//../%", [false; 3]),
        ("/a//b", [true, false, false]),
        ("//", [true, false, false]),
        ("/.a", [true, false, false]),
        ("/a/..", [true, false, false]),
        ("/%2e", [true, true, false]),
        ("/a+b", [false, false, true]),
    ];
    for &(path, flags) in table {
        let (head, _) = parse(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
        assert_eq!([head.needs_normalising, head.quoted, head.plus], flags, "{path}");
    }
}

#[test]
fn fields_are_cut_and_recognised() {
    let input =
        b"GET / HTTP/1.1\r\nHOST:h\r\nX-A:   b  c \nEmpty:\r\nTab:\t1\t\r\nCookie: :\r\n\r\n";
    let (head, progress) = parse(input);
    assert_eq!(progress, Ok(HeadProgress::Complete { len: input.len() }));
    let fields: Vec<_> =
        head.fields.iter().map(|f| (f.name.of(input), f.value.of(input), f.id)).collect();
    let expected: Vec<(&[u8], &[u8], Known)> = vec![
        (b"HOST", b"h", Known::Host),
        (b"X-A", b"b  c", Known::Other),
        (b"Empty", b"", Known::Other),
        (b"Tab", b"\t1\t", Known::Other),
        (b"Cookie", b":", Known::Cookie),
    ];
    assert_eq!(fields, expected);
    assert_eq!(head.field(Known::Cookie), Some(&head.fields[4]));
    assert_eq!(head.field(Known::Range), None);
}

#[test]
fn invalid_fields_are_refused() {
    let table: &[(&[u8], &str)] = &[
        (b":foo: x", r#"client sent invalid header line: "\x3a...""#),
        (b" foo: x", r#"client sent invalid header line: "\x20...""#),
        (b"foo\x02: x", r#"client sent invalid header line: "foo\x02...""#),
        (b"foo : x", r#"client sent invalid header line: "foo\x20...""#),
        (b"foo", r#"client sent invalid header line: "foo\x0d...""#),
        (b"a: b\r\n c: d", r#"client sent invalid header line: "\x20...""#),
        (b"a: b\0c", r#"client sent invalid header line: "a: b\x00...""#),
        (b" a: b\rc", r#"client sent invalid header line: "\x20...""#),
        (b"a: b\rc", r#"client sent invalid header line: "a: b\x0d...""#),
        (b"a: b\r", r#"client sent invalid header line: "a: b\x0d...""#),
        (b"Host:", "client sent invalid host header"),
        (b"Host: a b", "client sent invalid host header"),
        (
            b"Host: a\r\nhost: b",
            r#"client sent duplicate host header: "host: b", previous value: "Host: a""#,
        ),
        (
            b"Content-Length: 1\r\ncontent-LENGTH:1",
            "client sent duplicate header line: \"content-LENGTH: 1\", \
             previous value: \"Content-Length: 1\"",
        ),
    ];
    for &(lines, text) in table {
        let input = [b"GET / HTTP/1.1\r\n", lines, b"\r\n\r\n"].concat();
        let (_, progress) = parse(&input);
        let error = progress.expect_err(text);
        assert_eq!((error.status(), &*message(&error, &input)), (400, text));
    }
}

#[test]
fn odd_names_are_dropped_or_kept_as_configured() {
    let input = b"GET / HTTP/1.1\r\nx_y: 1 \r\nx.y: 2\r\n\xff: 3\r\nok: 4\r\n\r\n";
    let table = [
        (true, false, &["ok"][..], 3),
        (true, true, &["x_y", "ok"][..], 2),
        (false, false, &["x_y", "x.y", "\\xff", "ok"][..], 0),
    ];
    for (ignore_invalid_headers, underscores_in_headers, names, ignored) in table {
        let limits =
            HeadLimits { ignore_invalid_headers, underscores_in_headers, ..HeadLimits::default() };
        let (head, _) = parse_with(input, &limits);
        let kept: Vec<_> =
            head.fields.iter().map(|f| format!("{}", f.name.of(input).escape_ascii())).collect();
        assert_eq!(kept, names);
        assert_eq!(head.ignored.len(), ignored);
        if ignored > 2 {
            assert_eq!(head.ignored[0].of(input), b"x_y: 1");
        }
    }
}

#[test]
fn max_headers() {
    let limits = HeadLimits { max_headers: 2, ..HeadLimits::default() };
    let (_, progress) = parse_with(b"GET / HTTP/1.0\r\na:\r\n_:\r\nb:\r\n\r\n", &limits);
    assert_eq!(progress, Ok(HeadProgress::Complete { len: 30 }));
    let (_, progress) = parse_with(b"GET / HTTP/1.0\r\na:\r\nb:\r\nc:\r\n\r\n", &limits);
    assert_eq!(progress, Err(HeadError::TooManyFields));
}

#[test]
fn pauses_at_host_and_takes_new_limits() {
    let first = HeadLimits { pause_at_host: true, ..HeadLimits::default() };
    let second = HeadLimits { underscores_in_headers: true, ..first };
    let input = b"GET / HTTP/1.1\r\na_b: 1\r\nHost: h\r\na_b: 2\r\n\r\n";
    let (mut head, mut parser) = (RequestHead::default(), RequestHeadParser::default());
    assert_eq!(parser.parse(&mut head, input, &first), Ok(HeadProgress::Host));
    assert_eq!(
        parser.parse(&mut head, input, &second),
        Ok(HeadProgress::Complete { len: input.len() })
    );
    assert_eq!((head.fields.len(), head.ignored.len()), (2, 1));
}

#[test]
fn reset_forgets_everything() {
    let (mut head, _) = parse(b"GET /a?b HTTP/1.1\r\nHost: h\r\n_: 1\r\n\r\n");
    head.reset();
    assert_eq!(head, RequestHead::default());
}

#[test]
fn the_request_lines_host_has_precedence() {
    let table: &[(&str, &str, &str, bool, u16)] = &[
        ("/", "Host: Foo.:8080\r\n", "Foo", true, 8080),
        ("http://a.b:1/", "Host: Foo\r\n", "a.b", false, 1),
        ("/", "", "", false, 0),
    ];
    for &(target, fields, host, has_upper, port) in table {
        let input = format!("GET {target} HTTP/1.0\r\n{fields}\r\n").into_bytes();
        let (head, _) = parse(&input);
        let found = (head.host.of(&input), head.host_has_upper, head.port);
        assert_eq!(found, (host.as_bytes(), has_upper, port), "{target}");
    }
}

/// Buffers of 16, then two of 32.
const SMALL: HeadLimits = HeadLimits {
    client_header_buffer_size: 16,
    large_client_header_buffers: (2, 32),
    max_headers: 1000,
    ignore_invalid_headers: true,
    underscores_in_headers: false,
    pause_at_host: false,
};

#[test]
fn a_line_may_fill_one_large_buffer() {
    for (length, expected) in [(32, None), (33, Some(414))] {
        let path = "a".repeat(length - "GET / HTTP/1.0\r\n".len());
        let input = format!("GET /{path} HTTP/1.0\r\n\r\n");
        let (_, progress) = parse_with(input.as_bytes(), &SMALL);
        assert_eq!(progress.err().map(|error| error.status()), expected, "{length}");
    }
    for (length, expected) in [(32, None), (33, Some(494))] {
        let value = "a".repeat(length - "a:\r\n".len());
        let input = format!("GET / HTTP/1.0\r\na:{value}\r\n\r\n");
        let (_, progress) = parse_with(input.as_bytes(), &SMALL);
        assert_eq!(progress.err().map(|error| error.status()), expected, "{length}");
    }
}

#[test]
fn a_full_buffer_is_refused_before_its_line_ends() {
    let line = b"GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    assert_eq!(parse_with(&line[..31], &SMALL).1, Ok(HeadProgress::Partial));
    let (head, progress) = parse_with(&line[..32], &SMALL);
    assert_eq!(progress, Err(HeadError::TooLongUri));
    assert_eq!(head.line.of(line), &line[..32]);
}

#[test]
fn a_head_may_fill_as_many_large_buffers_as_allowed() {
    // The request line fills the first buffer, and no two of the other lines fit one buffer.
    let head_of = |lines: usize| {
        let fields = "a: 3456789012345678901234567890\r\n".repeat(lines);
        format!("GET / HTTP/1.0\r\n{fields}\r\n").into_bytes()
    };
    let limits = HeadLimits { large_client_header_buffers: (2, 40), ..SMALL };
    assert!(parse_with(&head_of(1), &limits).1.is_ok());
    assert!(parse_with(&head_of(2), &limits).1.is_ok());
    let error = parse_with(&head_of(3), &limits).1.expect_err("three buffers");
    assert_eq!(error.status(), 494);
}

#[test]
fn the_first_buffer_may_be_the_largest() {
    let limits =
        HeadLimits { client_header_buffer_size: 64, large_client_header_buffers: (0, 8), ..SMALL };
    assert!(parse_with(b"GET /a/path/that/is/long HTTP/1.0\r\na: b\r\n\r\n", &limits).1.is_ok());
    let input =
        b"GET / HTTP/1.0\r\nabcdefgh: 0123456789012345678901234567890123456789012345\r\n\r\n";
    assert_eq!(parse_with(input, &limits).1.expect_err("no buffer").status(), 494);
}

#[test]
fn extreme_limits_do_not_panic() {
    let limits = HeadLimits {
        client_header_buffer_size: usize::MAX,
        large_client_header_buffers: (usize::MAX, usize::MAX),
        max_headers: 0,
        ..SMALL
    };
    let (_, progress) = parse_with(b"GET / HTTP/1.0\r\n\r\n", &limits);
    assert_eq!(progress, Ok(HeadProgress::Complete { len: 18 }));
    let limits = HeadLimits {
        client_header_buffer_size: 0,
        large_client_header_buffers: (usize::MAX, 0),
        ..limits
    };
    assert_eq!(parse_with(b"", &limits).1, Ok(HeadProgress::Partial));
    assert_eq!(parse_with(b"GET / HTTP/1.0\r\n", &limits).1, Err(HeadError::TooLongUri));
}

#[test]
fn an_input_of_the_largest_size_is_never_partial() {
    assert_eq!(SMALL.input_max(), 80);
    let input = b"GET / HTTP/1.0\r\n".iter().chain(b"a:\r\n".iter().cycle());
    let input: Vec<u8> = input.copied().take(80).collect();
    assert_eq!(parse_with(&input[..79], &SMALL).1, Ok(HeadProgress::Partial));
    assert_eq!(parse_with(&input, &SMALL).1.expect_err("full").status(), 494);
}

#[test]
fn empty_lines_without_end_are_refused() {
    assert!(parse_with(b"\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n", &SMALL).1.is_ok());
    let (_, progress) = parse_with(&b"\r\n".repeat(8), &SMALL);
    assert_eq!(progress, Err(HeadError::InvalidRequest));
}

use super::*;

const LIMITS: FetchLimits = FetchLimits {
    head_bytes_max: 100,
    body_bytes_max: 10,
    connect_ms: 1,
    silence_ms: 1,
    total_ms: 1,
};

/// Reads a reply in pieces of `size` bytes; with whether another may follow. The connection ends
/// after it.
fn read(text: &[u8], to_head: bool, size: usize) -> Result<(FetchResponse, bool), String> {
    let mut reader = FetchReplyReader::new(to_head, LIMITS);
    for piece in text.chunks(size) {
        reader.receive(piece).map_err(|fault| fault.to_string())?;
    }
    if !reader.is_ended() {
        reader.close(false).map_err(|fault| fault.to_string())?;
    }
    let may_go_on = reader.may_go_on();
    Ok((reader.response(), may_go_on))
}

/// The same for every size of pieces, abbreviated: status and body, and `+` if another may follow.
fn shown(text: &str, to_head: bool) -> String {
    let show = |size| match read(text.as_bytes(), to_head, size) {
        Ok((response, may_go_on)) => {
            let end = if may_go_on { "+" } else { "" };
            format!("{} {}{end}", response.status(), response.body.escape_ascii())
        }
        Err(fault) => fault,
    };
    let whole = show(text.len().max(1));
    for size in 1..text.len() {
        assert_eq!(show(size), whole, "{text:?} by {size}");
    }
    whole
}

fn reply(rest: &str) -> String {
    shown(&format!("HTTP/1.1 {rest}"), false)
}

#[test]
fn bodies_end_by_length_chunks_or_close() {
    assert_eq!(reply("200 OK\r\nContent-Length: 3\r\n\r\nabc"), "200 abc+");
    assert_eq!(reply("404 No\r\nContent-Length: 0\r\n\r\n"), "404 +");
    let chunked = "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nA: b";
    assert_eq!(reply(&format!("{chunked}\r\n\r\n")), "200 abc+");
    assert_eq!(reply("200 OK\r\n\r\nabc"), "200 abc");
    assert_eq!(reply("200 OK\n\nabc"), "200 abc");
    assert_eq!(shown("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", false), "200 abc");
    let closes = "200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(reply(closes), "200 abc");
}

#[test]
fn replies_without_a_body_end_with_their_head() {
    assert_eq!(reply("204 No\r\nContent-Length: 3\r\n\r\n"), "204 +");
    assert_eq!(reply("304 No\r\nTransfer-Encoding: chunked\r\n\r\n"), "304 +");
    let large = "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n";
    assert_eq!(shown(large, true), "200 +");
    assert_eq!(shown("HTTP/1.1 200 OK\r\n\r\n", true), "200 +");
}

#[test]
fn a_connection_with_more_than_the_reply_does_not_go_on() {
    for text in [
        "200 OK\r\nContent-Length: 1\r\n\r\na",
        "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "204 No\r\n\r\n",
        "200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let (whole, more) = (reply(text), reply(&format!("{text}x")));
        assert_eq!(whole.strip_suffix('+'), Some(&more[..]), "{text:?}");
    }
}

#[test]
fn interim_replies_are_skipped() {
    let text = "100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabc";
    assert_eq!(reply(text), "200 abc");
    let switched = "101 Switching\r\nUpgrade: x\r\n\r\n";
    assert_eq!(reply(switched), "another protocol, unasked");
}

#[test]
fn fields_are_found_whatever_their_case() {
    let text = b"HTTP/1.1 200 OK\r\nAbc: 1\r\nX-Y:  two \r\nabc: 3\r\nContent-Length: 0\r\n\r\n";
    let (response, _) = read(text, false, 1000).expect("a reply");
    assert_eq!(response.field("ABC"), Some(&b"1"[..]));
    assert_eq!(response.field("x-y"), Some(&b"two"[..]));
    assert_eq!(response.field("x"), None);
    let names: Vec<_> = response.fields().map(|(name, _)| name).collect();
    assert_eq!(names, [&b"Abc"[..], b"X-Y", b"abc", b"Content-Length"]);
}

#[test]
fn a_reply_that_ends_early_is_an_error() {
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    for end in 0..whole.len() {
        assert_eq!(shown(&whole[..end], false), "the connection was closed early", "{end}");
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    for end in 0..chunked.len() {
        assert_eq!(shown(&chunked[..end], false), "the connection was closed early", "{end}");
    }
    let mut cut = FetchReplyReader::new(false, LIMITS);
    cut.receive(b"HTTP/1.1 200 OK\r\n\r\na").expect("well-formed");
    assert!(matches!(cut.close(true), Err(FetchFault::Closed)));
}

#[test]
fn malformed_replies_are_refused() {
    for (text, fault) in [
        ("SSH-2.0", "the reply is not HTTP"),
        ("\r\n", "the reply is not HTTP"),
        ("HTTP/1.1 20 OK\r\n", "the reply is not HTTP"),
        ("HTTP/1.1 200 OK\r\nA b: c\r\n", "invalid byte 0x20 after \"A\" in a field"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\na",
            "two fields \"content-length\"",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "invalid Content-Length \"-1\""),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "both Content-Length and Transfer-Encoding",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "unknown Transfer-Encoding \"gzip\"",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx", "invalid chunks"),
    ] {
        assert_eq!(shown(text, false), fault, "{text:?}");
    }
}

#[test]
fn heads_have_a_limit() {
    let head = |bytes: usize| {
        let rest = "HTTP/1.1 204 No\r\nA: ".len() + "\r\n\r\n".len();
        format!("HTTP/1.1 204 No\r\nA: {}\r\n\r\n", "x".repeat(bytes - rest))
    };
    let too_large = "a head of more than 100 bytes";
    assert_eq!(shown(&head(100), false), "204 +");
    assert_eq!(shown(&head(101), false), too_large);
    assert_eq!(shown(&"HTTP/1.1 200 OK\r\nA: ".repeat(50), false), too_large);
    // Interim heads count as well: these have 25 bytes each.
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(shown(&format!("{interim}{}", head(75)), false), "204 +");
    assert_eq!(shown(&format!("{interim}{}", head(76)), false), too_large);
    assert_eq!(shown(&interim.repeat(5), false), too_large);
}

#[test]
fn interim_replies_have_a_limit() {
    let limits = FetchLimits { head_bytes_max: 1 << 20, ..LIMITS };
    let mut reader = FetchReplyReader::new(false, limits);
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
    for _ in 0..INTERIM_REPLIES_MAX {
        reader.receive(interim).expect("one more");
    }
    let fault = reader.receive(interim).expect_err("too many").to_string();
    assert_eq!(fault, "more than 64 interim replies");
}

#[test]
fn bodies_have_a_limit() {
    let too_large = "a body of more than 10 bytes";
    let ten = "0123456789";
    assert_eq!(reply(&format!("200 OK\r\nContent-Length: 10\r\n\r\n{ten}")), format!("200 {ten}+"));
    assert_eq!(reply("200 OK\r\nContent-Length: 11\r\n\r\n"), too_large);
    assert_eq!(reply("200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n"), too_large);
    assert_eq!(reply(&format!("200 OK\r\n\r\n{ten}")), format!("200 {ten}"));
    assert_eq!(reply(&format!("200 OK\r\n\r\n{ten}0")), too_large);
    let chunked = "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(reply(&format!("{chunked}A\r\n{ten}\r\n0\r\n\r\n")), format!("200 {ten}+"));
    assert_eq!(reply(&format!("{chunked}A\r\n{ten}\r\n1\r\n0\r\n0\r\n\r\n")), too_large);
}

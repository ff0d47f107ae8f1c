//! The requests, as the fields of HTTP/2 that they are made of.

pub(super) type PlainField = (&'static [u8], &'static [u8]);

/// A request of HTTP/2 that a backend of HTTP/1 could read as another one.
pub(super) struct Downgrade {
    pub(super) name: &'static str,
    pub(super) pseudo: &'static [PlainField],
    pub(super) fields: &'static [PlainField],
    /// The stream ends with the head where there is none.
    pub(super) body: Option<&'static [u8]>,
    pub(super) trailers: &'static [PlainField],
}

const GET: &[PlainField] =
    &[(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")];
const POST: &[PlainField] =
    &[(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")];

/// A second request, for backends that take a body for one.
const SECOND: &[u8] = b"GET /second HTTP/1.1\r\nevil: 1\r\n\r\n";

const fn get(name: &'static str, fields: &'static [PlainField]) -> Downgrade {
    Downgrade { name, pseudo: GET, fields, body: None, trailers: &[] }
}

const fn post(name: &'static str, fields: &'static [PlainField], body: &'static [u8]) -> Downgrade {
    Downgrade { name, pseudo: POST, fields, body: Some(body), trailers: &[] }
}

const fn head(name: &'static str, pseudo: &'static [PlainField]) -> Downgrade {
    Downgrade { name, pseudo, fields: &[], body: None, trailers: &[] }
}

const fn trailers(name: &'static str, trailers: &'static [PlainField]) -> Downgrade {
    Downgrade { name, pseudo: POST, fields: &[], body: Some(b"hello"), trailers }
}

pub(super) const ALL: &[Downgrade] = &[
    get("a usual request", &[(b"x", b"y")]),
    // Names and values that would end a line.
    get("LF in a value", &[(b"x", b"y\nevil: 1")]),
    get("CR LF in a value", &[(b"x", b"y\r\nevil: 1")]),
    get("CR in a value", &[(b"x", b"y\revil: 1")]),
    get("NUL in a value", &[(b"x", b"y\0z")]),
    get("two requests in a value", &[(b"x", b"y\r\n\r\nGET /second HTTP/1.1\r\nevil: 1")]),
    get("LF in a name", &[(b"x: y\nevil", b"1")]),
    get("CR LF in a name", &[(b"x: y\r\nevil", b"1")]),
    get("NUL in a name", &[(b"x\0y", b"1")]),
    get("a colon in a name", &[(b"x: y", b"1")]),
    get("a colon at the end of a name", &[(b"x:", b"1")]),
    get("a space in a name", &[(b"x y", b"1")]),
    get("a tab in a name", &[(b"x\ty", b"1")]),
    get("capitals in a name", &[(b"X-Big", b"1")]),
    get("an empty name", &[(b"", b"1")]),
    get("DEL in a name", &[(b"x\x7f", b"1")]),
    get("a byte above 127 in a name", &[(b"x\x80", b"1")]),
    get("a byte above 127 in a value", &[(b"x", b"\xff")]),
    get("an empty value", &[(b"x", b"")]),
    get("spaces around a value", &[(b"x", b" y ")]),
    get("a tab around a value", &[(b"x", b"\ty\t")]),
    get("an underscore in a name", &[(b"x_y", b"1")]),
    // Fields of a connection.
    get("connection", &[(b"connection", b"close")]),
    get("connection that names a field", &[(b"connection", b"x"), (b"x", b"y")]),
    get("keep-alive", &[(b"keep-alive", b"timeout=5")]),
    get("proxy-connection", &[(b"proxy-connection", b"close")]),
    get("upgrade", &[(b"upgrade", b"websocket")]),
    get("http2-settings", &[(b"http2-settings", b"AAMAAABkAAQAAP__")]),
    get("te: trailers", &[(b"te", b"trailers")]),
    get("te: gzip", &[(b"te", b"gzip")]),
    get("te: chunked", &[(b"te", b"trailers, chunked")]),
    get("expect", &[(b"expect", b"100-continue")]),
    // Lengths and codings.
    post("transfer-encoding", &[(b"transfer-encoding", b"chunked")], b"0\r\n\r\n"),
    post("transfer-encoding, obscured", &[(b"transfer-encoding", b"\x0bchunked")], b"0\r\n\r\n"),
    post("transfer-encoding: identity", &[(b"transfer-encoding", b"identity")], SECOND),
    post("a body without a length", &[], b"hello"),
    post("a body that is a request", &[], SECOND),
    post("content-length", &[(b"content-length", b"5")], b"hello"),
    post("content-length, too short", &[(b"content-length", b"2")], b"hello"),
    post("content-length, too long", &[(b"content-length", b"9")], b"hello"),
    post("content-length: 0 with a body", &[(b"content-length", b"0")], SECOND),
    post("content-length, negative", &[(b"content-length", b"-1")], b"hello"),
    post("content-length with a sign", &[(b"content-length", b"+5")], b"hello"),
    post("content-length, hexadecimal", &[(b"content-length", b"0x5")], b"hello"),
    post("content-length with a space", &[(b"content-length", b"5 ")], b"hello"),
    post("content-length, empty", &[(b"content-length", b"")], b"hello"),
    post("content-length, a list", &[(b"content-length", b"5, 5")], b"hello"),
    post("content-length, huge", &[(b"content-length", b"99999999999999999999")], b"hello"),
    post(
        "content-length, twice",
        &[(b"content-length", b"5"), (b"content-length", b"5")],
        b"hello",
    ),
    post("content-length, two", &[(b"content-length", b"0"), (b"content-length", b"5")], b"hello"),
    get("content-length without a body", &[(b"content-length", b"5")]),
    // Hosts and cookies.
    get("host, the same", &[(b"host", b"a")]),
    get("host, another", &[(b"host", b"evil")]),
    get("host, twice", &[(b"host", b"a"), (b"host", b"a")]),
    get("cookies", &[(b"cookie", b"a=b"), (b"cookie", b"c=d")]),
    // Pseudo-header fields.
    get("a pseudo-header behind fields", &[(b"x", b"y"), (b":path", b"/second")]),
    get("an unknown pseudo-header", &[(b":evil", b"1")]),
    get("a pseudo-header of replies", &[(b":status", b"200")]),
    get("two paths", &[(b":path", b"/second")]),
    get("two methods", &[(b":method", b"POST")]),
    get("two authorities", &[(b":authority", b"evil")]),
    head("no authority", &[(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/")]),
    head("no path", &[(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a")]),
    head("no method", &[(b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")]),
    head("no scheme", &[(b":method", b"GET"), (b":path", b"/"), (b":authority", b"a")]),
    head("a path with a space", &with(b"GET", b"/ HTTP/1.1", b"a")),
    head("a path with CR LF", &with(b"GET", b"/ HTTP/1.1\r\nevil: 1\r\nx: y", b"a")),
    head("a path with NUL", &with(b"GET", b"/\0", b"a")),
    head("an empty path", &with(b"GET", b"", b"a")),
    head("a path without a slash", &with(b"GET", b"second", b"a")),
    head("a path that is a URL", &with(b"GET", b"http://evil/", b"a")),
    head("a path with a fragment", &with(b"GET", b"/#x", b"a")),
    head("an asterisk", &with(b"OPTIONS", b"*", b"a")),
    head("a method with a space", &with(b"GET /second", b"/", b"a")),
    head("a method with CR LF", &with(b"GET / HTTP/1.1\r\nevil: 1\r\n\r\nGET", b"/", b"a")),
    head("a method in small letters", &with(b"get", b"/", b"a")),
    head("an empty method", &with(b"", b"/", b"a")),
    head("CONNECT", &[(b":method", b"CONNECT"), (b":authority", b"a:80")]),
    head("an authority with CR LF", &with(b"GET", b"/", b"a\r\nevil: 1")),
    head("an authority with a user", &with(b"GET", b"/", b"evil@a")),
    head("an authority with a path", &with(b"GET", b"/", b"a/evil")),
    head("an authority with a space", &with(b"GET", b"/", b"a evil")),
    head("an empty authority", &with(b"GET", b"/", b"")),
    // Trailers.
    trailers("trailers", &[(b"x", b"y")]),
    trailers("trailers with a length", &[(b"content-length", b"9")]),
    trailers("trailers with CR LF", &[(b"x", b"y\r\nevil: 1")]),
    trailers("trailers with a pseudo-header", &[(b":path", b"/second")]),
];

const fn with(
    method: &'static [u8],
    path: &'static [u8],
    authority: &'static [u8],
) -> [PlainField; 4] {
    [(b":method", method), (b":scheme", b"http"), (b":path", path), (b":authority", authority)]
}

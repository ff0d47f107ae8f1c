use std::task::{Context, Poll};

use conf::{Load, MemoryFiles};

use super::map::{self, Charsets, Recoding};
use super::recode::Recoder;
use crate::exchange::{Body, BodyError, BodyLog, BodyStream, Bytes, Chunk};
use crate::testing::{TestAnswer, TestSite, TestedFilter, refusal, site};

/// Ж and ж are D6 and F6 in KOI8-R, C6 and E6 in windows-1251.
const MAPS: &str = "charset_map koi8-r windows-1251 { D6 E6; F6 C6; } \
                    charset_map windows-1251 utf-8 { C6 D096; E6 D0B6; 80 E282AC; }";

fn texts(server: &str) -> TestSite {
    let site = site(&format!("{MAPS} server {{ {server} }}"));
    site.file("koi.html", b"a\xd6\xf6\x80");
    site.file("win.html", b"a\xe6\xc6\x80\x81");
    site.file("utf.html", "aжЖ€λ\u{1f600}");
    site.file("a.bin", "x");
    site
}

fn content_type(answer: &TestAnswer) -> String {
    answer.field("content-type").unwrap()
}

#[test]
fn a_charset_is_announced() {
    let site = texts("charset koi8-r; default_type application/octet-stream;");
    assert_eq!(content_type(&site.get("/koi.html")), "text/html; charset=koi8-r");
    assert_eq!(site.get("/koi.html").bytes(), b"a\xd6\xf6\x80");
    assert_eq!(content_type(&site.get("/a.bin")), "application/octet-stream");
    assert_eq!(content_type(&site.get("/nothing")), "text/html; charset=koi8-r");
}

#[test]
fn charset_types_limits_the_types() {
    let site = texts("charset UTF-8; charset_types application/x; default_type application/X;");
    assert_eq!(content_type(&site.get("/a.bin")), "application/X; charset=utf-8");
    let site = texts("charset utf-8; charset_types *; default_type any/thing;");
    assert_eq!(content_type(&site.get("/a.bin")), "any/thing; charset=utf-8");
    let site = texts("charset_types text/x Text/X text/html;");
    let warnings = ["duplicate MIME type \"text/x\":1", "duplicate MIME type \"text/html\":1"];
    assert_eq!(site.warnings, warnings);
}

#[test]
fn off_and_inherited() {
    let site = texts("charset koi8-r; location /koi.html { charset off; }");
    assert_eq!(content_type(&site.get("/koi.html")), "text/html");
    assert_eq!(content_type(&site.get("/win.html")), "text/html; charset=koi8-r");
}

#[test]
fn redirects_have_no_charset() {
    let site = texts("charset koi8-r;");
    site.file("dir/index.html", "");
    assert_eq!(content_type(&site.get("/dir")), "text/html");
}

#[test]
fn a_map_between_charsets_of_bytes_is_applied() {
    let site = texts("source_charset koi8-r; charset windows-1251;");
    let answer = site.get("/koi.html");
    assert_eq!(content_type(&answer), "text/html; charset=windows-1251");
    assert_eq!(answer.bytes(), b"a\xe6\xc6?");
    assert_eq!(answer.field("content-length").unwrap(), "4");
    let answer = site.get_with("/koi.html", "Range: bytes=1-2\n");
    assert_eq!((answer.status(), answer.bytes()), (206, &b"\xe6\xc6"[..]));
    let back = texts("source_charset windows-1251; charset koi8-r;");
    assert_eq!(back.get("/win.html").bytes(), b"a\xd6\xf6??");
}

#[test]
fn bytes_are_converted_to_utf8() {
    let site = texts("source_charset windows-1251; charset utf-8;");
    let answer = site.get_with("/win.html", "Range: bytes=1-2\n");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "aжЖ€?"));
    assert_eq!((answer.field("content-length"), answer.field("accept-ranges")), (None, None));
}

#[test]
fn utf8_is_converted_to_bytes_or_html_entities() {
    let site = texts("source_charset utf-8; charset windows-1251;");
    let answer = site.get("/utf.html");
    assert_eq!(answer.bytes(), b"a\xe6\xc6\x80&#955;&#128512;");
    assert_eq!(answer.field("content-length"), None);
}

#[test]
fn equal_charsets_are_not_converted() {
    let site = texts("source_charset KOI8-R; charset koi8-r;");
    let answer = site.get("/koi.html");
    assert_eq!(
        (answer.from_file, content_type(&answer)),
        (true, "text/html; charset=koi8-r".into())
    );
}

#[test]
fn charsets_from_variables() {
    let site = texts("source_charset $arg_from; charset $arg_to;");
    let ask = |args: &str| site.get(&format!("/win.html?{args}"));
    assert_eq!(ask("from=windows-1251&to=utf-8").body(), "aжЖ€?");
    assert_eq!(content_type(&ask("from=windows-1251&to=UTF-8")), "text/html; charset=UTF-8");
    assert_eq!(content_type(&ask("from=mine&to=Mine")), "text/html; charset=Mine");
    assert_eq!(content_type(&ask("from=koi8-r&to=utf-8")), "text/html");
    assert_eq!(content_type(&ask("from=koi8-r&to=other")), "text/html");
    assert!(!ask("to=utf-8").replied);
    assert!(!ask("from=utf-8").replied);
}

#[test]
fn handlers_can_query_whether_pages_are_utf8() {
    let site =
        texts("charset $arg_c; location /u { charset UTF-8; } location /off { charset off; }");
    let is_utf8 = |uri: &str| super::is_utf8(&mut site.get(uri).x);
    assert!(is_utf8("/u") && is_utf8("/?c=utf-8"));
    assert!(!is_utf8("/off") && !is_utf8("/?c=koi8-r") && !is_utf8("/"));
}

#[test]
fn invalid_directives_are_refused() {
    let map = |head: &str, lines: &str| refusal(&format!("charset_map {head} {{\n{lines}\n}}"));
    let same = "\"charset_map\" between the same charsets \"a\" and \"A\":1";
    assert_eq!(map("a A", ""), same);
    let column = "\"charset_map\" with \"utf-8\" charset should be given in the second column:1";
    assert_eq!(map("UTF-8 a", ""), column);
    assert_eq!(
        refusal("charset_map a b { } charset_map b a { }"),
        "duplicate \"charset_map\" between \"b\" and \"a\":1"
    );
    assert_eq!(map("a b", "C0;"), "invalid parameters number:2");
    assert_eq!(map("a b", "C0 C1 C2;"), "invalid parameters number:2");
    for (line, word) in [("100 C0", "100"), ("'' C0", ""), ("x C0", "x"), ("C0 100", "100")] {
        assert_eq!(map("a b", &format!("{line};")), format!("invalid value \"{word}\":2"));
    }
    for word in ["", "41", "D0", "D0B", "D0B00", "D041", "F09F9880", "+D0B0", "xyz1"] {
        let expected = format!("invalid value \"{word}\":2");
        assert_eq!(map("a utf-8", &format!("C0 '{word}';")), expected);
    }
    assert_eq!(
        refusal("server { source_charset a; charset b; }"),
        "no \"charset_map\" between the charsets \"a\" and \"b\""
    );
    assert_eq!(refusal("server { charset $; }"), "invalid variable name \"$\":1");
}

/// Pieces of a body, in reverse order.
struct Pieces(Vec<Vec<u8>>);

impl BodyStream for Pieces {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        Poll::Ready(Ok(self.0.pop().map(|piece| Chunk::Bytes(Bytes::Owned(piece)))))
    }
}

/// From UTF-8 to windows-1251.
fn recoding() -> Recoding {
    let mut files = MemoryFiles::default().with("/maps", MAPS);
    let (_, tree) = conf::parse(b"/maps", b"/", None, &mut files).into_result();
    let mut load = Load::new(&mut files, "/".as_ref(), "/".as_ref());
    tree.unwrap().root.iter().for_each(|line| map::declare(line, &mut load).unwrap());
    let charsets = Charsets::shared(&mut load);
    let find = |name: &str| charsets.find(name.as_bytes()).unwrap();
    charsets.recoding(find("utf-8"), find("windows-1251")).unwrap().clone()
}

fn from_utf8(pieces: &[&[u8]]) -> Vec<u8> {
    let pieces = pieces.iter().rev().map(|piece| piece.to_vec()).collect();
    let body = Body::Stream(Box::new(Pieces(pieces)));
    TestedFilter::new(body, Recoder::new(recoding())).text()
}

#[test]
fn characters_may_be_cut_anywhere() {
    let text = "aж€λ\u{1f600}b".as_bytes();
    let whole = from_utf8(&[text]);
    assert_eq!(whole, b"a\xe6\x80&#955;&#128512;b");
    let bytes: Vec<&[u8]> = text.chunks(1).collect();
    assert_eq!(from_utf8(&bytes), whole);
    for at in 0..text.len() {
        let (start, end) = text.split_at(at);
        assert_eq!(from_utf8(&[start, end]), whole, "{at}");
    }
}

#[test]
fn invalid_characters_become_question_marks() {
    for (pieces, expected) in [
        (&[&b"\xd0"[..], b"a"][..], &b"?"[..]),
        (&[b"\xe2\x82", b"ab"], b"?b"),
        (&[b"\xf0\x9f", b"\x98a", b"b"], b"?b"),
        (&[b"\x80\x81"], b"??"),
        (&[b"a\xd0"], b"a"),
    ] {
        assert_eq!(from_utf8(pieces), expected, "{pieces:?}");
    }
}

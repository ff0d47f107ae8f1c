use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::{RangeCut, multipart, single};
use crate::exchange::{Body, BodyError, BodyLog, BodyStream, Bytes, Chunk, Reply};
use crate::testing::{TestAnswer, TestSite, TestedFilter, site};

/// A site with a file of ten bytes.
fn digits(settings: &str) -> TestSite {
    let site = site(&format!("server {{ {settings} }}"));
    site.file("a.html", "0123456789");
    site
}

fn ask(site: &TestSite, range: &str) -> TestAnswer {
    site.get_with("/a.html", &format!("Range: bytes={range}\n"))
}

#[test]
fn ranges_are_offered() {
    let answer = digits("").get("/a.html");
    assert_eq!(answer.field("accept-ranges").unwrap(), "bytes");
    assert_eq!(digits("max_ranges 0;").get("/a.html").field("accept-ranges"), None);
    assert_eq!(
        digits("").send("HEAD /a.html HTTP/1.0\n\n").field("accept-ranges").unwrap(),
        "bytes"
    );
    let not_a_file = site("server { location / { return 200 x; } }");
    assert_eq!(not_a_file.get("/").field("accept-ranges"), None);
}

#[test]
fn one_range() {
    let site = digits("");
    for (range, body, content_range) in [
        ("0-3", "0123", "bytes 0-3/10"),
        ("8-", "89", "bytes 8-9/10"),
        ("-1", "9", "bytes 9-9/10"),
        ("5-100", "56789", "bytes 5-9/10"),
    ] {
        let answer = ask(&site, range);
        assert_eq!((answer.status(), answer.body().as_str()), (206, body));
        assert_eq!(answer.field("content-range").unwrap(), content_range);
        assert_eq!(answer.field("content-length").unwrap(), body.len().to_string());
        assert_eq!(answer.field("accept-ranges"), None);
        assert_eq!(answer.field("content-type").unwrap(), "text/html");
    }
}

#[test]
fn a_range_of_a_file_is_not_read() {
    assert!(ask(&digits(""), "2-3").from_file);
    assert!(ask(&digits(""), "2-3,5-6").from_file);
}

#[test]
fn a_range_of_memory_is_not_copied() {
    let kept: Rc<[u8]> = b"0123456789"[..].into();
    let mut x = digits("").get("/a.html").x;
    x.reply.body = Body::Bytes(Bytes::Kept(kept.clone(), 1, 9));
    single(&mut x, 2..5, 8);
    let Body::Bytes(bytes) = x.reply.body.take() else { panic!("bytes stay bytes") };
    assert_eq!(bytes.as_ref(), b"345");
    assert_eq!(bytes.as_ref().as_ptr(), kept[3..].as_ptr());
}

#[test]
fn an_unsatisfiable_range_is_416() {
    let answer = ask(&digits(""), "10-");
    assert_eq!(answer.status(), 416);
    assert!(answer.body().contains("416 Requested Range Not Satisfiable"));
    assert_eq!(answer.field("content-range").unwrap(), "bytes */10");
    assert_eq!(answer.field("content-type").unwrap(), "text/html");
    assert_eq!(answer.field("content-length").unwrap(), answer.body().len().to_string());
    assert_eq!((answer.field("etag"), answer.field("last-modified")), (None, None));
    assert!(answer.x.keeps_connection());
}

#[test]
fn error_page_applies_to_416() {
    let site = digits("error_page 416 =200 /sorry; location /sorry { return 200 sorry; }");
    let answer = ask(&site, "10-");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "sorry"));
}

#[test]
fn several_ranges() {
    let answer = ask(&digits(""), "0-1,-3");
    assert_eq!(answer.status(), 206);
    let content_type = answer.field("content-type").unwrap();
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
    assert!(boundary.len() == 20 && boundary.bytes().all(|byte| byte.is_ascii_digit()));
    let part = |range: &str, content: &str| {
        format!(
            "\r\n--{boundary}\r\nContent-Type: text/html\r\n\
             Content-Range: bytes {range}/10\r\n\r\n{content}"
        )
    };
    let end = format!("\r\n--{boundary}--\r\n");
    assert_eq!(answer.body(), part("0-1", "01") + &part("7-9", "789") + &end);
    assert_eq!(answer.field("content-length").unwrap(), answer.body().len().to_string());
    assert_eq!((answer.field("content-range"), answer.field("accept-ranges")), (None, None));
}

#[test]
fn several_ranges_of_memory_are_sent() {
    let mut reply = Reply::default();
    reply.set_bytes(Bytes::Static(b"0123456789"));
    reply.charset.extend_from_slice(b"utf-8");
    multipart::answer(&mut reply, vec![0..1, 8..10], 10);
    let text = read(reply.body.take(), 0..1000);
    assert_eq!(text.matches("\r\nContent-Range: bytes ").count(), 2);
    assert!(text.contains("0-0/10\r\n\r\n0\r\n--") && text.contains("8-9/10\r\n\r\n89\r\n--"));
    assert!(!text.contains("Content-Type") && reply.charset.is_empty());
    assert_eq!(reply.content_length, Some(text.len() as u64));
}

#[test]
fn boundaries_are_unique() {
    let site = digits("");
    let boundary = || ask(&site, "0-0,2-2").field("content-type");
    assert_ne!(boundary(), boundary());
}

#[test]
fn too_many_ranges_are_ignored() {
    let answer = ask(&digits("max_ranges 1;"), "0-1,3-4");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "0123456789"));
    assert_eq!(answer.field("accept-ranges").unwrap(), "bytes");
    assert_eq!(ask(&digits("max_ranges 1;"), "0-1").status(), 206);
    assert_eq!(ask(&digits("max_ranges 0;"), "0-1").status(), 200);
}

#[test]
fn if_range_with_another_tag_sends_the_whole_body() {
    let site = digits("");
    let whole = site.get("/a.html");
    let (etag, date) = (whole.field("etag").unwrap(), whole.field("last-modified").unwrap());
    for (condition, status) in [
        (&etag[..], 206),
        (&date[..], 206),
        ("\"other\"", 200),
        (&format!("W/{etag}")[..], 200),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ("nonsense", 200),
        ("\"", 200),
    ] {
        let answer = site.get_with("/a.html", &format!("Range: bytes=1-\nIf-Range: {condition}\n"));
        assert_eq!(answer.status(), status, "{condition}");
    }
}

#[test]
fn ranges_apply_to_status_200_only() {
    let site = digits("location /e { error_page 404 /a.html; }");
    let answer = site.get_with("/e", "Range: bytes=0-3\n");
    assert_eq!((answer.status(), answer.body().as_str()), (404, "0123456789"));
    assert_eq!(answer.field("accept-ranges"), None);
}

struct Pieces(Vec<&'static str>);

impl BodyStream for Pieces {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let piece = self.0.pop();
        Poll::Ready(Ok(piece.map(|text| Chunk::Bytes(Bytes::Static(text.as_bytes())))))
    }
}

fn read(body: Body, range: Range<u64>) -> String {
    String::from_utf8(TestedFilter::new(body, RangeCut::new(range)).text()).unwrap()
}

#[test]
fn a_range_is_cut_from_pieces() {
    for (range, expected) in [(0..9, "abcdefghi"), (1..2, "b"), (2..7, "cdefg"), (6..9, "ghi")] {
        let body = Body::Stream(Box::new(Pieces(vec!["ghi", "", "def", "abc"])));
        assert_eq!(read(body, range), expected);
    }
}

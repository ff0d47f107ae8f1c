use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use zlib_rs::{Inflate, InflateFlush, Status};

use super::settings::GzipSettings;
use super::whole::WHOLE_MAX;
use super::{Gzip, Ratio, pool, write_ratio};
use crate::exchange::{Body, BodyError, BodyLog, BodyStream, Bytes, Chunk, Fields};
use crate::testing::{TestAnswer, TestSite, TestedFilter, refusal, refused, site};

const TEXT: &str = "<p>What is said twice is said twice is said twice.</p>";

fn texts(settings: &str) -> TestSite {
    let site = site(&format!("server {{ gzip on; {settings} }}"));
    for name in ["a.html", "a.txt", "a.css"] {
        site.file(name, TEXT);
    }
    site.file("short.html", "too short");
    site
}

fn ask(site: &TestSite, target: &str) -> TestAnswer {
    site.get_with(target, "Accept-Encoding: gzip\n")
}

fn coding(answer: &TestAnswer) -> Option<String> {
    answer.field("content-encoding")
}

/// Expands bytes as far as possible. Returns the text and whether it is complete.
fn expanded(bytes: &[u8]) -> (String, bool) {
    let mut inflate = Inflate::new(true, 31);
    let mut text = vec![0; 8 << 20];
    let status = inflate.decompress(bytes, &mut text, InflateFlush::SyncFlush).unwrap();
    text.truncate(inflate.total_out() as usize);
    (String::from_utf8(text).unwrap(), matches!(status, Status::StreamEnd))
}

#[test]
fn a_reply_is_compressed() {
    let answer = ask(&texts(""), "/a.html");
    assert_eq!(coding(&answer).unwrap(), "gzip");
    assert_eq!(expanded(answer.bytes()), (TEXT.to_owned(), true));
    assert_eq!((answer.field("content-length"), answer.field("accept-ranges")), (None, None));
    assert!(answer.field("etag").unwrap().starts_with("W/\""));
    assert!(answer.field("last-modified").is_some());
}

#[test]
fn the_shortest_body_is_compressed() {
    let site =
        texts(&format!("default_type text/html; location / {{ return 200 {}; }}", "x".repeat(40)));
    let answer = ask(&site, "/");
    assert!(answer.bytes().len() < 40, "{}", answer.bytes().len());
}

#[test]
fn only_clients_that_accept_gzip_receive_it() {
    let site = texts("");
    assert_eq!(coding(&site.get("/a.html")), None);
    assert_eq!(coding(&site.get_with("/a.html", "Accept-Encoding: gzip;q=0\n")), None);
    let old = site.send("GET /a.html HTTP/1.0\nAccept-Encoding: gzip\n\n");
    assert_eq!(coding(&old), None);
    assert_eq!(old.field("accept-ranges").unwrap(), "bytes");
}

#[test]
fn a_head_reply_announces_gzip() {
    let head = "HEAD /a.html HTTP/1.1\nHost: localhost\nAccept-Encoding: gzip\n\n";
    let answer = texts("").send(head);
    assert_eq!((coding(&answer).unwrap().as_str(), answer.field("content-length")), ("gzip", None));
}

#[test]
fn types_and_lengths() {
    let default = texts("");
    assert_eq!(coding(&ask(&default, "/a.txt")), None);
    assert_eq!(coding(&ask(&default, "/short.html")), None);
    let text =
        texts("types { text/plain txt; text/html html; text/css css; } gzip_types text/plain;");
    for (target, compressed) in [("/a.txt", true), ("/a.html", true), ("/a.css", false)] {
        assert_eq!(coding(&ask(&text, target)).is_some(), compressed, "{target}");
    }
    assert!(coding(&ask(&texts("gzip_types *;"), "/a.css")).is_some());
    assert!(coding(&ask(&texts("gzip_min_length 0;"), "/short.html")).is_some());
    let long = texts("gzip_min_length 1k;");
    assert_eq!(coding(&ask(&long, "/a.html")), None);
}

#[test]
fn statuses() {
    for (status, compressed) in
        [(200, true), (403, true), (404, true), (201, false), (206, false), (500, false)]
    {
        let site =
            texts(&format!("default_type text/html; location / {{ return {status} \"{TEXT}\"; }}"));
        let answer = ask(&site, "/");
        assert_eq!((answer.status(), coding(&answer).is_some()), (status, compressed));
    }
}

#[test]
fn encoded_replies_are_not_compressed() {
    let site = texts("gzip_static always; gzip_types *; gzip_min_length 0;");
    site.file("a.html.gz", "encoded");
    let answer = ask(&site, "/a.html");
    assert_eq!((coding(&answer).unwrap().as_str(), answer.body().as_str()), ("gzip", "encoded"));
    // As in nginx, `Content-Encoding` of `add_header` is ignored.
    let site = texts("location / { add_header Content-Encoding br; }");
    assert_eq!(coding(&ask(&site, "/a.html")).unwrap(), "br, gzip");
}

#[test]
fn ranges_refer_to_the_uncompressed_body() {
    let site = texts("");
    let answer = site.get_with("/a.html", "Accept-Encoding: gzip\nRange: bytes=0-3\n");
    assert_eq!((answer.status(), coding(&answer).unwrap().as_str()), (200, "gzip"));
    let answer = site.get_with("/a.html", "Range: bytes=0-3\n");
    assert_eq!((answer.status(), coding(&answer)), (206, None));
}

#[test]
fn charsets_are_converted_before_compression() {
    let site = site(
        "charset_map windows-1251 utf-8 { C0 D090; } \
         server { gzip on; source_charset windows-1251; charset utf-8; gzip_min_length 1; }",
    );
    site.file("a.html", b"\xc0\xc0");
    let answer = ask(&site, "/a.html");
    assert_eq!(expanded(answer.bytes()).0, "\u{410}\u{410}");
    assert_eq!(answer.field("content-type").unwrap(), "text/html; charset=utf-8");
}

#[test]
fn invalid_directives_are_refused() {
    for (line, message) in [
        ("gzip_comp_level 0", "value must be between 1 and 9:1"),
        ("gzip_comp_level x", "\"gzip_comp_level\" directive invalid number:1"),
        ("gzip_window 1", window()),
        ("gzip_window 256", window()),
        ("gzip_window 64k", window()),
        ("gzip_hash 256", hash()),
        ("gzip_hash 256k", hash()),
        ("gzip_window x", "\"gzip_window\" directive invalid value:1"),
        ("gzip_buffers 0 4k", "\"gzip_buffers\" directive invalid value:1"),
        ("gzip_min_length x", "\"gzip_min_length\" directive invalid value:1"),
    ] {
        refused(&format!("{line};"), message);
    }
    for size in ["512", "1k", "32k"] {
        site(&format!("gzip_window {size};"));
        site(&format!("gzip_hash {size};"));
    }
    assert_eq!(refusal("gzip maybe;").split(" in ").next().unwrap(), "invalid value \"maybe\"");
}

fn window() -> &'static str {
    "\"gzip_window\" directive must be 512, 1k, 2k, 4k, 8k, 16k, or 32k:1"
}

fn hash() -> &'static str {
    "\"gzip_hash\" directive must be 512, 1k, 2k, 4k, 8k, 16k, 32k, 64k, or 128k:1"
}

#[test]
fn ratios() {
    let ratio = |before, after| {
        let mut out = Vec::new();
        write_ratio(before, after, &mut out).then(|| String::from_utf8(out).unwrap())
    };
    assert_eq!(ratio(100, 0), None);
    assert_eq!(ratio(17, 8).unwrap(), "2.13");
    assert_eq!(ratio(1_999_999, 1_000_000).unwrap(), "2.00");
    assert_eq!(ratio(1, 20).unwrap(), "0.05");
    assert_eq!(ratio(u64::MAX, 1).unwrap(), "18446744073709551615.00");
}

#[test]
fn the_ratio_is_logged() {
    let text = "a".repeat(1000);
    let site = site(&format!(
        "log_format ratio $gzip_ratio; default_type text/html; \
         server {{ gzip on; access_log ratio.log ratio; location / {{ return 200 {text}; }} }}"
    ));
    site.open_logs();
    ask(&site, "/");
    site.get("/");
    let log = site.log("ratio.log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[1], "-");
    let ratio: f64 = lines[0].parse().unwrap();
    assert!(ratio > 20.0, "{ratio}");
}

/// One result of a scripted source.
enum Give {
    Text(String),
    Later,
    Pause,
    Flush,
    Trailers,
    Error,
}

struct Source(Rc<RefCell<VecDeque<Give>>>);

impl BodyStream for Source {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let chunk = match self.0.borrow_mut().pop_front() {
            Some(Give::Text(text)) => Chunk::Bytes(Bytes::Owned(text.into_bytes())),
            Some(Give::Later) => return Poll::Pending,
            Some(Give::Pause) => Chunk::Pause,
            Some(Give::Flush) => Chunk::Flush,
            Some(Give::Trailers) => Chunk::Trailers(Fields::default()),
            Some(Give::Error) => return Poll::Ready(Err(BodyError::UpstreamClosed)),
            None => return Poll::Ready(Ok(None)),
        };
        Poll::Ready(Ok(Some(chunk)))
    }
}

fn settings() -> GzipSettings {
    GzipSettings {
        level: 1,
        window_bits: 15,
        mem_level: 8,
        piece_max: 128 * 1024,
        postpone: 0,
        no_buffer: false,
    }
}

/// Compresses a source's pieces. Returns a word for each piece that is not bytes, and the bytes.
fn run(
    gives: Vec<Give>,
    settings: GzipSettings,
    length: Option<u64>,
    events: bool,
) -> (String, Vec<u8>) {
    let source = Source(Rc::new(RefCell::new(gives.into())));
    let body = Body::Stream(Box::new(source));
    let mut stream = TestedFilter::new(body, Gzip::new(Arc::new(settings), length, events));
    let (mut words, mut bytes) = (String::new(), Vec::new());
    for _ in 0..100_000 {
        let word = match stream.poll() {
            Poll::Ready(Ok(Some(Chunk::Bytes(piece)))) => {
                assert!(!piece.is_empty());
                bytes.extend_from_slice(piece.as_ref());
                "piece "
            }
            Poll::Ready(Ok(Some(Chunk::Flush))) => "flush ",
            Poll::Ready(Ok(Some(Chunk::Pause))) => "pause ",
            Poll::Ready(Ok(Some(_))) => panic!("a piece that nobody gave"),
            Poll::Ready(Ok(None)) => {
                assert_eq!(stream.x.states.of::<Ratio>().after, bytes.len() as u64);
                return (words + "end", bytes);
            }
            Poll::Ready(Err(_)) => return (words + "error", bytes),
            Poll::Pending => "later ",
        };
        words.push_str(word);
    }
    panic!("it does not end");
}

fn text(length: usize) -> String {
    // Words that differ between sentences.
    let mut text = String::new();
    let mut seed = 1_u32;
    while text.len() < length {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(
            ["alpha ", "beta ", "gamma ", "delta ", "epsilon "][(seed >> 24) as usize % 5],
        );
        text.push_str(&(seed >> 20).to_string());
    }
    text.truncate(length);
    text
}

fn pieces(text: &str, size: usize) -> Vec<Give> {
    let piece = |bytes: &[u8]| Give::Text(String::from_utf8(bytes.to_vec()).unwrap());
    text.as_bytes().chunks(size).map(piece).collect()
}

#[test]
fn pieces_are_compressed_to_the_same_text() {
    for length in [0, 1, 4096, 65_536, 65_537, 300_000, 2_000_000] {
        let text = text(length);
        for size in [700, 32_768] {
            for known in [None, Some(length as u64)] {
                for window_bits in [9, 15] {
                    let settings = GzipSettings { window_bits, ..settings() };
                    let (words, bytes) = run(pieces(&text, size), settings, known, false);
                    assert!(words.ends_with("piece end"), "{length} {size} {known:?}");
                    assert!(expanded(&bytes) == (text.clone(), true), "{length} {size} {known:?}");
                }
            }
        }
    }
}

#[test]
fn gzip_buffers_limits_a_piece() {
    let text = text(100_000);
    let settings = GzipSettings { piece_max: 100, ..settings() };
    let (words, bytes) = run(pieces(&text, 10_000), settings, None, false);
    assert_eq!(words.matches("piece").count(), bytes.len().div_ceil(100));
    assert!(expanded(&bytes) == (text, true));
}

#[test]
fn a_flush_outputs_all_input() {
    let gives = [
        Give::Text("one".into()),
        Give::Flush,
        Give::Later,
        Give::Text("two".into()),
        Give::Flush,
        Give::Flush,
        Give::Later,
    ];
    for piece_max in [1, 65, 65_536] {
        let source = Rc::new(RefCell::new(VecDeque::from(
            gives.iter().map(Give::again).collect::<Vec<_>>(),
        )));
        let body = Body::Stream(Box::new(Source(source)));
        let settings = Arc::new(GzipSettings { piece_max, ..settings() });
        let mut stream = TestedFilter::new(body, Gzip::new(settings, None, false));
        let mut bytes = Vec::new();
        let mut until_later = || loop {
            match stream.poll() {
                Poll::Ready(Ok(Some(Chunk::Bytes(piece)))) => {
                    bytes.extend_from_slice(piece.as_ref());
                }
                Poll::Ready(Ok(Some(Chunk::Flush))) => {}
                Poll::Pending => return expanded(&bytes),
                _ => panic!("it is not over"),
            }
        };
        assert_eq!(until_later(), ("one".into(), false), "{piece_max}");
        assert_eq!(until_later(), ("onetwo".into(), false), "{piece_max}");
    }
}

impl Give {
    fn again(&self) -> Self {
        match self {
            Self::Text(text) => Self::Text(text.clone()),
            Self::Later => Self::Later,
            Self::Pause => Self::Pause,
            Self::Flush => Self::Flush,
            Self::Trailers => Self::Trailers,
            Self::Error => Self::Error,
        }
    }
}

#[test]
fn a_pause_flushes_event_streams_only() {
    let gives = || vec![Give::Text("one".into()), Give::Pause, Give::Later];
    let (words, bytes) = run(gives(), settings(), None, false);
    assert_eq!(words, "later piece end");
    assert_eq!(expanded(&bytes), ("one".into(), true));
    let (words, bytes) = run(gives(), settings(), None, true);
    assert_eq!(words, "piece flush later piece end");
    assert_eq!(expanded(&bytes), ("one".into(), true));
}

#[test]
fn gzip_no_buffer_outputs_immediately() {
    let gives = || {
        let mut gives = pieces(&text(400_000), 40_000);
        gives.push(Give::Later);
        gives.push(Give::Text("more".into()));
        gives
    };
    let with = run(gives(), settings(), None, false).0;
    let without = run(gives(), GzipSettings { no_buffer: true, ..settings() }, None, false).0;
    // The source was pending, and a piece was returned nevertheless.
    assert!(with.contains("later") && !without.contains("later"));
}

#[test]
fn a_failed_body_has_no_gzip_trailer() {
    for length in [10, 100_000, 1_000_000] {
        let mut gives = pieces(&text(length), 10_000);
        gives.push(Give::Error);
        let (words, bytes) = run(gives, settings(), None, false);
        assert!(words.ends_with("error"));
        assert!(bytes.is_empty() || !expanded(&bytes).1, "{length}");
    }
}

#[test]
fn trailers_are_passed_on() {
    for length in [10, 500_000] {
        let mut gives = pieces(&text(length), 10_000);
        gives.push(Give::Trailers);
        let (words, bytes) = run(gives, settings(), None, false);
        assert!(words.ends_with("piece end"), "{words}");
        assert!(expanded(&bytes).1);
    }
}

#[test]
fn postpone_gzipping_does_not_change_the_output() {
    let text = text(WHOLE_MAX + 10_000);
    let settings = GzipSettings { postpone: 1 << 20, ..settings() };
    let (_, bytes) = run(pieces(&text, 10_000), settings, None, false);
    assert!(expanded(&bytes) == (text, true));
}

#[test]
fn the_number_of_kept_compressors_is_limited() {
    // The pool belongs to a thread, so the test needs a thread of its own.
    std::thread::spawn(|| {
        let bodies: Vec<_> = (0..20)
            .map(|_| {
                let gives = vec![Give::Text(text(100_000)), Give::Later];
                let source = Source(Rc::new(RefCell::new(gives.into())));
                let body = Body::Stream(Box::new(source));
                let gzip = Gzip::new(Arc::new(settings()), None, false);
                let mut stream = TestedFilter::new(body, gzip);
                while stream.poll().is_ready() {}
                stream
            })
            .collect();
        assert_eq!(pool::kept(), 0);
        drop(bodies);
        assert_eq!(pool::kept(), 4);
    })
    .join()
    .unwrap();
}

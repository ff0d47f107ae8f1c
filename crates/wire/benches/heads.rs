//! The cost of parsing heads, in instructions per byte: `cargo bench -p wire --bench heads`.
//!
//! Callgrind counts the instructions, so the figures are the same on a busy machine; valgrind must
//! be installed. The program runs itself with two numbers of rounds; the difference is the cost of
//! a round, without that of starting.

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::hint::black_box;
use std::process::Command;

use wire::http1::framing::RequestFraming;
use wire::http1::request::{HeadProgress, RequestHeadParser};
use wire::http1::response::{ReplyBody, ResponseHeadParser};
use wire::reply::ReplyHead;
use wire::request::{HeadLimits, RequestHead};

/// Seven fields, as a browser sends them.
const BROWSER: &[u8] = b"GET /null?i=12345 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: identity\r\nReferer: http://127.0.0.1/start\r\n\
    Cookie: id=8f14e45fceea167a; theme=dark\r\n\r\n";

/// A request of Chromium; half of the names are in no table.
const CHROMIUM: &[u8] = b"GET /assets/app.css HTTP/1.1\r\nHost: www.example.com\r\n\
    Connection: keep-alive\r\nsec-ch-ua-platform: \"Linux\"\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/140.0.0.0 Safari/537.36\r\nsec-ch-ua-mobile: ?0\r\nAccept: text/css,*/*;q=0.1\r\n\
    Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: style\r\n\
    Referer: https://www.example.com/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Accept-Language: en-US,en;q=0.9\r\n\r\n";

const CURL: &[u8] =
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.28.0\r\n\
    Date: Mon, 23 Nov 2026 04:20:00 GMT\r\nContent-Type: text/html; charset=utf-8\r\n\
    Content-Length: 5120\r\nConnection: keep-alive\r\nCache-Control: max-age=600\r\n\
    ETag: \"5f3e-61a0\"\r\nLast-Modified: Sun, 22 Nov 2026 10:00:00 GMT\r\n\r\n";

const SHORT_REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nServer: weir\r\n\
    Date: Mon, 23 Nov 2026 04:20:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\
    Connection: keep-alive\r\n\r\n";

/// A name, a head, and whether the head is a request's.
const ROWS: [(&str, &[u8], bool); 5] = [
    ("request of a browser, seven fields", BROWSER, true),
    ("request of Chromium", CHROMIUM, true),
    ("request of curl", CURL, true),
    ("reply, eight fields", REPLY, false),
    ("reply, five fields", SHORT_REPLY, false),
];

const ROUNDS: [u64; 2] = [1000, 3000];

fn main() {
    let words: Vec<_> = env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    match words[..] {
        [row, rounds] => run(row, rounds),
        _ => report(),
    }
}

fn report() {
    for (row, (name, head, _)) in ROWS.iter().enumerate() {
        let [few, many] = ROUNDS.map(|rounds| count(row, rounds));
        let each = (many - few) as f64 / (ROUNDS[1] - ROUNDS[0]) as f64;
        let bytes = head.len();
        println!("{name}: {each:.0} instructions, {bytes} bytes, {:.2}", each / bytes as f64);
    }
}

/// The instructions of a run.
fn count(row: usize, rounds: u64) -> u64 {
    let this = env::current_exe().expect("a program");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args([row.to_string(), rounds.to_string()])
        .output()
        .expect("valgrind is installed");
    let text = String::from_utf8_lossy(&output.stderr);
    let (_, count) = text.rsplit_once("Collected : ").expect("a count");
    count.split_whitespace().next().and_then(|count| count.parse().ok()).expect("a number")
}

fn run(row: u64, rounds: u64) {
    let (_, head, is_request) = ROWS[row as usize];
    let (mut request, mut reply) = (RequestHead::default(), ReplyHead::default());
    for _ in 0..rounds {
        if is_request {
            parse_request(black_box(head), &mut request);
        } else {
            parse_reply(black_box(head), &mut reply);
        }
    }
}

fn parse_request(input: &[u8], head: &mut RequestHead) {
    head.reset();
    let limits = black_box(HeadLimits::default());
    let progress = RequestHeadParser::default().parse(head, input, &limits);
    assert!(matches!(progress, Ok(HeadProgress::Complete { .. })));
    black_box(RequestFraming::of(head, input, false).is_ok());
}

fn parse_reply(input: &[u8], head: &mut ReplyHead) {
    head.reset();
    let mut parser = ResponseHeadParser::default();
    assert!(matches!(parser.parse(head, input), Ok(Some(_))));
    black_box(ReplyBody::of(head, input, false).is_ok() && !parser.closes(head, input));
}

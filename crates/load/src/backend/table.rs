//! The options, and the text of `--help`: what they mean, stated exactly.

use crate::options::{self, Choice};

const fn row(short: char, long: &'static str, value: &'static str, help: &'static str) -> Choice {
    Choice { short, long, value, help }
}

pub(super) const TABLE: &[Choice] = &[
    row(
        'l',
        "listen",
        "<ADDRESS>",
        "HTTP: PORT, IP:PORT, unix:PATH; port 0 is a free one\n(repeatable; 127.0.0.1:8081)",
    ),
    row('t', "threads", "<N>", "Threads that serve (1)"),
    row('b', "body", "<TEXT>", "The body of every reply (\"Hello, world!\")"),
    row('\0', "body-file", "<FILE>", "The same, out of a file"),
    row('\0', "size", "<SIZE>", "A body of so many bytes: the letters a to z, over and over"),
    row('\0', "echo", "", "The body is that of the request"),
    row(
        '\0',
        "whoami",
        "",
        "The body is the request as it arrived: its head, and its body's length",
    ),
    row('s', "status", "<STATUS>", "The status of every reply (200)"),
    row('H', "header", "<LINE>", "\"Name: value\" in every reply (repeatable)"),
    row('\0', "chunked", "", "Bodies in chunks"),
    row('\0', "trickle", "<SIZE>", "Sends bodies so many bytes a second, the head at once"),
    row('\0', "sleep", "<TIME>", "Sleeps before it answers: 50ms, or as chance has it 0..1s"),
    row('\0', "slow", "<ALONE,BEST>", "Sleeps the longer the more requests are in progress"),
    row('\0', "spin", "<N>", "Then burns CPU: so many additions"),
    row('\0', "pool", "<N>", "Serves so many requests at once; the others wait in turn"),
    row('\0', "pool-queue", "<N>", "Closes the connection where so many wait already (no limit)"),
    row('\0', "pause", "<TIME/PERIOD>", "Answers nothing for a time at the end of each period"),
    row('\0', "error", "<SHARE>", "Answers a share of the requests, such as 1%, with an error"),
    row('\0', "error-status", "<STATUS>", "Which one (500)"),
    row('\0', "disconnect", "<SHARE>", "Closes the connection instead of answering"),
    row('\0', "reset", "<SHARE>", "Resets it instead of answering"),
    row('\0', "cut", "<SHARE>", "Closes it in the middle of the reply's body"),
    row('\0', "delay", "<SHARE:TIME>", "Sleeps so much longer for a share (repeatable)"),
    row('\0', "seed", "<N>", "Another seed, other chances (0)"),
    row('\0', "log", "<FILE>", "A line for each request"),
    row('\0', "tcp-echo", "<ADDRESS>", "Sends back what comes over TCP (repeatable)"),
    row('\0', "udp-echo", "<ADDRESS>", "Sends back datagrams (repeatable)"),
    row('h', "help", "", "This text"),
];

const ABOUT: &str = "A backend for tests and measurements.

usage: weir backend [OPTIONS]

";

const MODELS: &str = "
When it is ready it prints a line for each address: listening on http://127.0.0.1:8081
SIGINT and SIGTERM end it; it prints then what it counted.

GET /_stats                   What was counted, as JSON. Neither these requests are counted nor
                              connections that begin with one.
GET /_stats/reset             Counts from nothing again; schedule and chances begin again, too.

Each address is a backend of its own: the models below know nothing of the others.

Time      What a request sleeps is the sum of --sleep, --slow and --delay. It is never too short.
--slow    With n requests in progress, itself among them, one sleeps ALONE * (1 + (n / BEST)^2).
          Requests per second are the most with BEST of them, and half as many with nearly four
          times as many. With --pool, n counts those that are served.
--pool    A request is served from when its body has arrived until the last of its reply is about
          to be written. Others wait without end, or where --pool-queue are waiting already, their
          connection is closed without a reply. This is what Tomcat does (maxThreads, and its
          executor's maxQueueSize).
--pause   1s/10s: periods of 10 s since the first request; nothing is answered in the last second of
          each. What would be answered then is answered when it ends.
--error   A request fares badly in one way at most. Which ones do depends on the seed and their
          number in the order of arrival alone.
--log     Arrived, begun and written in microseconds since 1970, status, bytes, method and target.
          Arrived: its head was complete. Begun: the first byte of the reply was about to be
          written, or the connection closed instead (then the status is 0).
in_progress  In the counts: from when a head is complete until the last of the reply is about to be
          written, so a client that takes one reply at a time is never counted twice.
";

/// The text of `--help`.
pub(super) fn help() -> String {
    format!("{ABOUT}{}{MODELS}", options::help(TABLE))
}

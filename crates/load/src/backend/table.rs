//! The options of `weir backend` and the text of `--help`, which defines them precisely.

use crate::options::{self, OptionRow};

const fn row(
    short: char,
    long: &'static str,
    value: &'static str,
    help: &'static str,
) -> OptionRow {
    OptionRow { short, long, value, help }
}

pub(super) const TABLE: &[OptionRow] = &[
    row(
        'l',
        "listen",
        "ADDRESS",
        "HTTP address: PORT, IP:PORT or unix:PATH; port 0 is a\n\
         free port (repeatable; default: 127.0.0.1:8081)",
    ),
    row('t', "threads", "N", "threads (default: 1)"),
    row('b', "body", "TEXT", "body of every response (default: \"Hello, world!\")"),
    row('\0', "body-file", "FILE", "read the body from a file"),
    row('\0', "size", "SIZE", "a body of this size: the letters a to z, repeated"),
    row('\0', "echo", "", "respond with the request's body"),
    row('\0', "whoami", "", "respond with the request's head and the length of its body"),
    row('\0', "upgrade", "", "switch protocols where asked to, then send back what arrives"),
    row('s', "status", "STATUS", "status of every response (default: 200)"),
    row('H', "header", "LINE", "add \"Name: value\" to every response (repeatable)"),
    row('\0', "chunked", "", "send bodies in chunks"),
    row('\0', "trickle", "SIZE", "send this much of the body per second, the head at once"),
    row('\0', "sleep", "TIME", "sleep before responding: 50ms, or random: 0..1s"),
    row('\0', "slow", "ALONE,BEST", "sleep longer the more requests are in progress"),
    row('\0', "spin", "N|TIME", "then use the CPU for N additions, or for a time: 4.2ms"),
    row('\0', "pool", "N", "serve N requests at once; others wait in order"),
    row('\0', "pool-queue", "N", "close the connection if N requests wait (default: no limit)"),
    row('\0', "pause", "TIME/PERIOD", "respond to nothing during the last TIME of each PERIOD"),
    row('\0', "error", "SHARE", "answer a share of requests, such as 1%, with an error"),
    row('\0', "error-status", "STATUS", "status of these errors (default: 500)"),
    row('\0', "disconnect", "SHARE", "close the connection instead of responding"),
    row('\0', "reset", "SHARE", "reset the connection instead of responding"),
    row('\0', "cut", "SHARE", "close the connection in the middle of the body"),
    row('\0', "delay", "SHARE:TIME", "sleep longer for a share of requests (repeatable)"),
    row('\0', "seed", "N", "seed of the random choices (default: 0)"),
    row('\0', "log", "FILE", "write a line per request"),
    row('\0', "tcp-echo", "ADDRESS", "TCP echo (repeatable)"),
    row('\0', "udp-echo", "ADDRESS", "UDP echo (repeatable)"),
    row('v', "version", "", "print the version"),
    row('h', "help", "", "print this help"),
];

const ABOUT: &str = "\
Usage: weir backend [OPTIONS]

Runs a backend for tests and measurements. Once it is ready, it prints a line for each address
(listening on http://127.0.0.1:8081). SIGINT and SIGTERM stop it; it then prints its counters.

Options:
";

const MODELS: &str = "
Counters:
  GET /_stats        the counters as JSON; these requests, and connections that start with one, are
                     not counted
  GET /_stats/reset  reset the counters, the schedule of --pause and the random choices

Models (each address is a separate backend):
  Time      A request sleeps for the sum of --sleep, --slow and --delay, and never less.
  --slow    With n requests in progress, including itself, a request sleeps
            ALONE * (1 + (n / BEST)^2). The most requests per second are served with BEST requests
            in progress, and half as many with nearly four times as many. With --pool, n counts the
            requests being served.
  --pool    A request is served from when its body has arrived until the end of its response is
            about to be written. Others wait without limit, or, if --pool-queue requests already
            wait, their connection is closed without a response. This models Tomcat (maxThreads, and
            maxQueueSize of its executor).
  --pause   1s/10s: periods of 10 s since the first request. Responses due in the last second of a
            period are sent at its end.
  --error   At most one kind of failure applies to a request. Which requests fail depends only on
            the seed and on their number in order of arrival.
  --log     Columns: arrived, begun and written in microseconds since 1970, status, bytes, method,
            target. Arrived: the head was complete. Begun: the first byte of the response was about
            to be written, or the connection was closed instead (then the status is 0).
  in_progress
            In the counters: requests from when their head is complete until the end of the response
            is about to be written. A client that waits for each response is never counted twice.
";

pub(super) fn help() -> String {
    format!("{ABOUT}{}{MODELS}", options::help(TABLE))
}

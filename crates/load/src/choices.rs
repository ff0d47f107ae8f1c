//! The options of `weir load`, and the text of `--help`.

use crate::options::Choice;

/// wrk's options, and then ours.
pub(crate) const CHOICES: &[Choice] = &[
    choice('c', "connections", "<N>", "Connections to keep open (10)"),
    choice('d', "duration", "<T>", "Duration of test (10s)"),
    choice('t', "threads", "<N>", "Number of threads to use (2)"),
    choice('s', "script", "<S>", "Load Lua script file"),
    choice('H', "header", "<H>", "Add header to request"),
    choice('\0', "latency", "", "Print latency statistics"),
    choice('\0', "timeout", "<T>", "Socket/request timeout (2s)"),
    choice('v', "version", "", "Print version details"),
    choice('h', "help", "", "Print this"),
    choice(
        '\0',
        "rate",
        "<R>",
        "Open loop: start so many requests a second, whatever the\n\
         server does: 5000, or 1000..20000/60s to go from one to the other.\n\
         Latency counts from the moment a request should have started",
    ),
    choice('n', "requests", "<N>", "Send so many requests, then stop"),
    choice('\0', "close", "", "A new connection for every request"),
    choice('\0', "per-connection", "<N>", "A new connection after so many requests"),
    choice('\0', "pipeline", "<N>", "Send so many requests at once, one behind the other"),
    choice('m', "method", "<M>", "Method (GET; POST with a body)"),
    choice('b', "body", "<TEXT>", "Body of every request; the message for tcp:// and udp://"),
    choice('\0', "body-file", "<FILE>", "The same from a file"),
    choice('\0', "weights", "<N,N...>", "How often each of several URLs is asked for"),
    choice(
        '\0',
        "list",
        "<FILE>",
        "Requests from a file, in order, one a line:\n\"/path\" or \"METHOD /path\"",
    ),
    choice('\0', "from", "<IP,IP...>", "Addresses that connections come from, in turn"),
    choice(
        '\0',
        "percentiles",
        "<P,P...>",
        "Percentiles of latency to print, such as 50,90,99,99.9\n\
         (open loop: 50,75,90,99,99.9,99.99)",
    ),
    choice(
        '\0',
        "expect",
        "<E>",
        "What the run must keep to, or the exit code is 3 (repeatable):\n\
         'p99<20ms', 'errors<0.1%', 'status(5xx)=0', 'rate>5k'",
    ),
    choice(
        '\0',
        "against",
        "<URL>",
        "Compare with another server (A, the baseline) in one run:\n\
         both take turns, in blocks of ABBA or BAAB at random",
    ),
    choice('\0', "turn", "<T>", "How long a turn is (a fortieth of the time, at most 1s)"),
    choice('\0', "json", "<FILE>", "Write everything measured; -: standard output"),
    choice('\0', "hlog", "<FILE>", "Write latencies second by second as HdrHistogram log"),
    choice('\0', "repeat", "<N>", "Run so often, to know the noise"),
    choice(
        '\0',
        "search",
        "<PX=T>",
        "The highest rate at which a percentile of latency stays\nbelow a time: p99=10ms",
    ),
    choice('q', "quiet", "", "Print results and errors, and nothing else"),
];

const fn choice(
    short: char,
    long: &'static str,
    value: &'static str,
    help: &'static str,
) -> Choice {
    Choice { short, long, value, help }
}

/// The way to call it.
pub(crate) const USAGE: &str = "\
Usage: weir load <options> <url>...
       weir load compare <a.json> <b.json>
";

/// What comes after the options.
pub(crate) const ABOUT: &str = "
    Numeric arguments may include a SI unit (1k, 1M, 1G)
    Time arguments may include a time unit (100ms, 2s, 2m, 2h)
    URLs: http://host:port/path, http://unix:/socket:/path,
          tcp://host:port and udp://host:port for servers that send back what they get
          A user and a password (http://user:password@host/) are sent as Authorization: Basic
    Without --rate the loop is closed: each connection waits for a reply before it asks again.
    Exit code: 0: it ran, and kept to what was expected; 1: wrong options, no server, or no
               reply at all; 3: an expectation was broken
";

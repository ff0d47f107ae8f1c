//! The options of `weir load` and the text of `--help`.

use crate::options::OptionRow;

/// wrk's options, then those that wrk does not have.
pub(crate) const CHOICES: &[OptionRow] = &[
    choice('c', "connections", "N", "connections to keep open (default: 10)"),
    choice('d', "duration", "T", "duration of the test (default: 10s)"),
    choice('t', "threads", "N", "threads (default: 2)"),
    choice('s', "script", "FILE", "run a Lua script"),
    choice('H', "header", "LINE", "add a header field to every request (repeatable)"),
    choice('\0', "latency", "", "print latency statistics"),
    choice('\0', "timeout", "T", "timeout of a request (default: 2s)"),
    choice('v', "version", "", "print the version"),
    choice('h', "help", "", "print this help"),
    choice(
        '\0',
        "rate",
        "R",
        "open loop: start R requests per second, regardless of responses:\n\
         5000, or 1000..20000/60s for a ramp; latency counts from the\n\
         scheduled start of each request",
    ),
    choice('n', "requests", "N", "send N requests, then stop"),
    choice('\0', "close", "", "use a new connection for every request"),
    choice('\0', "per-connection", "N", "use a new connection after N requests"),
    choice('\0', "idle", "N", "keep N more connections open that are silent after one reply"),
    choice(
        '\0',
        "slow",
        "N[,RATE]",
        "N more connections that read their replies slowly, each RATE\n\
         bytes per second (default: 64k); they are not in the results",
    ),
    choice('\0', "pipeline", "N", "send N requests at once on a connection"),
    choice('\0', "h2", "", "speak HTTP/2: over https://, and without TLS over http://"),
    choice('\0', "streams", "N", "HTTP/2: requests at once on a connection (default: 1)"),
    choice('m', "method", "NAME", "method (default: GET, or POST with a body)"),
    choice('b', "body", "TEXT", "body of every request; message for tcp:// and udp://"),
    choice('\0', "body-file", "FILE", "read the body from a file"),
    choice('\0', "weights", "N,N...", "how often each of several URLs is requested"),
    choice(
        '\0',
        "list",
        "FILE",
        "send the requests of a file in order, one per line:\n\"/path\" or \"METHOD /path\"",
    ),
    choice('\0', "tls", "VERSION", "TLS version of https://, 1.2 or 1.3 (default: both)"),
    choice(
        '\0',
        "ciphers",
        "LIST",
        "cipher suites in OpenSSL's notation; names of TLS 1.3 and\n\
         TLS 1.2 can be mixed: TLS_AES_128_GCM_SHA256:ECDHE+AESGCM",
    ),
    choice(
        '\0',
        "groups",
        "LIST",
        "key exchange groups, best first (default: X25519 and others,\n\
         see docs/load.md); X25519MLKEM768:X25519:prime256v1",
    ),
    choice('\0', "resume", "", "new connections resume earlier TLS sessions"),
    choice('\0', "alpn", "LIST", "application protocols to offer (default: http/1.1)"),
    choice('\0', "sni", "NAME", "server name to send instead of the URL's host"),
    choice(
        '\0',
        "cacert",
        "FILE",
        "verify the server's certificate with the CAs in this file\n\
         (default: accept any certificate)",
    ),
    choice('\0', "cert", "FILE", "client certificate, and its key unless --key is given"),
    choice('\0', "key", "FILE", "key of the client certificate"),
    choice('\0', "from", "IP,IP...", "source addresses, used in turn"),
    choice(
        '\0',
        "percentiles",
        "P,P...",
        "latency percentiles to print, such as 50,90,99,99.9\n\
         (default of the open loop: 50,75,90,99,99.9,99.99)",
    ),
    choice(
        '\0',
        "expect",
        "E",
        "exit with code 3 unless this is true (repeatable):\n\
         'p99<20ms', 'errors<0.1%', 'status(5xx)=0', 'rate>5k'",
    ),
    choice(
        '\0',
        "against",
        "URL",
        "compare with another server (A, the baseline) in one run;\n\
         they take turns, in random blocks of ABBA or BAAB",
    ),
    choice('\0', "turn", "T", "length of a turn (default: 1/40 of the duration, at most 1s)"),
    choice(
        '\0',
        "on-demand",
        "",
        "for each line of standard input, run a turn of --duration and\n\
         print its results as a line of JSON; connections stay open",
    ),
    choice('\0', "wait-idle", "T", "wait at most this long while the machine is busy"),
    choice('\0', "json", "FILE", "write all results as JSON; - is standard output"),
    choice('\0', "hlog", "FILE", "write latencies per second as HdrHistogram log"),
    choice('\0', "repeat", "N", "repeat the run N times, to show the noise"),
    choice(
        '\0',
        "search",
        "PX=T",
        "find the highest rate at which a latency percentile\n\
         stays below a bound, such as p99=10ms",
    ),
    choice('q', "quiet", "", "print only results and errors"),
];

const fn choice(
    short: char,
    long: &'static str,
    value: &'static str,
    help: &'static str,
) -> OptionRow {
    OptionRow { short, long, value, help }
}

/// The text before the options.
pub(crate) const USAGE: &str = "\
Usage: weir load [OPTIONS] URL...
       weir load compare A.json B.json

Measures a server with wrk's options and more. Without --rate the loop is closed: each connection
waits for a response before it sends the next request.

Options:
";

/// The text after the options.
pub(crate) const ABOUT: &str = "
URLs: http://host:port/path, https://host:port/path, http://unix:/socket:/path, and for echo
servers tcp://host:port and udp://host:port. The user and password in
http://user:password@host/ are sent as Basic authorization.

Numbers can have a unit (1k, 1M, 1G), and so can times (100ms, 2s, 2m, 2h).

Exit code: 0 if the run took place and kept all expectations; 1 on wrong options, an unreachable
server or a run without any response; 3 if an expectation was broken.
";

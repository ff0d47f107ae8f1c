//! What is measured, as data: a row is its load and the configuration it needs.
//!
//! `{http}`, `{https}`, `{tcp}` and `{backend}` are ports, `{d}` the folder of this run,
//! `{seconds}` the length of a measurement. The goals are the "must" of the project's numbers: the
//! ratio to nginx that a lean path reaches, lower being better.

pub(super) struct Row {
    pub(super) name: &'static str,
    /// Highest ratio weir/nginx.
    pub(super) goal: f64,
    /// Whether weir can do this work today; other rows are measured only when named.
    pub(super) today: bool,
    pub(super) work: Work,
    /// Asked for by the load, and once by curl to compare the answers.
    pub(super) url: &'static str,
    /// Lines inside `http { }`, and inside its `server { }`.
    pub(super) http: &'static str,
    pub(super) server: &'static str,
    /// Whether nginx stands behind the server as its backend.
    pub(super) backend: bool,
}

pub(super) enum Work {
    /// CPU time per request under this program, which is given the URL as its last word.
    Load(&'static str),
    /// Memory per idle connection.
    Idle,
}

const WRK: Work = Work::Load("wrk -t1 -c64 -d{seconds}s");
const WRK_512: Work = Work::Load("wrk -t1 -c512 -d{seconds}s");
const WRK_CLOSE: Work = Work::Load("wrk -t1 -c64 -d{seconds}s -s {d}/close.lua");

const NULL: &str = "location = /null { return 200 \"hello world\"; }";
const FILES: &str = "location / {
        root {d}/www; sendfile on; tcp_nopush on;
        open_file_cache max=10000 inactive=60s;
        open_file_cache_valid 80s; open_file_cache_min_uses 1;
    }";
const POOL: &str = "upstream up {
        server 127.0.0.1:{backend}; keepalive 128; keepalive_requests 100000000;
    }";
const PROXY: &str = "location = /proxy {
        proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection \"\";
    }";
const FRESH: &str = "location = /fresh {
        proxy_pass http://127.0.0.1:{backend};
        proxy_http_version 1.0; proxy_set_header Connection close;
    }";
/// The idle connections need more pairs of ports than one address of the client's is sure to have.
const NULL_ON_MORE_ADDRESSES: &str = "listen 127.0.0.2:{http} backlog=4096;
    listen 127.0.0.3:{http} backlog=4096; listen 127.0.0.4:{http} backlog=4096;
    location = /null { return 200 \"hello world\"; }";

/// What most rows leave as it is.
const PLAIN: Row = Row {
    name: "",
    goal: 0.0,
    today: true,
    work: WRK,
    url: "http://127.0.0.1:{http}/null",
    http: "",
    server: NULL,
    backend: false,
};

const fn file(name: &'static str, url: &'static str, goal: f64) -> Row {
    Row { name, goal, url, server: FILES, ..PLAIN }
}

const fn proxied(name: &'static str, goal: f64, work: Work) -> Row {
    let url = "http://127.0.0.1:{http}/proxy";
    Row { name, goal, work, url, http: POOL, server: PROXY, backend: true, today: false }
}

pub(super) const ROWS: &[Row] = &[
    Row { name: "null", goal: 0.92, ..PLAIN },
    file("1k", "http://127.0.0.1:{http}/1k.bin", 0.75),
    file("10k", "http://127.0.0.1:{http}/10k.bin", 0.90),
    file("100k", "http://127.0.0.1:{http}/100k.bin", 0.50),
    Row { name: "close", goal: 1.0, work: WRK_CLOSE, ..PLAIN },
    Row { name: "idle", goal: 0.6, work: Work::Idle, server: NULL_ON_MORE_ADDRESSES, ..PLAIN },
    proxied("proxy", 0.85, WRK),
    proxied("proxy512", 0.50, WRK_512),
    Row {
        url: "http://127.0.0.1:{http}/fresh",
        http: "",
        server: FRESH,
        ..proxied("fresh", 1.0, WRK)
    },
];

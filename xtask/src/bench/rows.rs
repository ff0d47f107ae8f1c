//! What is measured, as data: a row is its load and the configuration it needs.
//!
//! `{http}`, `{https}`, `{tcp}`, `{udp}` and `{backend}` are ports, `{d}` the folder of this run,
//! `{seconds}` the length of a measurement of a load generator. The goals are the "must" of the
//! project's numbers: the ratio to nginx that a lean path reaches, lower being better.

use super::idle::IdleConnections;

pub(super) struct BenchRow {
    pub(super) name: &'static str,
    /// Highest ratio weir/nginx.
    pub(super) goal: f64,
    pub(super) work: BenchWork,
    /// Asked for by the load, and once by curl to compare the answers.
    pub(super) url: &'static str,
    /// Lines inside `http { }`, and inside its `server { }`.
    pub(super) http: &'static str,
    pub(super) server: &'static str,
    /// Blocks beside `http { }`.
    pub(super) main: &'static str,
    pub(super) backend: BenchBackend,
}

#[derive(Clone, Copy)]
pub(super) enum BenchBackend {
    None,
    Nginx,
    /// `weir backend --upgrade`: switches protocols and sends back what comes.
    Tunnels,
    /// `weir backend --udp-echo`: sends datagrams back.
    Datagrams,
}

pub(super) enum BenchWork {
    /// CPU time per request in short turns.
    Load(TurnLoad),
    /// Memory per idle connection.
    Idle(IdleConnections),
    /// CPU time per request of the load generator itself: `weir load` with these options, and
    /// another one with its own; the server is nginx.
    Generator { weir: &'static str, peer: &'static str },
}

impl BenchWork {
    /// What its requests carry if they are datagrams.
    pub(super) fn datagram(&self) -> Option<&'static str> {
        match self {
            Self::Load(turn) => Some(turn.body).filter(|body| !body.is_empty()),
            Self::Idle(_) | Self::Generator { .. } => None,
        }
    }

    /// Whether its requests are those of HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        match self {
            Self::Load(turn) => turn.streams > 0,
            Self::Idle(_) => false,
            Self::Generator { weir, .. } => weir.contains("--h2"),
        }
    }
}

/// What `weir load` does in a turn, in a closed loop.
pub(super) struct TurnLoad {
    pub(super) connections: usize,
    /// A new connection for each request.
    pub(super) close: bool,
    /// Requests that never repeat, with a browser's fields.
    pub(super) vary: bool,
    /// Requests at once on a connection, with HTTP/2; 0: HTTP/1.1, one at a time.
    pub(super) streams: usize,
    pub(super) fields: &'static [&'static str],
    /// What a datagram carries; a request has none.
    pub(super) body: &'static str,
}

impl BenchRow {
    /// What Weir is compared with.
    pub(super) fn peer(&self) -> &'static str {
        match self.work {
            BenchWork::Generator { peer, .. } => {
                peer.split_once(' ').map_or(peer, |(program, _)| program)
            }
            BenchWork::Load(_) | BenchWork::Idle(_) => "nginx",
        }
    }

    pub(super) fn has_tls(&self) -> bool {
        self.url.starts_with("https:")
    }
}

const TURN: TurnLoad =
    TurnLoad { connections: 64, close: false, vary: false, streams: 0, fields: &[], body: "" };
const KEPT: BenchWork = BenchWork::Load(TURN);
const MANY: BenchWork = BenchWork::Load(TurnLoad { connections: 512, ..TURN });
const ALONE: BenchWork = BenchWork::Load(TurnLoad { connections: 1, ..TURN });
const VARY: BenchWork = BenchWork::Load(TurnLoad { vary: true, ..TURN });
const CLOSE: BenchWork = BenchWork::Load(TurnLoad { close: true, ..TURN });
const GZIP: BenchWork =
    BenchWork::Load(TurnLoad { connections: 16, fields: &["Accept-Encoding: gzip"], ..TURN });

const HANDSHAKES: BenchWork = BenchWork::Load(TurnLoad { connections: 32, close: true, ..TURN });
const STREAMS: BenchWork = BenchWork::Load(TurnLoad { connections: 16, streams: 32, ..TURN });

/// Datagrams of 64 bytes, and clients that are sessions.
const DATAGRAMS: TurnLoad = TurnLoad {
    connections: 256,
    body: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ..TURN
};
const SESSIONS: BenchWork = BenchWork::Load(DATAGRAMS);
const SESSION: BenchWork = BenchWork::Load(TurnLoad { connections: 1, ..DATAGRAMS });
const UDP: &str = "stream {
    server { listen 127.0.0.1:{udp} udp; proxy_pass 127.0.0.1:{backend}; }
}";

const GENERATOR: BenchWork =
    BenchWork::Generator { weir: "-t1 -c64 -d{seconds}s", peer: "wrk -t1 -c64 -d{seconds}s" };
const GENERATOR_CLOSE: BenchWork = BenchWork::Generator {
    weir: "-t1 -c64 -d{seconds}s --close",
    peer: "wrk -t1 -c64 -d{seconds}s -s {d}/close.lua",
};
const GENERATOR_STREAMS: BenchWork = BenchWork::Generator {
    weir: "-t1 -c16 -d{seconds}s --h2 --streams 32",
    peer: "h2load -t1 -c16 -m32 -D{seconds}",
};

const NULL: &str = "location = /null { return 200 \"hello world\"; }";
const FILES: &str = "location / {
        root {d}/www; sendfile on; tcp_nopush on;
        open_file_cache max=10000 inactive=60s;
        open_file_cache_valid 80s; open_file_cache_min_uses 1;
    }";
/// The same group and cipher suite on both sides; no session is resumed.
const TLS: &str = "listen 127.0.0.1:{https} ssl backlog=4096;
    ssl_certificate {d}/ecdsa.crt; ssl_certificate_key {d}/ecdsa.key;
    ssl_protocols TLSv1.3; ssl_ecdh_curve X25519;
    ssl_session_cache off; ssl_session_tickets off;
    location / {
        root {d}/www;
        open_file_cache max=10000 inactive=60s;
        open_file_cache_valid 80s; open_file_cache_min_uses 1;
    }
    location = /null { return 200 \"hello world\"; }";
const TLS_RSA: &str = "listen 127.0.0.1:{https} ssl backlog=4096;
    ssl_certificate {d}/rsa.crt; ssl_certificate_key {d}/rsa.key;
    ssl_protocols TLSv1.3; ssl_ecdh_curve X25519;
    ssl_session_cache off; ssl_session_tickets off;
    location = /null { return 200 \"hello world\"; }";
/// In the notation that older versions of nginx know, too.
const TLS_HTTP2: &str = "listen 127.0.0.1:{https} ssl http2 backlog=4096;
    ssl_certificate {d}/ecdsa.crt; ssl_certificate_key {d}/ecdsa.key;
    ssl_protocols TLSv1.3; ssl_ecdh_curve X25519;
    ssl_session_cache off; ssl_session_tickets off;
    location = /null { return 200 \"hello world\"; }";
/// HTTP/2 without TLS.
const HTTP2: &str = "listen 127.0.0.1:{https} http2 backlog=4096;
    location = /null { return 200 \"hello world\"; }";
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
const IDLE: &str = "listen 127.0.0.2:{http} backlog=4096;
    listen 127.0.0.3:{http} backlog=4096; listen 127.0.0.4:{http} backlog=4096;
    location = /null { return 200 \"hello world\"; }
    location = /tunnel {
        proxy_pass http://127.0.0.1:{backend}; proxy_http_version 1.1; proxy_read_timeout 1h;
        proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
    }";
const IDLE_KEPT: BenchWork = BenchWork::Idle(IdleConnections {
    connections: 10_000,
    talk: &[("GET /null HTTP/1.1\r\nHost: localhost\r\n\r\n", "hello world")],
});
const TUNNELS: BenchWork = BenchWork::Idle(IdleConnections {
    connections: 5_000,
    talk: &[
        (
            "GET /tunnel HTTP/1.1\r\nHost: localhost\r\n\
             Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            "\r\n\r\n",
        ),
        // No frames: what goes through a tunnel is nothing to the server.
        ("hello", "hello"),
    ],
});

/// What most rows leave as it is.
const PLAIN: BenchRow = BenchRow {
    name: "",
    goal: 0.0,
    work: KEPT,
    url: "http://127.0.0.1:{http}/null",
    http: "",
    server: NULL,
    main: "",
    backend: BenchBackend::None,
};

const fn file(name: &'static str, url: &'static str, goal: f64) -> BenchRow {
    BenchRow { name, goal, url, server: FILES, ..PLAIN }
}

const fn secured(name: &'static str, goal: f64, work: BenchWork) -> BenchRow {
    let url = "https://127.0.0.1:{https}/null";
    BenchRow { name, goal, work, url, server: TLS, ..PLAIN }
}

const fn gzip(name: &'static str, http: &'static str) -> BenchRow {
    let url = "http://127.0.0.1:{http}/100k.html";
    BenchRow { http, work: GZIP, ..file(name, url, 0.80) }
}

const fn proxied(name: &'static str, goal: f64, work: BenchWork) -> BenchRow {
    let url = "http://127.0.0.1:{http}/proxy";
    let (http, backend) = (POOL, BenchBackend::Nginx);
    BenchRow { name, goal, work, url, http, server: PROXY, backend, ..PLAIN }
}

const fn datagrams(name: &'static str, goal: f64, work: BenchWork) -> BenchRow {
    let url = "udp://127.0.0.1:{udp}";
    BenchRow { name, goal, work, url, main: UDP, backend: BenchBackend::Datagrams, ..PLAIN }
}

pub(super) const ROWS: &[BenchRow] = &[
    BenchRow { name: "null", goal: 0.88, ..PLAIN },
    BenchRow { name: "null-vary", goal: 0.80, work: VARY, ..PLAIN },
    BenchRow { name: "null-alone", goal: 0.92, work: ALONE, ..PLAIN },
    file("1k", "http://127.0.0.1:{http}/1k.bin", 0.60),
    file("10k", "http://127.0.0.1:{http}/10k.bin", 0.75),
    file("100k", "http://127.0.0.1:{http}/100k.bin", 0.75),
    gzip("gzip", "gzip on;"),
    gzip("gzip5", "gzip on; gzip_comp_level 5;"),
    BenchRow { name: "close", goal: 0.95, work: CLOSE, ..PLAIN },
    BenchRow { name: "idle", goal: 0.5, work: IDLE_KEPT, server: IDLE, ..PLAIN },
    proxied("proxy", 0.82, KEPT),
    proxied("proxy-vary", 0.78, VARY),
    proxied("proxy-alone", 0.95, ALONE),
    proxied("proxy512", 0.50, MANY),
    BenchRow {
        url: "http://127.0.0.1:{http}/fresh",
        http: "",
        server: FRESH,
        ..proxied("fresh", 0.93, KEPT)
    },
    secured("tls", 0.85, KEPT),
    BenchRow { url: "https://127.0.0.1:{https}/100k.bin", ..secured("tls100k", 0.80, KEPT) },
    secured("handshake", 0.65, HANDSHAKES),
    BenchRow { server: TLS_RSA, ..secured("handshake-rsa", 0.65, HANDSHAKES) },
    BenchRow { server: TLS_HTTP2, ..secured("h2", 0.90, STREAMS) },
    BenchRow {
        name: "tunnels",
        goal: 1.0,
        work: TUNNELS,
        server: IDLE,
        backend: BenchBackend::Tunnels,
        ..PLAIN
    },
    datagrams("udp", 0.80, SESSIONS),
    datagrams("udp-alone", 1.10, SESSION),
    BenchRow { name: "load", goal: 0.85, work: GENERATOR, ..PLAIN },
    BenchRow { name: "loadclose", goal: 0.85, work: GENERATOR_CLOSE, ..PLAIN },
    BenchRow { work: GENERATOR, ..file("load100k", "http://127.0.0.1:{http}/100k.bin", 0.85) },
    secured("loadtls", 0.85, GENERATOR),
    secured("loadhandshake", 0.85, GENERATOR_CLOSE),
    BenchRow {
        url: "http://127.0.0.1:{https}/null",
        server: HTTP2,
        ..secured("loadh2", 0.85, GENERATOR_STREAMS)
    },
    BenchRow { server: TLS_HTTP2, ..secured("loadh2tls", 0.85, GENERATOR_STREAMS) },
];

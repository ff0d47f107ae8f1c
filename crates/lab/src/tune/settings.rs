//! The settings worth trying. To add one, add a row to [`SETTINGS`].
//!
//! Deliberately absent: settings that change replies or logs (`gzip`, `access_log off`), and
//! `proxy_buffering off`, which looks good under a load from the same machine but lets slow clients
//! keep backends busy.

use sandbox::{EditableDirective, EditableTree};

use super::edits::{BlockLine, TuneEdit, passes_to_addresses};
use super::server::TunedServer;

/// A setting worth trying.
#[derive(Debug)]
pub(super) struct TuneSetting {
    pub(super) name: &'static str,
    /// At most one setting of a subject is kept.
    pub(super) subject: &'static str,
    /// The reason to try it, in a sentence.
    pub(super) why: &'static str,
    /// The servers for which it may matter.
    pub(super) servers: fn(TunedServer) -> bool,
    /// The configurations for which it may matter. Settings whose edits change nothing are left out
    /// in any case.
    pub(super) when: fn(&EditableTree) -> bool,
    pub(super) edits: &'static [TuneEdit],
}

const WORKERS: TuneEdit = line(&[], &["worker_processes", "auto"], is_auto);
const SENDFILE: TuneEdit = line(&["http"], &["sendfile", "on"], is_on);
const ZONE: TuneEdit = line(&["http"], &["limit_upstream_zone", "tuned", "1m"], anything);
const VERSION: TuneEdit = line(&["http"], &["proxy_http_version", "1.1"], is_recent);

const NOT_HTTP_1_0: TuneEdit = TuneEdit::Everywhere {
    old: &["proxy_http_version", "1.0"],
    new: &["proxy_http_version", "1.1"],
};
const NOT_CLOSE: TuneEdit = TuneEdit::Everywhere {
    old: &["proxy_set_header", "Connection", "close"],
    new: &["proxy_set_header", "Connection", ""],
};

const KEEPALIVE_WHY: &str =
    "connections to backends are kept, and requests need no handshake with them";

pub(super) const SETTINGS: &[TuneSetting] = &[
    TuneSetting {
        name: "workers",
        subject: "workers",
        why: "one worker for each processor",
        edits: &[WORKERS],
        ..ALWAYS
    },
    TuneSetting {
        name: "pinned-workers",
        subject: "workers",
        why: "one worker for each processor, which stays on it and finds its data in its cache",
        edits: &[WORKERS, line(&[], &["worker_cpu_affinity", "auto"], anything)],
        ..ALWAYS
    },
    TuneSetting {
        name: "worker-connections",
        subject: "worker-connections",
        why: "each worker may hold more connections; those above the limit are not served",
        edits: &[line(&["events"], &["worker_connections", "8192"], is_at_least_4096)],
        ..ALWAYS
    },
    TuneSetting {
        name: "multi-accept",
        subject: "multi-accept",
        why: "a worker takes all waiting connections at once, which saves calls when many arrive",
        edits: &[line(&["events"], &["multi_accept", "on"], is_on)],
        ..ALWAYS
    },
    TuneSetting {
        name: "reuseport",
        subject: "reuseport",
        why: "each worker has its own queue of new connections, so they are spread evenly",
        servers: is_nginx,
        edits: &[TuneEdit::EachListen { parameter: "reuseport" }],
        ..ALWAYS
    },
    TuneSetting {
        name: "backlog",
        subject: "backlog",
        why: "more new connections may wait; the kernel drops those above the limit",
        edits: &[TuneEdit::EachListen { parameter: "backlog=4096" }],
        ..ALWAYS
    },
    TuneSetting {
        name: "deferred",
        subject: "deferred",
        why: "a connection reaches its worker together with its first request",
        servers: is_nginx,
        edits: &[TuneEdit::EachListen { parameter: "deferred" }],
        ..ALWAYS
    },
    TuneSetting {
        name: "upstream-keepalive-32",
        subject: "upstream-keepalive",
        why: KEEPALIVE_WHY,
        servers: keeps_backends,
        edits: &[
            TuneEdit::GroupOfEachAddress { keepalive: "32" },
            TuneEdit::EachUpstream { line: &["keepalive", "32"] },
            NOT_HTTP_1_0,
            NOT_CLOSE,
        ],
        ..PROXY
    },
    TuneSetting {
        name: "upstream-keepalive-128",
        subject: "upstream-keepalive",
        why: KEEPALIVE_WHY,
        servers: keeps_backends,
        edits: &[
            TuneEdit::GroupOfEachAddress { keepalive: "128" },
            TuneEdit::EachUpstream { line: &["keepalive", "128"] },
            NOT_HTTP_1_0,
            NOT_CLOSE,
        ],
        ..PROXY
    },
    TuneSetting {
        name: "upstream-keepalive-32",
        subject: "upstream-keepalive",
        why: KEEPALIVE_WHY,
        servers: closes_backends,
        edits: &[
            TuneEdit::GroupOfEachAddress { keepalive: "32" },
            TuneEdit::EachUpstream { line: &["keepalive", "32"] },
            VERSION,
            NOT_CLOSE,
            TuneEdit::NoConnectionHeader,
        ],
        ..PROXY
    },
    TuneSetting {
        name: "upstream-keepalive-128",
        subject: "upstream-keepalive",
        why: KEEPALIVE_WHY,
        servers: closes_backends,
        edits: &[
            TuneEdit::GroupOfEachAddress { keepalive: "128" },
            TuneEdit::EachUpstream { line: &["keepalive", "128"] },
            VERSION,
            NOT_CLOSE,
            TuneEdit::NoConnectionHeader,
        ],
        ..PROXY
    },
    TuneSetting {
        name: "upstream-limit-16",
        edits: &[ZONE, limit(&["limit_upstream_conn", "zone=tuned", "limit=16", "backlog=10000"])],
        ..LIMIT
    },
    TuneSetting {
        name: "upstream-limit-64",
        edits: &[ZONE, limit(&["limit_upstream_conn", "zone=tuned", "limit=64", "backlog=10000"])],
        ..LIMIT
    },
    TuneSetting {
        name: "upstream-limit-200",
        edits: &[ZONE, limit(&["limit_upstream_conn", "zone=tuned", "limit=200", "backlog=10000"])],
        ..LIMIT
    },
    TuneSetting {
        name: "proxy-buffers",
        subject: "proxy-buffers",
        why: "replies of backends up to 256 KB fit into memory and are read with fewer calls",
        when: has_default_proxy_buffers,
        edits: &[
            line(&["http"], &["proxy_buffer_size", "16k"], anything),
            line(&["http"], &["proxy_buffers", "16", "16k"], anything),
        ],
        ..ALWAYS
    },
    TuneSetting {
        name: "proxy-buffering",
        subject: "proxy-buffering",
        why: "replies are read from backends at once; locations that turn it off keep it off",
        edits: &[TuneEdit::OutsideLocations {
            old: &["proxy_buffering", "off"],
            new: &["proxy_buffering", "on"],
        }],
        ..ALWAYS
    },
    TuneSetting {
        name: "sendfile",
        subject: "sendfile",
        why: "the kernel sends files itself instead of copying them through the server",
        when: serves_files,
        edits: &[SENDFILE],
        ..ALWAYS
    },
    TuneSetting {
        name: "sendfile-nopush",
        subject: "sendfile",
        why: "the kernel sends files itself, and the header goes into the same packet",
        when: serves_files,
        edits: &[SENDFILE, line(&["http"], &["tcp_nopush", "on"], is_on)],
        ..ALWAYS
    },
    TuneSetting {
        name: "open-file-cache",
        subject: "open-file-cache",
        why: "files stay open, which saves calls; changes are seen after up to 30 seconds",
        when: serves_files,
        edits: &[
            line(&["http"], &["open_file_cache", "max=10000", "inactive=60s"], is_not_off),
            line(&["http"], &["open_file_cache_valid", "30s"], anything),
        ],
        ..ALWAYS
    },
    TuneSetting {
        name: "access-log-buffer",
        subject: "access-log-buffer",
        why: "log lines are written many at a time, up to 5 seconds later",
        edits: &[TuneEdit::EachAccessLog { parameters: &["buffer=64k", "flush=5s"] }],
        ..ALWAYS
    },
    TuneSetting {
        name: "keepalive-requests",
        subject: "keepalive-requests",
        why: "clients need not connect again after 1,000 requests",
        when: keeps_clients,
        edits: &[line(&["http"], &["keepalive_requests", "100000"], is_at_least_4096)],
        ..ALWAYS
    },
];

const ALWAYS: TuneSetting = TuneSetting {
    name: "",
    subject: "",
    why: "",
    servers: |_| true,
    when: |tree| tree.block(&["http"]).is_some(),
    edits: &[],
};

const PROXY: TuneSetting = TuneSetting { when: passes, ..ALWAYS };

const LIMIT: TuneSetting = TuneSetting {
    subject: "upstream-limit",
    why: "no backend has more requests at once; the others wait in order, and none is slowed down",
    servers: is_weir,
    when: passes_without_limits,
    ..ALWAYS
};

const fn limit(line: &'static [&'static str]) -> TuneEdit {
    TuneEdit::EachUpstream { line }
}

const fn line(
    block: &'static [&'static str],
    line: &'static [&'static str],
    stays: fn(&EditableDirective) -> bool,
) -> TuneEdit {
    TuneEdit::Line(BlockLine { block, line, stays })
}

fn anything(_: &EditableDirective) -> bool {
    true
}

fn is_auto(line: &EditableDirective) -> bool {
    line.argument() == "auto"
}

fn is_on(line: &EditableDirective) -> bool {
    line.argument() == "on"
}

fn is_not_off(line: &EditableDirective) -> bool {
    line.argument() != "off"
}

fn is_recent(line: &EditableDirective) -> bool {
    line.argument() != "1.0"
}

fn is_at_least_4096(line: &EditableDirective) -> bool {
    line.argument().parse::<u64>().is_ok_and(|number| number >= 4096)
}

/// Weir distributes connections itself and already defers them.
fn is_nginx(server: TunedServer) -> bool {
    server != TunedServer::Weir
}

/// Only Weir has a queue in front of backends.
fn is_weir(server: TunedServer) -> bool {
    server == TunedServer::Weir
}

fn keeps_backends(server: TunedServer) -> bool {
    server.keeps_backends()
}

fn closes_backends(server: TunedServer) -> bool {
    !server.keeps_backends()
}

fn has_line(tree: &EditableTree, is_wanted: impl Fn(&EditableDirective) -> bool) -> bool {
    let lines = tree.lines();
    lines.iter().any(|line| line.is_within("http") && is_wanted(line.directive))
}

/// Whether a block sets `root` or `alias` without passing or returning requests itself, or `http
/// {}` sets `root`.
fn serves_files(tree: &EditableTree) -> bool {
    has_line(tree, |block| {
        let has = |names: &[&str]| names.iter().any(|name| block.own(name).is_some());
        has(&["root", "alias"]) && !has(&["proxy_pass", "return"])
    }) || tree.block(&["http"]).is_some_and(|http| http.own("root").is_some())
}

/// Only groups keep connections; addresses can become groups.
fn passes(tree: &EditableTree) -> bool {
    passes_to_groups(tree) || !passes_to_addresses(tree).is_empty()
}

/// Only groups have limits, and only HTTP backends are meant.
fn passes_to_groups(tree: &EditableTree) -> bool {
    has_line(tree, |line| line.is("upstream")) && has_line(tree, |line| line.is("proxy_pass"))
}

/// Existing limits are left alone.
fn passes_without_limits(tree: &EditableTree) -> bool {
    const LIMITS: [&str; 3] = ["limit_upstream_zone", "limit_upstream_conn", "queue"];
    let limits = |line: &EditableDirective| {
        LIMITS.contains(&line.name())
            || line.arguments().any(|argument| argument.starts_with("max_conns="))
    };
    passes_to_groups(tree) && !has_line(tree, limits)
}

/// Explicit sizes depend on each other and are left alone.
fn has_default_proxy_buffers(tree: &EditableTree) -> bool {
    const SIZES: [&str; 4] = [
        "proxy_buffer_size",
        "proxy_buffers",
        "proxy_busy_buffers_size",
        "proxy_temp_file_write_size",
    ];
    has_line(tree, |line| line.is("proxy_pass"))
        && !has_line(tree, |line| SIZES.contains(&line.name()))
}

fn keeps_clients(tree: &EditableTree) -> bool {
    let is_zero = |line: &EditableDirective| ["0", "0s"].contains(&line.argument());
    !has_line(tree, |line| line.is("keepalive_timeout") && is_zero(line))
}

//! The servers as they are measured.

/// How many clients ask at once: first as many as the limit, last far more.
pub(super) const CLIENTS: [usize; 3] = [200, 300, 500];

/// Requests in progress at the backend.
pub(super) const LIMIT: usize = 200;

/// A server as it is measured.
#[derive(PartialEq)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    /// Lines of `http {}` and of its `upstream {}`.
    pub(super) http: &'static str,
    pub(super) upstream: &'static str,
}

pub(super) static NGINX: Variant = Variant { name: "nginx", ..PLAIN };
pub(super) static WEIR: Variant = PLAIN;
pub(super) static LIMITED: Variant = Variant {
    name: "weir, limit 200",
    http: "limit_upstream_zone test 1m;",
    upstream: "limit_upstream_conn zone=test limit=200 backlog=10000 timeout=3s;",
};
pub(super) const PLAIN: Variant = Variant { name: "weir", http: "", upstream: "" };

//! The families that `prometheus` shows, as paths in Weir's own tree.

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
    /// A text, shown as one gauge for each of these values.
    States(&'static [&'static str]),
}

/// A family of metrics.
pub(super) struct Family {
    pub name: &'static str,
    pub kind: FamilyKind,
    pub help: &'static str,
    /// The names on the way to the value. `{label}` stands for any name, which is the label's
    /// value.
    pub path: &'static str,
    /// What a number is multiplied by: times in the tree are in milliseconds.
    pub scale: f64,
}

const CONDITIONS: &[&str] = &["up", "down", "draining", "unavail", "unhealthy"];

const fn family(
    kind: FamilyKind,
    name: &'static str,
    path: &'static str,
    help: &'static str,
) -> Family {
    Family { name, kind, help, path, scale: 1.0 }
}

const fn counter(name: &'static str, path: &'static str, help: &'static str) -> Family {
    family(FamilyKind::Counter, name, path, help)
}

const fn gauge(name: &'static str, path: &'static str, help: &'static str) -> Family {
    family(FamilyKind::Gauge, name, path, help)
}

const fn histogram(name: &'static str, path: &'static str, help: &'static str) -> Family {
    family(FamilyKind::Histogram, name, path, help)
}

impl Family {
    const fn in_ms(self) -> Self {
        Self { scale: 0.001, ..self }
    }
}

/// All families, in the order of the page. The first are those of nginx-prometheus-exporter.
pub(super) const FAMILIES: &[Family] = &[
    counter("nginx_connections_accepted", "/connections/accepted", "Accepted client connections."),
    gauge("nginx_connections_active", "/connections/open", "Active client connections."),
    counter("nginx_connections_handled", "/connections/handled", "Handled client connections."),
    gauge(
        "nginx_connections_reading",
        "/connections/reading",
        "Connections where the request header is read.",
    ),
    gauge("nginx_connections_waiting", "/connections/idle", "Idle client connections."),
    gauge(
        "nginx_connections_writing",
        "/connections/writing",
        "Connections where the reply is written.",
    ),
    counter("nginx_http_requests_total", "/http/requests/total", "HTTP requests."),
    counter(
        "weir_connections_refused_total",
        "/connections/dropped",
        "Connections that a limit refused.",
    ),
    gauge("weir_http_requests_in_progress", "/http/requests/current", "Requests under way."),
    counter(
        "weir_http_zone_requests_total",
        "/http/server_zones/{zone}/requests/total",
        "Requests of the servers of a zone.",
    ),
    gauge(
        "weir_http_zone_requests_in_progress",
        "/http/server_zones/{zone}/requests/processing",
        "Requests of a zone that are under way.",
    ),
    counter(
        "weir_http_zone_requests_discarded_total",
        "/http/server_zones/{zone}/requests/discarded",
        "Requests of a zone that ended without a reply.",
    ),
    counter(
        "weir_http_zone_responses_total",
        "/http/server_zones/{zone}/responses/{code}",
        "Replies of the servers of a zone by status.",
    ),
    counter(
        "weir_http_zone_received_bytes_total",
        "/http/server_zones/{zone}/data/received",
        "Bytes received from clients of a zone.",
    ),
    counter(
        "weir_http_zone_sent_bytes_total",
        "/http/server_zones/{zone}/data/sent",
        "Bytes sent to clients of a zone.",
    ),
    histogram(
        "weir_http_zone_request_duration_seconds",
        "/http/server_zones/{zone}/time",
        "How long requests of a zone took, from their first byte to their last.",
    ),
    counter(
        "weir_status_zone_overflows_total",
        "/http/server_zones/{zone}/overflows",
        "Requests whose key had no room in their zone.",
    ),
    counter(
        "weir_http_zone_tls_handshakes_total",
        "/http/server_zones/{zone}/ssl/handshaked",
        "TLS handshakes of a zone.",
    ),
    counter(
        "weir_http_zone_tls_sessions_reused_total",
        "/http/server_zones/{zone}/ssl/reuses",
        "TLS handshakes of a zone that resumed a session.",
    ),
    counter(
        "weir_http_zone_tls_handshakes_failed_total",
        "/http/server_zones/{zone}/ssl/failed",
        "TLS handshakes of a zone that failed.",
    ),
    counter(
        "weir_http_zone_tls_handshake_failures_total",
        "/http/server_zones/{zone}/ssl/reasons/{reason}",
        "TLS handshakes of a zone that failed or took too long, by reason.",
    ),
    counter(
        "weir_http_location_requests_total",
        "/http/location_zones/{zone}/requests/total",
        "Requests of the locations of a zone.",
    ),
    counter(
        "weir_http_location_responses_total",
        "/http/location_zones/{zone}/responses/{code}",
        "Replies of the locations of a zone by status.",
    ),
    counter(
        "weir_http_location_received_bytes_total",
        "/http/location_zones/{zone}/data/received",
        "Bytes received from clients of a zone of locations.",
    ),
    counter(
        "weir_http_location_sent_bytes_total",
        "/http/location_zones/{zone}/data/sent",
        "Bytes sent to clients of a zone of locations.",
    ),
    histogram(
        "weir_http_location_request_duration_seconds",
        "/http/location_zones/{zone}/time",
        "How long requests of a zone of locations took.",
    ),
    counter(
        "weir_limit_req_total",
        "/http/limit_reqs/{zone}/{result}",
        "Requests by what limit_req did with them.",
    ),
    counter(
        "weir_limit_conn_total",
        "/http/limit_conns/{zone}/{result}",
        "Requests by what limit_conn did with them.",
    ),
    gauge("weir_cache_size_bytes", "/http/caches/{zone}/size", "Bytes of a cache's files."),
    gauge("weir_cache_max_size_bytes", "/http/caches/{zone}/max_size", "max_size of a cache."),
    gauge("weir_cache_entries", "/http/caches/{zone}/entries", "Keys that a cache knows."),
    gauge(
        "weir_cache_max_entries",
        "/http/caches/{zone}/max_entries",
        "Keys that a cache has room for.",
    ),
    gauge(
        "weir_cache_purge_rules",
        "/http/caches/{zone}/purge_rules",
        "Purges of a cache whose files may still be there.",
    ),
    counter(
        "weir_cache_responses_total",
        "/http/caches/{zone}/{status}/responses",
        "Responses by what a cache did: $upstream_cache_status.",
    ),
    counter(
        "weir_cache_bytes_total",
        "/http/caches/{zone}/{status}/bytes",
        "Bytes of these responses, from the cache or the backend.",
    ),
    counter(
        "weir_cache_responses_written_total",
        "/http/caches/{zone}/{status}/responses_written",
        "Responses that were stored.",
    ),
    counter(
        "weir_cache_written_bytes_total",
        "/http/caches/{zone}/{status}/bytes_written",
        "Bytes of the responses that were stored.",
    ),
    family(
        FamilyKind::States(CONDITIONS),
        "weir_upstream_server_state",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/condition",
        "1 for the state that a server is in.",
    ),
    gauge(
        "weir_upstream_server_in_progress",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/selected/current",
        "Requests or sessions that a server has now.",
    ),
    gauge(
        "weir_upstream_server_limit",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/limit",
        "Requests or sessions that a server may have now.",
    ),
    counter(
        "weir_upstream_server_requests_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/selected/total",
        "How often a server was chosen.",
    ),
    counter(
        "weir_upstream_server_responses_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/responses/{code}",
        "Replies of a server by status.",
    ),
    counter(
        "weir_upstream_server_sent_bytes_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/data/sent",
        "Bytes sent to a server.",
    ),
    counter(
        "weir_upstream_server_received_bytes_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/data/received",
        "Bytes received from a server.",
    ),
    counter(
        "weir_upstream_server_fails_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/health/fails",
        "Failed attempts.",
    ),
    counter(
        "weir_upstream_server_unavailable_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/health/unavailable",
        "How often failures took a server out of use.",
    ),
    counter(
        "weir_upstream_server_down_seconds_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/health/downtime",
        "For how long a server was out of use.",
    )
    .in_ms(),
    counter(
        "weir_upstream_server_checks_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/health/probes/count",
        "Active checks.",
    ),
    counter(
        "weir_upstream_server_checks_failed_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/health/probes/fails",
        "Active checks that failed.",
    ),
    counter(
        "weir_upstream_server_connections_opened_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/connections/opened",
        "Requests that opened a connection.",
    ),
    counter(
        "weir_upstream_server_connections_reused_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/connections/reused",
        "Requests that used a kept connection.",
    ),
    counter(
        "weir_upstream_server_retries_total",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/retries",
        "Attempts after another server had failed.",
    ),
    histogram(
        "weir_upstream_server_connect_seconds",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/connect_time",
        "From the choice of a server until there is a connection.",
    ),
    histogram(
        "weir_upstream_server_header_seconds",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/header_time",
        "From the choice of a server until the head of its reply.",
    ),
    histogram(
        "weir_upstream_server_response_seconds",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/response_time",
        "From the choice of a server until the end of its reply.",
    ),
    histogram(
        "weir_upstream_server_queue_seconds",
        "/{subsystem}/upstreams/{upstream}/peers/{server}/queue_time",
        "How long requests waited before they got a server.",
    ),
    gauge(
        "weir_upstream_idle_connections",
        "/{subsystem}/upstreams/{upstream}/keepalive",
        "Kept connections that are idle.",
    ),
    gauge(
        "weir_upstream_queue_length",
        "/{subsystem}/upstreams/{upstream}/queue/length",
        "Requests that wait for a server.",
    ),
    counter(
        "weir_upstream_queue_overflows_total",
        "/{subsystem}/upstreams/{upstream}/queue/overflows",
        "Requests that found the queue full.",
    ),
    counter(
        "weir_upstream_queue_timeouts_total",
        "/{subsystem}/upstreams/{upstream}/queue/timedout",
        "Requests whose time in the queue was over.",
    ),
    histogram(
        "weir_upstream_queue_seconds",
        "/{subsystem}/upstreams/{upstream}/queue/time",
        "How long requests were in the queue.",
    ),
    counter(
        "weir_stream_zone_connections_total",
        "/stream/server_zones/{zone}/connections/total",
        "Connections of the stream servers of a zone.",
    ),
    gauge(
        "weir_stream_zone_connections_in_progress",
        "/stream/server_zones/{zone}/connections/processing",
        "Connections of a zone that are under way.",
    ),
    counter(
        "weir_stream_zone_sessions_total",
        "/stream/server_zones/{zone}/sessions/{result}",
        "Sessions of a zone by how they ended.",
    ),
    counter(
        "weir_stream_zone_received_bytes_total",
        "/stream/server_zones/{zone}/data/received",
        "Bytes received from clients of a zone.",
    ),
    counter(
        "weir_stream_zone_sent_bytes_total",
        "/stream/server_zones/{zone}/data/sent",
        "Bytes sent to clients of a zone.",
    ),
    histogram(
        "weir_stream_zone_session_duration_seconds",
        "/stream/server_zones/{zone}/time",
        "How long sessions of a zone took.",
    ),
    counter(
        "weir_resolver_queries_total",
        "/resolvers/{resolver}/queries/{type}",
        "Names that were looked up.",
    ),
    counter(
        "weir_resolver_responses_total",
        "/resolvers/{resolver}/responses/{result}",
        "Answers of name servers.",
    ),
    gauge(
        "weir_file_cache_entries",
        "/file_caches/{cache}/entries",
        "Files in the caches of all workers.",
    ),
    gauge(
        "weir_file_cache_bytes",
        "/file_caches/{cache}/bytes",
        "Contents of files in memory of all workers.",
    ),
    counter(
        "weir_file_cache_hits_total",
        "/file_caches/{cache}/hits",
        "Lookups of files that a cache answered.",
    ),
    counter(
        "weir_file_cache_misses_total",
        "/file_caches/{cache}/misses",
        "Lookups of files that went to the file system.",
    ),
    counter(
        "weir_worker_busy_seconds_total",
        "/workers/{worker}/busy",
        "Time in which a worker's event loop did not wait.",
    ),
    histogram(
        "weir_worker_turn_seconds",
        "/workers/{worker}/turns",
        "From a wake-up of a worker's event loop until it looks at its sockets again.",
    ),
    counter(
        "weir_worker_requests_total",
        "/workers/{worker}/requests/total",
        "Requests of a worker.",
    ),
    gauge("weir_worker_connections", "/workers/{worker}/connections/active", "Open connections."),
    gauge(
        "weir_worker_tasks",
        "/workers/{worker}/tasks",
        "Tasks of a worker, such as connections and requests.",
    ),
    gauge(
        "weir_tls_certificate_expiry_timestamp_seconds",
        "/tls/certificates/{file}/not_after_at",
        "When a certificate of a file expires.",
    )
    .in_ms(),
    gauge(
        "weir_acme_certificate_expiry_timestamp_seconds",
        "/tls/acme/{name}/not_after_at",
        "When a certificate that the server obtains expires.",
    )
    .in_ms(),
    gauge(
        "weir_acme_certificate_next_attempt_timestamp_seconds",
        "/tls/acme/{name}/next_attempt_at",
        "When the next attempt to obtain a certificate is due.",
    )
    .in_ms(),
    gauge(
        "weir_acme_certificate_failures",
        "/tls/acme/{name}/failures",
        "Failed attempts in a row to obtain a certificate.",
    ),
    gauge(
        "weir_acme_certificate_last_error_timestamp_seconds",
        "/tls/acme/{name}/last_error_at",
        "When an attempt to obtain a certificate failed last, since the last success.",
    )
    .in_ms(),
    counter(
        "weir_acme_orders_total",
        "/tls/acme_orders/{issuer}/{result}",
        "Orders at an issuer by how they ended.",
    ),
    gauge("weir_generation", "/weir/generation", "Configurations that were served so far."),
    counter("weir_reloads_total", "/weir/reloads/done", "Reloads."),
    counter("weir_reloads_failed_total", "/weir/reloads/failed", "Reloads that were refused."),
    gauge("process_start_time_seconds", "/weir/started_at", "When the process started.").in_ms(),
    counter("process_cpu_user_seconds_total", "/process/cpu_user", "CPU time of the program."),
    counter("process_cpu_system_seconds_total", "/process/cpu_system", "CPU time of the kernel."),
    gauge("process_resident_memory_bytes", "/process/memory", "Memory in use."),
    gauge("process_open_fds", "/process/descriptors/open", "Open descriptors."),
    gauge("process_max_fds", "/process/descriptors/limit", "The most open descriptors."),
    counter(
        "weir_lost_log_lines_total",
        "/process/lost_log_lines",
        "Log lines that the process could not write.",
    ),
    counter(
        "weir_trace_spans_exported_total",
        "/traces/exported",
        "Spans that a collector has accepted.",
    ),
    counter(
        "weir_trace_spans_dropped_total",
        "/traces/dropped",
        "Spans that were never sent, because too many batches waited.",
    ),
    counter(
        "weir_trace_spans_failed_total",
        "/traces/failed",
        "Spans that a collector has not accepted.",
    ),
    gauge(
        "weir_store_up",
        "/stores/{store}/up",
        "Whether a store can be used (1), or each node goes on alone (0).",
    ),
    gauge("weir_store_nodes", "/stores/{store}/nodes", "The nodes that use a store."),
    gauge(
        "weir_store_masters",
        "/stores/{store}/masters",
        "The masters of the nodes that use a store.",
    ),
    gauge(
        "weir_store_last_exchange_timestamp_seconds",
        "/stores/{store}/exchanged_at",
        "When the last exchange with a store ended.",
    )
    .in_ms(),
    counter("weir_store_exchanges_total", "/stores/{store}/exchanges", "Exchanges with a store."),
    counter(
        "weir_store_failures_total",
        "/stores/{store}/failures",
        "Connections to a store that failed or ended.",
    ),
    counter("weir_store_keys_total", "/stores/{store}/keys", "Keys exchanged with a store."),
    gauge(
        "weir_store_keys_waiting",
        "/stores/{store}/keys_waiting",
        "Keys that wait for the next exchange, because one has a limit.",
    ),
    counter(
        "weir_store_keys_refused_total",
        "/stores/{store}/keys_refused",
        "Keys of other machines for which a table of keyval had no room.",
    ),
    counter(
        "weir_store_keys_invalid_total",
        "/stores/{store}/keys_invalid",
        "Keys in a store that are none of a table of keyval.",
    ),
];

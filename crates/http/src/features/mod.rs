//! The features, one folder each. The list is the order of handlers within a phase and of filters.

pub mod access;
pub mod acme;
pub mod addition;
pub mod aio;
pub mod api;
pub mod auth_basic;
pub mod auth_request;
pub mod autoindex;
pub mod backend_tls;
pub mod cache_purge;
pub mod charset;
pub mod client_body;
pub mod client_body_early_read;
pub mod core;
pub mod dashboard;
pub mod disable_symlinks;
pub mod empty_gif;
pub mod error_log;
pub mod error_page;
pub mod fastcgi;
pub mod geo;
pub mod grpc;
pub mod gunzip;
pub mod gzip;
pub mod gzip_clients;
pub mod gzip_static;
pub mod headers;
pub mod headers_more;
pub mod headers_more_input;
pub mod http2;
pub mod index;
pub mod internal;
pub mod keepalive;
pub mod keyval;
pub mod lenient;
pub mod limit_conn;
pub mod limit_rate;
pub mod limit_req;
pub mod lingering;
pub mod log;
pub mod map;
pub mod memcached;
pub mod mirror;
pub mod nodes;
pub mod not_modified;
pub mod open_file_cache;
pub mod otel;
pub mod output;
pub mod pools;
pub mod prometheus;
pub mod proxy;
pub mod random_index;
pub mod range;
pub mod ready;
pub mod realip;
pub mod redirect;
pub mod referer;
pub mod resolver;
pub mod rewrite;
pub mod root;
pub mod satisfy;
pub mod scgi;
pub mod secure_link;
pub mod server;
pub mod slice;
pub mod slow_log;
pub mod split_clients;
pub mod ssl;
pub mod static_file;
pub mod status_zone;
pub mod stub_status;
pub mod subrequest;
pub mod tables;
pub mod try_files;
pub mod types;
pub mod upstream;
pub mod upstream_hc;
pub mod userid;
pub mod uwsgi;

use std::sync::Arc;

use ::session::ControlJobs;
use ::session::discovery::NameDiscovery;
use ::session::status::StatusJob;
use conf::lacking::EnclosingBlock;
use conf::{Directive, Levels, Load, Result, Subsystem};

use crate::backend::{self, cache as caching};
use crate::health::Health;
use crate::site::{LocationBuilder, Site};
use crate::variables::VariableTable;
use ssl::shared as ssl_shared;

conf::features! {
    into LocationBuilder<'_, '_>, variables VariableTable;
    server: server,
    acme: acme with VARIABLES,
    http2: http2 with VARIABLES,
    ssl_shared: ssl_shared "ssl_" with VARIABLES,
    ssl: ssl "ssl_" over ssl_shared with VARIABLES,
    tables: tables,
    pools: pools,
    resolver: resolver,
    map: map,
    geo: geo,
    split_clients: split_clients,
    keyval: keyval,
    nodes: nodes,
    upstream: upstream,
    core: core,
    error_page: error_page,
    root: root,
    types: types,
    internal: internal,
    satisfy: satisfy,
    subrequest: subrequest,
    referer: referer with VARIABLES,
    secure_link: secure_link with VARIABLES,
    client_body: client_body,
    keepalive: keepalive,
    limit_rate: limit_rate,
    lingering: lingering,
    output: output,
    gzip_clients: gzip_clients,
    redirect: redirect,
    open_file_cache: open_file_cache,
    disable_symlinks: disable_symlinks,
    client_body_early_read: client_body_early_read,
    otel: otel with VARIABLES,
    rewrite: rewrite,
    headers_more_input: headers_more_input,
    realip: realip with VARIABLES,
    error_log: error_log,
    limit_req: limit_req with VARIABLES,
    limit_conn: limit_conn with VARIABLES,
    access: access,
    auth_basic: auth_basic,
    auth_request: auth_request,
    try_files: try_files,
    mirror: mirror,
    status_zone: status_zone,
    stub_status: stub_status with VARIABLES,
    api: api,
    ready: ready,
    prometheus: prometheus with VARIABLES,
    empty_gif: empty_gif,
    dashboard: dashboard,
    cache_purge: cache_purge,
    proxy_family: backend "proxy_" with VARIABLES,
    proxy_caching: caching "proxy_" with VARIABLES,
    proxy_tls: backend_tls "proxy_ssl_",
    proxy: proxy "proxy_" over proxy_family & proxy_tls & proxy_caching with VARIABLES,
    fastcgi_family: backend "fastcgi_",
    fastcgi_caching: caching "fastcgi_",
    fastcgi: fastcgi "fastcgi_" over fastcgi_family & fastcgi_caching with VARIABLES,
    uwsgi_family: backend "uwsgi_",
    uwsgi_tls: backend_tls "uwsgi_ssl_",
    uwsgi_caching: caching "uwsgi_",
    uwsgi: uwsgi "uwsgi_" over uwsgi_family & uwsgi_tls & uwsgi_caching,
    scgi_family: backend "scgi_",
    scgi_caching: caching "scgi_",
    scgi: scgi "scgi_" over scgi_family & scgi_caching,
    grpc_tls: backend_tls "grpc_ssl_",
    grpc: grpc "grpc_" over grpc_tls with VARIABLES,
    memcached: memcached "memcached_",
    upstream_hc: upstream_hc,
    random_index: random_index,
    index: index,
    autoindex: autoindex,
    gzip_static: gzip_static,
    static_file: static_file,
    lenient: lenient,
    slice: slice with VARIABLES,
    aio: aio,
    not_modified: not_modified,
    headers_more: headers_more,
    headers: headers,
    userid: userid with VARIABLES,
    gunzip: gunzip,
    addition: addition,
    charset: charset,
    gzip: gzip with VARIABLES,
    range: range,
    log: log,
    slow_log: slow_log with VARIABLES,
}

/// The jobs of the control thread for `http {}`, in the order in which they adopt a site.
pub fn control_jobs() -> ControlJobs<Arc<Site>> {
    vec![
        Box::new(Health::default()),
        Box::new(NameDiscovery::default()),
        Box::new(StatusJob(Subsystem::Http)),
        Box::new(otel::SpanExport::default()),
        Box::new(caching::CacheKeeper::default()),
    ]
}

impl Layers {
    pub(crate) fn tls(&self) -> &ssl_shared::Layer {
        &self.ssl_shared
    }
}

impl Layers {
    /// Moves the rewrite program of an `if` block into that of the enclosing block.
    pub(crate) fn merge_if_block(&mut self, inside: &mut Self) {
        self.rewrite.merge_if_block(&mut inside.rewrite);
    }

    /// Handles a line that no feature has.
    pub(crate) fn without_feature(
        &mut self,
        line: &Directive,
        block: EnclosingBlock<'_>,
        load: &mut Load<'_>,
    ) -> Result<()> {
        if load.without_feature(line, block)? {
            self.lenient.ignore(line, load)?;
        }
        Ok(())
    }

    /// Sets a line that a feature has. Returns false if none has it. In lenient mode, an
    /// unsupported value is recorded instead.
    pub(crate) fn set_or_ignore(
        &mut self,
        level: Levels,
        line: &Directive,
        load: &mut Load<'_>,
    ) -> Result<bool> {
        let before = load.lacks.len();
        let found = self.set(level, line, load)?;
        if load.lacks.len() > before {
            self.lenient.ignore(line, load)?;
        }
        Ok(found)
    }
}

//! The features, one folder each. The list is the order of handlers within a phase and of filters.

pub mod client_body;
pub mod core;
pub mod error_page;
pub mod keepalive;
pub mod limit_rate;
pub mod lingering;
pub mod log;
pub mod output;
pub mod pools;
pub mod redirect;
pub mod resolver;
pub mod rewrite;
pub mod server;
pub mod static_file;
pub mod stub_status;
pub mod tables;

type Place<'a, 'f> = crate::site::Place<'a, 'f>;

conf::features! {
    into Place<'_, '_>;
    server: server,
    tables: tables,
    pools: pools,
    resolver: resolver,
    core: core,
    error_page: error_page,
    client_body: client_body,
    keepalive: keepalive,
    limit_rate: limit_rate,
    lingering: lingering,
    output: output,
    redirect: redirect,
    rewrite: rewrite,
    stub_status: stub_status,
    static_file: static_file,
    log: log,
}

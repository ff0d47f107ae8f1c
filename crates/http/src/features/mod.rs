//! The features, one folder each. The list is the order of handlers within a phase and of filters.

pub mod core;
pub mod internal;
pub mod log;
pub mod log_not_found;
pub mod pools;
pub mod resolver;
pub mod rewrite;
pub mod root;
pub mod satisfy;
pub mod server;
pub mod static_file;
pub mod tables;
pub mod types;

type Place<'a, 'f> = crate::site::Place<'a, 'f>;

conf::features! {
    into Place<'_, '_>;
    server: server,
    tables: tables,
    pools: pools,
    resolver: resolver,
    core: core,
    root: root,
    types: types,
    internal: internal,
    satisfy: satisfy,
    log_not_found: log_not_found,
    rewrite: rewrite,
    static_file: static_file,
    log: log,
}

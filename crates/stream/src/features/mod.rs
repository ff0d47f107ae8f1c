//! The features, one module each. The list is the order of handlers within a phase.

pub mod access;
pub mod core;
pub mod geo;
pub mod listen;
pub mod log;
pub mod map;
pub mod resolver;
pub mod return_text;
pub mod set;
pub mod split_clients;
pub mod tables;
pub mod upstream;

use conf::Info;

type Place<'a, 'f> = crate::site::Place<'a, 'f>;

conf::features! {
    into Place<'_, '_>;
    core: core,
    listen: listen,
    tables: tables,
    resolver: resolver,
    map: map,
    geo: geo,
    split_clients: split_clients,
    upstream: upstream,
    set: set,
    access: access,
    return_text: return_text,
    log: log,
}

/// Every directive inside `stream {}`, without its blocks.
pub fn directives() -> impl Iterator<Item = &'static Info> {
    let rows = TABLES.iter().flat_map(|(_, _, rows)| rows.iter());
    rows.filter(|row| !upstream::is_of_http(row.name.as_bytes()))
}

//! The features, one module each. The list is the order of handlers within a phase.

pub mod access;
pub mod acme;
pub mod backend_tls;
pub mod core;
pub mod error_log;
pub mod geo;
pub mod keyval;
pub mod limit_conn;
pub mod listen;
pub mod log;
pub mod map;
pub mod nodes;
pub mod pass;
pub mod proxy;
pub mod realip;
pub mod resolver;
pub mod return_text;
pub mod set;
pub mod split_clients;
pub mod ssl;
pub mod ssl_preread;
pub mod status_zone;
pub mod tables;
pub mod upstream;
pub mod upstream_hc;

use std::sync::Arc;

use ::session::ControlJobs;
use ::session::discovery::NameDiscovery;
use ::session::status::StatusJob;
use ::session::variables::VariableTable;

use conf::Subsystem;

use crate::health::StreamHealth;
use crate::session::StreamSession;
use crate::site::{ServerBuilder, StreamSite};
use ssl::shared as ssl_shared;

conf::features! {
    into ServerBuilder<'_, '_>, variables VariableTable<StreamSession>;
    core: core,
    listen: listen,
    resolver: resolver,
    acme: acme with VARIABLES,
    ssl_shared: ssl_shared "ssl_" with VARIABLES,
    ssl: ssl "ssl_" over ssl_shared with VARIABLES,
    ssl_preread: ssl_preread with VARIABLES,
    tables: tables,
    map: map,
    geo: geo,
    split_clients: split_clients,
    keyval: keyval,
    nodes: nodes,
    upstream: upstream,
    realip: realip with VARIABLES,
    set: set,
    error_log: error_log,
    limit_conn: limit_conn with VARIABLES,
    access: access,
    return_text: return_text,
    pass: pass,
    proxy_tls: backend_tls "proxy_ssl_",
    proxy: proxy "proxy_" over proxy_tls,
    upstream_hc: upstream_hc,
    status_zone: status_zone,
    log: log,
}

/// The jobs of the control thread for `stream {}`, in the order in which they adopt a site.
pub fn control_jobs() -> ControlJobs<Arc<StreamSite>> {
    let status = StatusJob(Subsystem::Stream);
    vec![Box::new(StreamHealth::default()), Box::new(NameDiscovery::default()), Box::new(status)]
}

impl Layers {
    pub(crate) fn tls(&self) -> &ssl_shared::Layer {
        &self.ssl_shared
    }
}

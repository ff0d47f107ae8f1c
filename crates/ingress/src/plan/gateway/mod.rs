//! Gateway API: from GatewayClass to the routes.
//!
//! A Gateway has addresses of its own, or shares those of the servers. Where two of them share an
//! address, a port of both is one port: a listener of one is told from that of another by its host
//! name alone, as it is within one Gateway.

mod addresses;
mod attach;
mod backends;
mod classes;
mod filters;
mod gateway_status;
mod grpc_route;
mod http_route;
mod listeners;
mod policies;
mod rules;
mod stream_route;
mod targets;

use super::planner::Planner;
use listeners::Listeners;

pub(super) fn plan(planner: &mut Planner<'_>) {
    let classes = classes::plan(planner);
    let mut listeners = Listeners::read(planner, &classes);
    listeners.declare_sites(planner);
    http_route::plan(planner, &mut listeners);
    grpc_route::plan(planner, &mut listeners);
    stream_route::plan(planner, &mut listeners);
    gateway_status::write_all(planner, &listeners);
}

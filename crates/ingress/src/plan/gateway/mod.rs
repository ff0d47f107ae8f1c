//! Gateway API: from GatewayClass to the routes.
//!
//! All Gateways share the servers: a port of two of them is one port, and a listener of one is
//! told from that of another by its host name alone, as it is within one Gateway.

mod attach;
mod backends;
mod classes;
mod filters;
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
    listeners.write_statuses(planner);
}

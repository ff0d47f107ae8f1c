//! TLSRoutes and TCPRoutes.

use serde_json::Value;

use super::attach::{self, RouteFaults, RouteKind};
use super::backends::{self, Backend};
use super::listeners::{ListenerProtocol, Listeners, ServedHost};
use super::targets::BackendUser;
use crate::plan::names;
use crate::plan::nginx_conf::{StreamTarget, split};
use crate::plan::object::list;
use crate::plan::planner::Planner;
use crate::plan::route_files::RouteFiles;
use crate::{ResourceKey, ResourceKind};

const TLS: RouteKind =
    RouteKind { kind: ResourceKind::TlsRoute, name: "TLSRoute", id: "tlsroute", has_hosts: true };
const TCP: RouteKind =
    RouteKind { kind: ResourceKind::TcpRoute, name: "TCPRoute", id: "tcproute", has_hosts: false };

pub(super) fn plan(planner: &mut Planner<'_>, listeners: &mut Listeners) {
    for kind in [TLS, TCP] {
        for (own, route) in planner.by_age(kind.kind) {
            let parents = attach::parents(planner, listeners, kind, own, route);
            let mut faults = RouteFaults { has_valid_rule: true, ..RouteFaults::default() };
            if !parents.is_empty() {
                let served = attach::served(listeners, &parents);
                route_targets(planner, listeners, kind, own, route, &served, &mut faults);
            }
            attach::finish(planner, listeners, kind, own, route, &parents, &faults);
        }
    }
}

fn route_targets(
    planner: &mut Planner<'_>,
    listeners: &Listeners,
    kind: RouteKind,
    own: &ResourceKey,
    route: &Value,
    served: &[ServedHost],
    faults: &mut RouteFaults,
) {
    let user = BackendUser { kind: kind.name, own, is_stream: true };
    let rules = list(route, "/spec/rules");
    let all: Vec<_> =
        rules.iter().map(|rule| backends::read(planner, user, rule, faults)).collect();
    let Some(first) = all.first() else { return };
    if served.is_empty() {
        return;
    }
    if all.len() > 1 {
        let ResourceKey { namespace, name } = own;
        planner.warn(format!("{} {namespace}/{name}: only its first rule is used", kind.name));
    }
    let mut files = RouteFiles::new(names::object_id(kind.id, own));
    let proxy_pass = proxy_pass(&names::variable(kind.id, own, "backend"), first, &mut files);
    files.write(true, planner);
    for one in served {
        let listener = &listeners.all[one.listener];
        let title = format!("{} {}/{}", kind.name, own.namespace, own.name);
        let certificates = match listener.protocol {
            Some(ListenerProtocol::Tls { is_terminated: true }) => listener.certificates.clone(),
            _ => Vec::new(),
        };
        let port = planner.sites.stream.entry(one.listen).or_default();
        // The oldest route wins.
        port.targets.entry(one.host.clone()).or_insert(StreamTarget {
            title,
            proxy_pass: proxy_pass.clone(),
            certificates,
        });
    }
}

fn proxy_pass(variable: &str, backends: &[Backend], files: &mut RouteFiles) -> Option<String> {
    let used: Vec<_> = backends.iter().filter(|one| one.weight > 0).collect();
    match used.as_slice() {
        [] => None,
        [only] => only.target.as_ref().map(|target| target.group.clone()),
        several => {
            if several.iter().all(|one| one.target.is_none()) {
                return None;
            }
            let share = |one: &&Backend| {
                let group = one.target.as_ref().map_or("\"\"".to_owned(), |to| to.group.clone());
                (one.weight, group)
            };
            let shares: Vec<_> = several.iter().map(share).collect();
            split(&mut files.maps, "$connection$msec$remote_addr$remote_port", variable, &shares);
            Some(format!("${variable}"))
        }
    }
}

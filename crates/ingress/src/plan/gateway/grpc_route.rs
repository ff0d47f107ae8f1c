//! GRPCRoutes: a method is a path.

use serde_json::Value;

use super::attach::{self, RouteFaults, RouteKind};
use super::backends;
use super::filters::Filters;
use super::http_route::{self, Matching, RuleWriter};
use super::listeners::Listeners;
use super::rules::RouteRule;
use super::targets::BackendUser;
use crate::plan::names;
use crate::plan::nginx_conf::{PathMatch, regex_of};
use crate::plan::object::{list, text};
use crate::plan::patterns::check_pattern;
use crate::plan::planner::Planner;
use crate::{ResourceKey, ResourceKind};

const GRPC: RouteKind = RouteKind {
    kind: ResourceKind::GrpcRoute,
    name: "GRPCRoute",
    id: "grpcroute",
    has_hosts: true,
};

pub(super) fn plan(planner: &mut Planner<'_>, listeners: &mut Listeners) {
    for (own, route) in planner.all(ResourceKind::GrpcRoute) {
        let parents = attach::parents(planner, listeners, GRPC, own, route);
        let mut faults = RouteFaults::default();
        if !parents.is_empty() {
            let served = attach::served(listeners, &parents);
            let writer = rules(planner, own, route, &mut faults);
            let entries = (writer.files, writer.entries);
            http_route::add_entries(planner, listeners, &served, GRPC, own, entries);
        }
        attach::finish(planner, listeners, GRPC, own, route, &parents, &faults);
    }
}

fn rules<'r>(
    planner: &mut Planner<'_>,
    own: &'r ResourceKey,
    route: &'r Value,
    faults: &mut RouteFaults,
) -> RuleWriter<'r> {
    let mut writer = RuleWriter::new(GRPC, own, route);
    let none = [Value::Null];
    for (number, value) in list(route, "/spec/rules").iter().enumerate() {
        let matches = match list(value, "/matches") {
            [] => &none[..],
            matches => matches,
        };
        let read: Result<Vec<_>, _> = matches.iter().map(matching).collect();
        let rule = read
            .and_then(|matches| Ok((read_rule(planner, own, number + 1, value, faults)?, matches)));
        match rule {
            Ok((rule, matches)) => {
                faults.has_valid_rule = true;
                writer.add(&rule, matches, &planner.settings.folder);
            }
            Err(why) => faults.dropped.push(format!("{}: {why}", number + 1)),
        }
    }
    for why in &faults.dropped {
        planner.warn(format!("GRPCRoute {}/{}: rule {why}", own.namespace, own.name));
    }
    writer
}

fn read_rule(
    planner: &mut Planner<'_>,
    own: &ResourceKey,
    number: usize,
    value: &Value,
    faults: &mut RouteFaults,
) -> Result<RouteRule, String> {
    let user = BackendUser { kind: GRPC.name, own, is_stream: false };
    let filters = Filters::read(planner, user, list(value, "/filters"), faults)?;
    if filters.redirect.is_some() || filters.rewrite != Default::default() {
        return Err("a GRPCRoute has neither redirects nor changes of the URL".to_owned());
    }
    Ok(RouteRule {
        number,
        variable: names::variable(GRPC.id, own, &format!("rule_{number}")),
        is_grpc: true,
        filters,
        backends: backends::read(planner, user, value, faults),
        ..RouteRule::default()
    })
}

fn matching(value: &Value) -> Result<Matching, String> {
    let service = text(value, "/method/service").filter(|text| !text.is_empty());
    let method = text(value, "/method/method").filter(|text| !text.is_empty());
    let path = match text(value, "/method/type").unwrap_or("Exact") {
        "Exact" => exact(service, method)?,
        "RegularExpression" => {
            let (service, method) = (service.unwrap_or("[^/]+"), method.unwrap_or("[^/]+"));
            check_pattern(service)?;
            check_pattern(method)?;
            let pattern = format!("^/(?:{service})/(?:{method})\\z");
            PathMatch::Regex { pattern, is_caseless: false }
        }
        other => return Err(format!("a method of the type {other} is not supported")),
    };
    let headers = list(value, "/headers").iter().map(http_route::field_condition);
    let mut conditions = headers.collect::<Result<Vec<_>, _>>()?;
    conditions.sort();
    conditions.dedup();
    Ok(Matching { path, conditions })
}

fn exact(service: Option<&str>, method: Option<&str>) -> Result<PathMatch, String> {
    let is_name = |text: &str| {
        text.len() <= 512
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
    };
    if let Some(bad) = [service, method].into_iter().flatten().find(|text| !is_name(text)) {
        return Err(format!("{bad:?} is not the name of a service or method"));
    }
    Ok(match (service, method) {
        (Some(service), Some(method)) => PathMatch::Exact(format!("/{service}/{method}")),
        (Some(service), None) => PathMatch::Prefix(format!("/{service}")),
        (None, Some(method)) => PathMatch::Regex {
            pattern: format!("^/[^/]+/{}\\z", regex_of(method)),
            is_caseless: false,
        },
        (None, None) => PathMatch::Prefix(String::new()),
    })
}

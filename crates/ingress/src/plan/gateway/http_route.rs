//! HTTPRoutes.

use serde_json::Value;

use super::attach::{self, RouteFaults, RouteKind};
use super::backends;
use super::filters::{Filters, PathChange};
use super::listeners::{self, Listeners, ServedHost};
use super::policies;
use super::rules::RouteRule;
use super::targets::BackendUser;
use crate::plan::names;
use crate::plan::nginx_conf::{Entry, Order, PathMatch, RequestCondition};
use crate::plan::object::{self, list, text};
use crate::plan::patterns::{check_pattern, decoded_path, duration_ms};
use crate::plan::planner::Planner;
use crate::plan::route_files::RouteFiles;
use crate::{ResourceKey, ResourceKind};

const HTTP: RouteKind = RouteKind {
    kind: ResourceKind::HttpRoute,
    name: "HTTPRoute",
    id: "httproute",
    has_hosts: true,
};

/// One `matches` entry.
pub(super) struct Matching {
    pub(super) path: PathMatch,
    pub(super) conditions: Vec<RequestCondition>,
}

pub(super) fn plan(planner: &mut Planner<'_>, listeners: &mut Listeners) {
    let mut gateways = std::collections::BTreeSet::new();
    for (own, route) in planner.all(ResourceKind::HttpRoute) {
        let parents = attach::parents(planner, listeners, HTTP, own, route);
        let attached = parents.iter().flat_map(|parent| &parent.attached);
        gateways.extend(attached.map(|(index, _)| listeners.all[*index].gateway.clone()));
        let mut faults = RouteFaults::default();
        if !parents.is_empty() {
            let served = attach::served(listeners, &parents);
            let entries = rules(planner, own, route, &mut faults);
            add_entries(planner, listeners, &served, HTTP, own, entries);
        }
        attach::finish(planner, listeners, HTTP, own, route, &parents, &faults);
    }
    let gateways: Vec<_> = gateways.into_iter().take(policies::ANCESTORS_MAX).collect();
    policies::write_statuses(planner, &gateways);
}

/// Adds what a route matches to the servers of its hosts.
pub(super) fn add_entries(
    planner: &mut Planner<'_>,
    listeners: &Listeners,
    served: &[ServedHost],
    kind: RouteKind,
    own: &ResourceKey,
    (files, entries): (RouteFiles, Vec<Entry>),
) {
    if served.is_empty() {
        return;
    }
    let includes = files.of_servers();
    debug_assert!(files.id.starts_with(kind.id) && files.id.ends_with(&own.name));
    files.write(false, planner);
    for one in served {
        let listener = &listeners.all[one.listener];
        let site = listeners::site(planner, listener, one.listen, &one.host);
        site.includes.extend(includes.iter().cloned());
        for entry in &entries {
            if !site.entries.contains(entry) {
                site.entries.push(entry.clone());
            }
        }
    }
}

fn rules(
    planner: &mut Planner<'_>,
    own: &ResourceKey,
    route: &Value,
    faults: &mut RouteFaults,
) -> (RouteFiles, Vec<Entry>) {
    let mut writer = RuleWriter::new(HTTP, own, route);
    let none = [Value::Null];
    for (number, value) in list(route, "/spec/rules").iter().enumerate() {
        let matches = match list(value, "/matches") {
            [] => &none[..],
            matches => matches,
        };
        let read: Result<Vec<_>, _> = matches.iter().map(matching).collect();
        let rule = read.and_then(|matches| {
            let rule = read_rule(planner, own, number + 1, value, faults)?;
            check_prefix_changes(&rule, &matches)?;
            Ok((rule, matches))
        });
        match rule {
            Ok((rule, matches)) => {
                faults.has_valid_rule = true;
                writer.add(&rule, matches, &planner.settings.folder);
            }
            Err(why) => faults.dropped.push(format!("{}: {why}", number + 1)),
        }
    }
    for why in &faults.dropped {
        planner.warn(format!("HTTPRoute {}/{}: rule {why}", own.namespace, own.name));
    }
    (writer.files, writer.entries)
}

fn check_prefix_changes(rule: &RouteRule, matches: &[Matching]) -> Result<(), String> {
    let is_prefix = |change: &Option<PathChange>| matches!(change, Some(PathChange::Prefix(_)));
    let redirect = rule.filters.redirect.as_ref().is_some_and(|one| is_prefix(&one.path));
    let is_by_prefix = |one: &Matching| matches!(one.path, PathMatch::Prefix(_));
    if (redirect || is_prefix(&rule.filters.rewrite.path)) && !matches.iter().all(is_by_prefix) {
        return Err("ReplacePrefixMatch needs matches by PathPrefix".to_owned());
    }
    Ok(())
}

fn read_rule(
    planner: &mut Planner<'_>,
    own: &ResourceKey,
    number: usize,
    value: &Value,
    faults: &mut RouteFaults,
) -> Result<RouteRule, String> {
    let user = BackendUser { kind: HTTP.name, own, is_stream: false };
    let timeout = |name| match text(value, name) {
        None => Ok(None),
        Some(time) => match duration_ms(time) {
            Some(ms) => Ok(Some(ms)),
            None => Err(format!("{time:?} is not a duration")),
        },
    };
    Ok(RouteRule {
        number,
        variable: names::variable(HTTP.id, own, &format!("rule_{number}")),
        is_grpc: false,
        request_timeout_ms: timeout("/timeouts/request")?,
        backend_timeout_ms: timeout("/timeouts/backendRequest")?,
        filters: Filters::read(planner, user, list(value, "/filters"), faults)?,
        backends: backends::read(planner, user, value, faults),
    })
}

fn matching(value: &Value) -> Result<Matching, String> {
    let path = text(value, "/path/value").unwrap_or("/");
    let path = match text(value, "/path/type").unwrap_or("PathPrefix") {
        "Exact" => PathMatch::Exact(decoded_path(path)?),
        "PathPrefix" => PathMatch::prefix(&decoded_path(path)?),
        "RegularExpression" => {
            check_pattern(path)?;
            PathMatch::Regex { pattern: format!("^(?:{path})\\z"), is_caseless: false }
        }
        other => return Err(format!("a path of the type {other} is not supported")),
    };
    let mut conditions = Vec::new();
    if let Some(method) = text(value, "/method") {
        if !names::is_token(method) {
            return Err(format!("{method:?} is not a method"));
        }
        conditions.push(RequestCondition::Method(method.to_owned()));
    }
    for header in list(value, "/headers") {
        conditions.push(field_condition(header)?);
    }
    for argument in list(value, "/queryParams") {
        conditions.push(argument_condition(argument)?);
    }
    conditions.sort();
    conditions.dedup();
    Ok(Matching { path, conditions })
}

pub(super) fn field_condition(header: &Value) -> Result<RequestCondition, String> {
    let name = text(header, "/name").unwrap_or_default();
    let value = text(header, "/value").unwrap_or_default();
    if !names::is_plain_field(name) {
        return Err(format!("a match by the header field {name:?} is not supported"));
    }
    if !names::is_printable(value) {
        return Err("the value of a header field is not valid".to_owned());
    }
    match text(header, "/type").unwrap_or("Exact") {
        "Exact" => Ok(RequestCondition::field(name, value)),
        "RegularExpression" => {
            check_pattern(value)?;
            Ok(RequestCondition::field_matching(name, value))
        }
        other => Err(format!("a match of the type {other} is not supported")),
    }
}

fn argument_condition(argument: &Value) -> Result<RequestCondition, String> {
    let name = text(argument, "/name").unwrap_or_default();
    let value = text(argument, "/value").unwrap_or_default();
    if name.is_empty() || !names::is_printable(name) || !names::is_printable(value) {
        return Err("a query parameter is not valid".to_owned());
    }
    match text(argument, "/type").unwrap_or("Exact") {
        "Exact" => Ok(RequestCondition::argument(name, value)),
        "RegularExpression" => {
            check_pattern(value)?;
            Ok(RequestCondition::argument_matching(name, value))
        }
        other => Err(format!("a match of the type {other} is not supported")),
    }
}

/// Collects what the rules of a route become.
pub(super) struct RuleWriter<'r> {
    kind: RouteKind,
    own: &'r ResourceKey,
    created: &'r str,
    pub(super) files: RouteFiles,
    pub(super) entries: Vec<Entry>,
}

impl<'r> RuleWriter<'r> {
    pub(super) fn new(kind: RouteKind, own: &'r ResourceKey, route: &'r Value) -> Self {
        let files = RouteFiles::new(names::object_id(kind.id, own));
        Self { kind, own, created: object::created(route), files, entries: Vec::new() }
    }

    pub(super) fn add(&mut self, rule: &RouteRule, matches: Vec<Matching>, folder: &str) {
        let mut bodies: Vec<(Option<String>, String)> = Vec::new();
        for (number, matching) in matches.into_iter().enumerate() {
            let prefix = match &matching.path {
                PathMatch::Prefix(prefix) if rule.depends_on_prefix() => Some(prefix.clone()),
                _ => None,
            };
            let known = bodies.iter().find(|(known, _)| *known == prefix);
            let body = match known {
                Some((_, body)) => body.clone(),
                None => {
                    let name = match bodies.len() {
                        0 => format!("rule-{}", rule.number),
                        _ => format!("rule-{}-match-{}", rule.number, number + 1),
                    };
                    let text = rule.body(prefix.as_deref(), &name, folder, &mut self.files);
                    let body = self.files.body(&name, text);
                    bodies.push((prefix, body.clone()));
                    body
                }
            };
            let ResourceKey { namespace, name } = self.own;
            self.entries.push(Entry {
                path: matching.path,
                conditions: matching.conditions,
                order: Order {
                    created: self.created.to_owned(),
                    namespace: namespace.clone(),
                    name: name.clone(),
                    rule: rule.number,
                    matching: number,
                },
                body,
                title: format!("{} {namespace}/{name}, rule {}", self.kind.name, rule.number),
            });
        }
    }
}

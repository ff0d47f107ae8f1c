//! Ingress objects, with the annotations of ingress-nginx.
//!
//! Each path of an Ingress becomes an entry of the servers of its host, like a rule of an
//! HTTPRoute; both may be for the same host.

mod access;
mod annotations;
mod canary;
mod location;
mod server;
mod target;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::names;
use super::nginx_conf::{ConfText, Entry, Order, PathMatch};
use super::object::{self, list, text};
use super::patterns::{check_pattern, decoded_path};
use super::planner::Planner;
use super::route_files::RouteFiles;
use super::status;
use crate::{ResourceKey, ResourceKind};
use annotations::Annotations;
use canary::Canaries;
use location::LocationSettings;
use server::ServerSettings;

pub(super) fn plan(planner: &mut Planner<'_>) {
    let classes = Classes::read(planner);
    let ours: Vec<_> = planner
        .by_age(ResourceKind::Ingress)
        .into_iter()
        .filter(|(_, ingress)| classes.has(ingress))
        .collect();
    let canaries = Canaries::read(&ours);
    for (own, ingress) in &ours {
        let mut annotations = Annotations::of(ingress);
        if !canary::is_canary(&mut annotations) {
            IngressPlan::new(own, ingress).write(planner, &canaries, &mut annotations);
        } else {
            canary::read_all(&mut annotations);
        }
        let warnings = annotations.finish();
        for warning in warnings {
            let ResourceKey { namespace, name } = own;
            planner.warn(format!("Ingress {namespace}/{name}: {warning}"));
        }
        let addresses = match planner.refusal(ResourceKind::Ingress, own) {
            None => planner.settings.addresses.as_slice(),
            Some(_) => &[],
        };
        let addresses: Vec<_> = addresses.iter().map(|one| address(one)).collect();
        // The API server does not keep an empty list: it would differ for ever.
        let (is_empty, balancer) = match addresses.as_slice() {
            [] => (true, json!({})),
            addresses => (false, json!({ "ingress": addresses })),
        };
        if !is_empty || ingress.get("status").is_some() {
            let fields = vec![("loadBalancer", balancer)];
            planner.statuses.extend(status::update(ResourceKind::Ingress, own, ingress, fields));
        }
    }
}

fn address(address: &str) -> Value {
    let kind = if address.parse::<std::net::IpAddr>().is_ok() { "ip" } else { "hostname" };
    json!({ kind: address })
}

/// The classes that are ours.
struct Classes {
    names: BTreeSet<String>,
    is_default: bool,
}

impl Classes {
    fn read(planner: &Planner<'_>) -> Self {
        let mut classes = Self { names: BTreeSet::new(), is_default: false };
        for (own, class) in planner.objects.of(ResourceKind::IngressClass) {
            if text(class, "/spec/controller") == Some(&planner.settings.controller_name) {
                let default = text(
                    class,
                    "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class",
                );
                classes.is_default |= default == Some("true");
                classes.names.insert(own.name.clone());
            }
        }
        classes
    }

    fn has(&self, ingress: &Value) -> bool {
        let of_annotation = text(ingress, "/metadata/annotations/kubernetes.io~1ingress.class");
        match text(ingress, "/spec/ingressClassName").or(of_annotation) {
            Some(class) => self.names.contains(class),
            None => self.is_default,
        }
    }
}

/// One Ingress while it is written.
struct IngressPlan<'p> {
    own: &'p ResourceKey,
    ingress: &'p Value,
    files: RouteFiles,
    /// By host.
    entries: BTreeMap<String, Vec<Entry>>,
    bodies: usize,
}

impl<'p> IngressPlan<'p> {
    fn new(own: &'p ResourceKey, ingress: &'p Value) -> Self {
        let files = RouteFiles::new(names::object_id("ingress", own));
        Self { own, ingress, files, entries: BTreeMap::new(), bodies: 0 }
    }

    fn write(
        mut self,
        planner: &mut Planner<'_>,
        canaries: &Canaries<'_>,
        annotations: &mut Annotations<'_>,
    ) {
        let server = ServerSettings::read(planner, self.own, self.ingress, annotations);
        if server.is_passthrough {
            server::pass_through(planner, self.own, self.ingress);
            return;
        }
        let settings = LocationSettings::read(planner, self.own, annotations, &mut self.files);
        for rule in list(self.ingress, "/spec/rules") {
            let host = text(rule, "/host").unwrap_or_default().to_ascii_lowercase();
            if !host.is_empty() && !names::is_host(&host) {
                annotations.warnings.push(format!("the host {host:?} is not valid"));
                continue;
            }
            self.entries.entry(host.clone()).or_default();
            for path in list(rule, "/http/paths") {
                let canary = canaries.of(self.own, &host, path);
                self.path(planner, &settings, &server, &host, path, canary, annotations);
            }
        }
        self.default_backend(planner, &settings, &server, annotations);
        self.app_root(&settings, &server);
        if let Some(snippet) = &server.snippet {
            self.files.server.raw(snippet);
        }
        server.add(planner, self.own, &self.entries, &self.files.of_servers(), annotations);
        self.files.write(false, planner);
    }

    #[expect(clippy::too_many_arguments, reason = "one path of one host, with all it depends on")]
    fn path(
        &mut self,
        planner: &mut Planner<'_>,
        settings: &LocationSettings,
        server: &ServerSettings,
        host: &str,
        path: &Value,
        canary: Option<canary::Canary<'_>>,
        annotations: &mut Annotations<'_>,
    ) {
        let given = text(path, "/path").filter(|path| !path.is_empty()).unwrap_or("/");
        let kind = text(path, "/pathType").unwrap_or("ImplementationSpecific");
        let matching = match path_match(given, kind, settings.has_regex) {
            Ok(matching) => matching,
            Err(why) => {
                annotations.warnings.push(why);
                return;
            }
        };
        let backend = path.pointer("/backend").unwrap_or(&Value::Null);
        let out = settings.body(
            planner,
            self.own,
            given,
            (self.bodies + 1, backend, canary),
            server.redirects_to_https(host),
            &mut self.files,
            annotations,
        );
        self.add(host, matching, given, out);
    }

    fn add(&mut self, host: &str, path: PathMatch, shown: &str, body: ConfText) {
        self.bodies += 1;
        let body = self.files.body(&format!("path-{}", self.bodies), body);
        let ResourceKey { namespace, name } = self.own;
        self.entries.entry(host.to_owned()).or_default().push(Entry {
            path,
            conditions: Vec::new(),
            order: Order {
                created: object::created(self.ingress).to_owned(),
                namespace: namespace.clone(),
                name: name.clone(),
                rule: self.bodies,
                matching: 0,
            },
            body,
            title: format!("Ingress {namespace}/{name}, {shown}"),
        });
    }

    /// `defaultBackend`: for all hosts, or for the rest of the hosts that it names.
    fn default_backend(
        &mut self,
        planner: &mut Planner<'_>,
        settings: &LocationSettings,
        server: &ServerSettings,
        annotations: &mut Annotations<'_>,
    ) {
        let Some(backend) = self.ingress.pointer("/spec/defaultBackend") else { return };
        let mut hosts: Vec<_> = self.entries.keys().cloned().collect();
        if hosts.is_empty() {
            hosts.push(String::new());
        }
        for host in hosts {
            let out = settings.body(
                planner,
                self.own,
                "/",
                (self.bodies + 1, backend, None),
                server.redirects_to_https(&host),
                &mut self.files,
                annotations,
            );
            self.add(&host, PathMatch::prefix("/"), "the default backend", out);
        }
    }

    fn app_root(&mut self, settings: &LocationSettings, server: &ServerSettings) {
        let Some(root) = &settings.app_root else { return };
        for host in self.entries.keys().cloned().collect::<Vec<_>>() {
            let mut out = ConfText::default();
            location::https_redirect(server.redirects_to_https(&host), &mut out);
            let url = format!("$scheme://$host$redirect_port{root}");
            out.line(format!("return 302 {}", super::nginx_conf::quoted_template(&url)));
            self.add(&host, PathMatch::Exact("/".to_owned()), "app-root", out);
        }
    }
}

fn path_match(path: &str, kind: &str, has_regex: bool) -> Result<PathMatch, String> {
    if has_regex && matches!(kind, "ImplementationSpecific" | "Prefix") {
        check_pattern(path)?;
        let pattern = format!("^(?:{path})");
        return Ok(PathMatch::Regex { pattern, is_caseless: true });
    }
    match kind {
        "Exact" => Ok(PathMatch::Exact(decoded_path(path)?)),
        "Prefix" | "ImplementationSpecific" => Ok(PathMatch::prefix(&decoded_path(path)?)),
        other => Err(format!("a path of the type {other:?} is not supported")),
    }
}

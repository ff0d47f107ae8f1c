//! From a rule to the body of a location: filters, then the backends.

use super::backends::Backend;
use super::filters::{FieldChanges, Filters, Mirror, PathChange, Redirect};
use super::policies::{SYSTEM_AUTHORITIES, ServiceTls};
use super::targets::BackendTarget;
use crate::plan::names::field_variable;
use crate::plan::nginx_conf::{
    ConfText, CrossOrigin, forwarded_fields, literal, no_variables, quoted, quoted_template,
    regex_of, split,
};
use crate::plan::patterns::OWN_PATHS;
use crate::plan::route_files::RouteFiles;

/// Fields of which a response has one at most: adding one sets it.
const SINGLE: [&str; 6] = ["Content-Type", "Date", "ETag", "Last-Modified", "Location", "Server"];

/// A rule that can be used.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteRule {
    /// Its number in the route, from 1.
    pub(super) number: usize,
    /// The beginning of the names of its variables.
    pub(super) variable: String,
    pub(super) is_grpc: bool,
    pub(super) filters: Filters,
    pub(super) backends: Vec<Backend>,
    pub(super) request_timeout_ms: Option<u64>,
    pub(super) backend_timeout_ms: Option<u64>,
}

impl RouteRule {
    /// The body for requests whose path has been matched by this prefix (`None`: not by a prefix).
    pub(super) fn body(
        &self,
        prefix: Option<&str>,
        name: &str,
        folder: &str,
        files: &mut RouteFiles,
    ) -> ConfText {
        let mut out = ConfText::default();
        out.line("client_max_body_size 0");
        if self.filters.is_broken {
            out.line("return 500");
            return out;
        }
        if let Some(cors) = &self.filters.cors {
            let variable = format!("{}_cors", self.variable);
            let mut maps = ConfText::default();
            cross_origin(cors).write(&variable, &mut maps, &mut out);
            if !files.maps.as_str().contains(maps.as_str()) {
                files.maps.raw(maps.as_str());
            }
        }
        self.response_fields(&self.filters.response, &mut out);
        if let Some(redirect) = &self.filters.redirect {
            self.redirect(redirect, prefix, name, files, &mut out);
            return out;
        }
        self.request_fields(&self.filters.request, "", files, &mut out);
        let mirrors = self.filters.mirrors.iter().enumerate();
        for (number, mirror) in mirrors.filter(|(_, mirror)| mirror.share.0 > 0) {
            self.mirror(mirror, number + 1, folder, files, &mut out);
        }
        self.rewrite(prefix, &mut out);
        self.backends(name, folder, files, &mut out);
        out
    }

    /// Whether the prefix that has matched is needed to write the body.
    pub(super) fn depends_on_prefix(&self) -> bool {
        let is_prefix = |path: &Option<PathChange>| matches!(path, Some(PathChange::Prefix(_)));
        let redirect = self.filters.redirect.as_ref();
        is_prefix(&self.filters.rewrite.path) || redirect.is_some_and(|one| is_prefix(&one.path))
    }

    fn failure(&self) -> &'static str {
        // A client of gRPC is to see "unavailable".
        if self.is_grpc { "return 503" } else { "return 500" }
    }

    fn response_fields(&self, changes: &FieldChanges, out: &mut ConfText) {
        for (name, value) in &changes.set {
            out.line(format!("more_set_headers {}", literal(&format!("{name}: {value}"))));
        }
        for (name, value) in &changes.add {
            let is_single = SINGLE.iter().any(|single| name.eq_ignore_ascii_case(single));
            let option = if is_single { "" } else { "-a " };
            let field = literal(&format!("{name}: {value}"));
            out.line(format!("more_set_headers {option}{field}"));
        }
        for name in &changes.remove {
            out.line(format!("more_clear_headers {}", quoted(name)));
        }
    }

    fn request_fields(
        &self,
        changes: &FieldChanges,
        part: &str,
        files: &mut RouteFiles,
        out: &mut ConfText,
    ) {
        for (name, value) in &changes.set {
            out.line(format!("more_set_input_headers {}", literal(&format!("{name}: {value}"))));
        }
        for (number, (name, value)) in changes.add.iter().enumerate() {
            let variable = format!("${}{part}_added_{}", self.variable, number + 1);
            let field = field_variable(name);
            let value = no_variables(value);
            let head = format!("map {field} {variable} {{\n");
            if !files.maps.as_str().contains(&head) {
                files.maps.block(format!("map {field} {variable}"), |maps| {
                    maps.line(format!("\"\" {}", quoted_template(&value)));
                    maps.line(format!("default {}", quoted_template(&format!("{field},{value}"))));
                });
            }
            out.line(format!("more_set_input_headers \"{name}: {variable}\""));
        }
        for name in &changes.remove {
            out.line(format!("more_clear_input_headers {}", quoted(name)));
        }
    }

    fn redirect(
        &self,
        redirect: &Redirect,
        prefix: Option<&str>,
        name: &str,
        files: &mut RouteFiles,
        out: &mut ConfText,
    ) {
        let scheme = redirect.scheme.as_deref().unwrap_or("$scheme");
        let host = redirect.host.as_deref().unwrap_or("$host");
        let port = match (redirect.port, redirect.scheme.as_deref()) {
            (None, None) => "$redirect_port".to_owned(),
            (None, Some(_)) | (Some(80), Some("http")) | (Some(443), Some("https")) => {
                String::new()
            }
            (Some(port), Some(_)) => format!(":{port}"),
            (Some(port), None) => {
                let variable = format!("{}_port", self.variable);
                if !files.maps.as_str().contains(&format!(" ${variable} ")) {
                    port_map(port, &variable, &mut files.maps);
                }
                format!("${variable}")
            }
        };
        let rest = match &redirect.path {
            None => "$request_uri".to_owned(),
            Some(PathChange::Full(path)) => format!("{}$is_args$args", no_variables(path)),
            Some(PathChange::Prefix(path)) => {
                let variable = format!("{}_{}_path", self.variable, name.replace('-', "_"));
                path_map(prefix.unwrap_or_default(), path, &variable, &mut files.maps);
                format!("${variable}$is_args$args")
            }
        };
        let url = quoted_template(&format!("{scheme}://{host}{port}{rest}"));
        out.line(format!("return {} {url}", redirect.status));
    }

    fn mirror(
        &self,
        mirror: &Mirror,
        number: usize,
        folder: &str,
        files: &mut RouteFiles,
        out: &mut ConfText,
    ) {
        let path = format!("{OWN_PATHS}mirror/{}/{}-{number}", files.id, self.number);
        out.line(format!("mirror {path}"));
        let head = format!("location = {path}");
        if files.locations.as_str().contains(&format!("{head} {{")) {
            return;
        }
        let variable = format!("{}_mirror_{number}", self.variable);
        let (part, whole) = mirror.share;
        let is_partial = part < whole;
        if is_partial {
            let shares = [(part, "1".to_owned()), (whole - part, "0".to_owned())];
            split(&mut files.maps, "$request_id", &variable, &shares);
        }
        files.locations.block(head, |out| {
            out.line("internal");
            if is_partial {
                out.block(format!("if (${variable} = 0)"), |out| out.line("return 204"));
            }
            self.pass(&mirror.target, &mirror.target.group, "$request_uri", folder, out);
        });
    }

    fn rewrite(&self, prefix: Option<&str>, out: &mut ConfText) {
        match &self.filters.rewrite.path {
            None => {}
            Some(PathChange::Full(path)) => {
                out.line(format!("rewrite ^ {} break", literal(&decoded(path))));
            }
            Some(PathChange::Prefix(path)) => {
                let prefix = regex_of(prefix.unwrap_or_default());
                let path = decoded(path);
                let (rest, path) = replacement(&path);
                let pattern = quoted(&format!("(?s)^{prefix}{rest}$"));
                out.line(format!("rewrite {pattern} {} break", quoted_template(&path)));
            }
        }
    }

    fn backends(&self, name: &str, folder: &str, files: &mut RouteFiles, out: &mut ConfText) {
        let backends: Vec<_> = self.backends.iter().filter(|one| one.weight > 0).collect();
        let targets: Vec<_> = backends.iter().filter_map(|one| one.target.as_ref()).collect();
        let Some(first) = targets.first() else {
            out.line(self.failure());
            return;
        };
        let is_alike = targets.iter().all(|one| one.is_h2c == first.is_h2c && one.tls == first.tls)
            && backends.iter().all(|one| one.filters == Filters::default());
        if is_alike && backends.len() == 1 {
            self.pass(first, &first.group, "", folder, out);
        } else if is_alike {
            let variable = format!("{}_backend", self.variable);
            self.shares(&variable, &backends, files, |_, target| target.group.clone());
            if targets.len() < backends.len() {
                let failure = self.failure();
                out.block(format!("if (${variable} = \"\")"), |out| out.line(failure));
            }
            self.pass(first, &format!("${variable}"), "", folder, out);
        } else {
            self.backend_locations(name, &backends, folder, files, out);
        }
    }

    /// Backends that differ have a location each.
    fn backend_locations(
        &self,
        name: &str,
        backends: &[&Backend],
        folder: &str,
        files: &mut RouteFiles,
        out: &mut ConfText,
    ) {
        let variable = format!("{}_{}_location", self.variable, name.replace('-', "_"));
        let location = format!("@{}/{name}/backend-", files.id);
        self.shares(&variable, backends, files, |number, _| format!("{location}{number}"));
        if backends.iter().any(|one| one.target.is_none()) {
            let failure = self.failure();
            out.block(format!("if (${variable} = \"\")"), |out| out.line(failure));
        }
        out.line(format!("error_page 418 = ${variable}"));
        out.line("return 418");
        for (number, backend) in backends.iter().enumerate() {
            let Some(target) = &backend.target else { continue };
            let mut inside = ConfText::default();
            // What the rule says of responses holds there as well.
            self.response_fields(&self.filters.response, &mut inside);
            self.response_fields(&backend.filters.response, &mut inside);
            let part = format!("_backend_{}", number + 1);
            self.request_fields(&self.filters.request, "", files, &mut inside);
            self.request_fields(&backend.filters.request, &part, files, &mut inside);
            self.pass(target, &target.group, "", folder, &mut inside);
            files.locations.block(format!("location {location}{}", number + 1), |out| {
                out.raw(inside.as_str());
            });
        }
    }

    fn shares(
        &self,
        variable: &str,
        backends: &[&Backend],
        files: &mut RouteFiles,
        value: impl Fn(usize, &BackendTarget) -> String,
    ) {
        if files.maps.as_str().contains(&format!(" ${variable} ")) {
            return;
        }
        let value = |(number, backend): (usize, &&Backend)| {
            let value = backend.target.as_ref().map(|target| value(number + 1, target));
            (backend.weight, value.unwrap_or_else(|| "\"\"".to_owned()))
        };
        let shares: Vec<_> = backends.iter().enumerate().map(value).collect();
        split(&mut files.maps, "$request_id", variable, &shares);
    }

    fn pass(
        &self,
        target: &BackendTarget,
        group: &str,
        uri: &str,
        folder: &str,
        out: &mut ConfText,
    ) {
        let family = if self.is_grpc { "grpc" } else { "proxy" };
        self.timeouts(family, out);
        if target.is_h2c && !self.is_grpc {
            out.line("proxy_http_version 2");
        }
        if let Some(host) = &self.filters.rewrite.host {
            forwarded_fields(family, &literal(host), out);
        }
        if let Some(tls) = &target.tls {
            backend_tls(family, tls, folder, out);
        }
        let scheme = match (self.is_grpc, target.tls.is_some()) {
            (false, false) => "http",
            (false, true) => "https",
            (true, false) => "grpc",
            (true, true) => "grpcs",
        };
        let uri = if self.is_grpc { "" } else { uri };
        out.line(format!("{family}_pass {scheme}://{group}{uri}"));
    }

    fn timeouts(&self, family: &str, out: &mut ConfText) {
        /// As good as none.
        const DAY_MS: u64 = 86_400_000;
        let limit = self.backend_timeout_ms.or(self.request_timeout_ms);
        if let Some(limit) = limit {
            let limit = if limit == 0 { DAY_MS } else { limit };
            for part in ["connect", "send", "read"] {
                out.line(format!("{family}_{part}_timeout {limit}ms"));
            }
        }
        if let Some(limit) = self.request_timeout_ms.filter(|limit| *limit > 0) {
            out.line(format!("{family}_next_upstream_timeout {limit}ms"));
        }
    }
}

fn decoded(path: &str) -> String {
    crate::plan::patterns::decoded_path(path).unwrap_or_else(|_| "/".to_owned())
}

fn cross_origin(cors: &super::filters::Cors) -> CrossOrigin {
    CrossOrigin {
        origins: cors.origins.clone(),
        methods: cors.methods.join(", "),
        headers: cors.headers.join(", "),
        exposed: cors.exposed.join(", "),
        allows_credentials: cors.allows_credentials,
        age_max: cors.age_max,
    }
}

fn backend_tls(family: &str, tls: &ServiceTls, folder: &str, out: &mut ConfText) {
    let authorities = match &tls.authorities {
        Some(file) => format!("{folder}/{file}"),
        None => SYSTEM_AUTHORITIES.to_owned(),
    };
    out.line(format!("{family}_ssl_verify on"));
    out.line(format!("{family}_ssl_verify_depth 4"));
    out.line(format!("{family}_ssl_server_name on"));
    out.line(format!("{family}_ssl_name {}", literal(&tls.name)));
    out.line(format!("{family}_ssl_trusted_certificate {}", quoted(&authorities)));
}

fn port_map(port: u16, variable: &str, maps: &mut ConfText) {
    maps.block(format!("map $scheme:{port} ${variable}"), |maps| {
        maps.line(format!("default :{port}"));
        maps.line("http:80 \"\"");
        maps.line("https:443 \"\"");
    });
}

/// What follows the prefix, as an expression, and the new path as a template.
fn replacement(path: &str) -> (&'static str, String) {
    match path.trim_end_matches('/') {
        "" => ("/?(.*)", "/$1".to_owned()),
        path => ("(/.*)?", format!("{}$1", no_variables(path))),
    }
}

/// The new path of a redirect, from the path as the client sent it.
fn path_map(prefix: &str, path: &str, variable: &str, maps: &mut ConfText) {
    let (rest, replaced) = replacement(path);
    let rest = rest.replace('.', "[^?]");
    let pattern = format!("~^{}{rest}(?:\\?|\\z)", regex_of(prefix));
    let otherwise = if path.is_empty() { "/" } else { path };
    maps.block(format!("map $request_uri ${variable}"), |maps| {
        maps.line(format!("default {}", literal(otherwise)));
        maps.line(format!("{} {}", quoted(&pattern), quoted_template(&replaced)));
    });
}

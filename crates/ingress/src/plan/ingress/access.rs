//! Who may pass: networks, passwords, an authentication service, and how often.
//!
//! A value that cannot be followed closes the location, because nobody else may open it.

use super::annotations::{Annotations, url_template};
use super::server::own_object;
use super::target::ServiceReference;
use crate::ResourceKey;
use crate::plan::names;
use crate::plan::nginx_conf::{ConfText, client_fields, literal, quoted, quoted_template};
use crate::plan::patterns::OWN_PATHS;
use crate::plan::planner::Planner;
use crate::plan::route_files::RouteFiles;

#[derive(Clone, Debug, Default)]
pub(super) struct AccessSettings {
    pub(super) lines: ConfText,
    /// Fields of the authentication service's answer that the backend is sent, with their
    /// variables.
    pub(super) fields: Vec<(String, String)>,
    /// Why nobody may pass.
    pub(super) closed: Option<String>,
}

/// How many requests above a rate are accepted, as a multiple of it.
const BURST: u64 = 5;

impl AccessSettings {
    pub(super) fn read(
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
        files: &mut RouteFiles,
    ) -> Self {
        let mut access = Self::default();
        access.networks(annotations);
        access.passwords(planner, own, annotations);
        access.service(planner, own, annotations, files);
        access.limits(own, annotations, files);
        if let Some(satisfy) = annotations
            .parsed("satisfy", |text| ["all", "any"].into_iter().find(|one| *one == text))
        {
            access.lines.line(format!("satisfy {satisfy}"));
        }
        access
    }

    fn close(&mut self, annotations: &mut Annotations<'_>, name: &str, why: &str) {
        annotations.refuse(name, &format!("{why}; nobody is let in"));
        self.closed.get_or_insert_with(|| format!("{name}: {why}"));
    }

    fn networks(&mut self, annotations: &mut Annotations<'_>) {
        let old = annotations.text("whitelist-source-range");
        let new = annotations.text("allowlist-source-range");
        let denied = annotations.text("denylist-source-range");
        let allowed = match new {
            Some(_) => ("allowlist-source-range", new, "allow"),
            None => ("whitelist-source-range", old, "allow"),
        };
        let lists = [("denylist-source-range", denied, "deny"), allowed];
        for (name, text, directive) in lists {
            let Some(text) = text else { continue };
            let networks: Vec<_> = text.split(',').map(str::trim).collect();
            if let Some(bad) = networks.iter().find(|one| !names::is_network(one)) {
                self.close(annotations, name, &format!("{bad:?} is not a network"));
                continue;
            }
            for network in networks {
                self.lines.line(format!("{directive} {network}"));
            }
            if directive == "allow" {
                self.lines.line("deny all");
            }
        }
    }

    fn passwords(
        &mut self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
    ) {
        let kind = annotations.text("auth-type");
        let secret = annotations.text("auth-secret");
        let is_map = annotations.text("auth-secret-type") == Some("auth-map");
        // Quotes would end the value of the field that the realm is in.
        let realm = annotations.parsed("auth-realm", |text| {
            (names::is_printable(text) && !text.contains(['"', '\\'])).then_some(text)
        });
        match kind {
            None => return,
            Some("basic") => {}
            Some(_) => {
                self.close(annotations, "auth-type", "only \"basic\" is supported");
                return;
            }
        }
        let secret = own_object(own, secret.unwrap_or_default());
        let file = secret.and_then(|secret| password_file(planner, &secret, is_map));
        match file {
            Ok(file) => {
                let file = format!("{}/{file}", planner.settings.folder);
                let realm = realm.unwrap_or("Authentication Required");
                self.lines.line(format!("auth_basic {}", literal(realm)));
                self.lines.line(format!("auth_basic_user_file {}", literal(&file)));
            }
            Err(why) => self.close(annotations, "auth-secret", &why),
        }
    }

    fn service(
        &mut self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
        files: &mut RouteFiles,
    ) {
        let url = annotations.text("auth-url");
        let sign_in = annotations.text("auth-signin");
        let method = annotations
            .parsed("auth-method", |text| names::is_token(text).then(|| text.to_owned()));
        let fields = annotations.several("auth-response-headers", names::is_plain_field);
        let Some(url) = url else { return };
        let target = match AuthTarget::read(planner, url) {
            Ok(target) => target,
            Err(why) => return self.close(annotations, "auth-url", &why),
        };
        let path = format!("{OWN_PATHS}auth/{}", files.id);
        self.lines.line(format!("auth_request {path}"));
        write_auth_location(&target, method.as_deref(), &path, &mut files.locations);
        let id = names::variable("ingress", own, "auth");
        for (number, name) in fields.unwrap_or_default().into_iter().enumerate() {
            let variable = format!("${id}_{}", number + 1);
            let field = name.to_ascii_lowercase().replace('-', "_");
            self.lines.line(format!("auth_request_set {variable} $upstream_http_{field}"));
            self.fields.push((name, variable));
        }
        let Some(sign_in) = sign_in else { return };
        match url_template(sign_in) {
            Some(sign_in) => {
                let location = format!("@{}/sign-in", files.id);
                self.lines.line(format!("error_page 401 = {location}"));
                let separator = if sign_in.contains('?') { '&' } else { '?' };
                let back = match sign_in.contains("rd=") {
                    true => String::new(),
                    false => format!("{separator}rd=$scheme://$client_host$request_uri"),
                };
                files.locations.block(format!("location {location}"), |out| {
                    let url = quoted_template(&format!("{sign_in}{back}"));
                    out.line(format!("return 302 {url}"));
                });
            }
            None => annotations.refuse("auth-signin", "its value is not valid"),
        }
    }

    fn limits(
        &mut self,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
        files: &mut RouteFiles,
    ) {
        let id = names::object_id("ingress", own);
        let burst = annotations.number("limit-burst-multiplier", 1000).filter(|burst| *burst > 0);
        let burst = burst.unwrap_or(BURST);
        let names = [("limit-rps", "r/s"), ("limit-rpm", "r/m")];
        for (name, unit) in names {
            let Some(rate) = annotations.number(name, 1_000_000).filter(|rate| *rate > 0) else {
                continue;
            };
            let zone = format!("{id}.{name}");
            files.maps.line(format!(
                "limit_req_zone $binary_remote_addr zone={zone}:5m rate={rate}{unit}"
            ));
            self.lines.line(format!("limit_req zone={zone} burst={} nodelay", rate * burst));
        }
        let connections = annotations.number("limit-connections", u64::from(u16::MAX));
        if let Some(connections) = connections.filter(|connections| *connections > 0) {
            let zone = format!("{id}.connections");
            files.maps.line(format!("limit_conn_zone $binary_remote_addr zone={zone}:5m"));
            self.lines.line(format!("limit_conn {zone} {connections}"));
        }
    }
}

/// The file of user names and hashes of passwords.
fn password_file(
    planner: &mut Planner<'_>,
    secret: &ResourceKey,
    is_map: bool,
) -> Result<String, String> {
    let file = format!("certificates/{}.{}.passwords", secret.namespace, secret.name);
    let bytes = if is_map {
        let object = planner.objects.get(crate::ResourceKind::Secret, secret);
        let data = object.and_then(|object| object.get("data")?.as_object());
        let data = data.ok_or_else(|| format!("the Secret {} does not exist", secret.name))?;
        let mut lines = Vec::new();
        for user in data.keys().filter(|user| !user.contains([':', '\n'])) {
            let hash = planner.secret_data(secret, user)?;
            lines.extend_from_slice(user.as_bytes());
            lines.push(b':');
            lines.extend(hash.split(|byte| *byte == b'\n').next().unwrap_or_default());
            lines.push(b'\n');
        }
        lines
    } else {
        planner.secret_data(secret, "auth")?
    };
    planner.files.insert(file.clone(), bytes);
    Ok(file)
}

/// An authentication service.
struct AuthTarget {
    /// A URL for `proxy_pass`.
    url: String,
    host: String,
}

impl AuthTarget {
    /// A host of the cluster's own domain is a Service, whose group is used.
    fn read(planner: &mut Planner<'_>, url: &str) -> Result<Self, String> {
        let refuse = || format!("{url:?} is not a URL without variables");
        let (scheme, rest) = url.split_once("://").ok_or_else(refuse)?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse::<u16>().map_err(|_| refuse())?)),
            None => (authority, None),
        };
        let is_path = |next: char| next.is_ascii_graphic() && !"$\"'\\{};#".contains(next);
        let is_host = names::is_name(host);
        if !matches!(scheme, "http" | "https") || !is_host || !path.chars().all(is_path) {
            return Err(refuse());
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let mut parts = host.split('.');
        let target = match (parts.next(), parts.next(), parts.next()) {
            (Some(service), Some(namespace), Some("svc")) => {
                let default = if scheme == "https" { 443 } else { 80 };
                let reference = ServiceReference::named(namespace, service, port.or(Some(default)));
                let port = reference.port(planner)?;
                planner.group(&port, false, "", &[])
            }
            _ => authority.to_owned(),
        };
        let url = quoted(&format!("{scheme}://{target}{path}"));
        Ok(Self { url, host: authority.to_owned() })
    }
}

fn write_auth_location(
    target: &AuthTarget,
    method: Option<&str>,
    path: &str,
    locations: &mut ConfText,
) {
    locations.block(format!("location = {path}"), |out| {
        out.line("internal");
        out.line("client_max_body_size 0");
        if let Some(method) = method {
            out.line(format!("proxy_method {}", literal(method)));
        }
        out.line("proxy_pass_request_body off");
        out.line("proxy_ssl_server_name on");
        out.line(format!("proxy_ssl_name {}", target.host.split(':').next().unwrap_or_default()));
        out.line(format!("proxy_set_header Host {}", target.host));
        out.line("proxy_set_header Content-Length \"\"");
        client_fields("proxy", out);
        out.line("proxy_set_header X-Original-URL $scheme://$client_host$request_uri");
        out.line("proxy_set_header X-Original-Method $request_method");
        out.line("proxy_set_header X-Auth-Request-Redirect $request_uri");
        out.line(format!("proxy_pass {}", target.url));
    });
}

//! The Service of a backend, and the group for it.

use serde_json::Value;

use super::annotations::Annotations;
use crate::ResourceKey;
use crate::plan::nginx_conf::quoted;
use crate::plan::object::{self, text};
use crate::plan::planner::{Planner, ServicePort};

/// A Service with a port by name or by number.
#[derive(Clone, Debug)]
pub(super) struct ServiceReference<'v> {
    namespace: &'v str,
    name: &'v str,
    port_name: Option<&'v str>,
    port: Option<u16>,
}

impl<'v> ServiceReference<'v> {
    pub(super) fn read(own: &'v ResourceKey, backend: &'v Value) -> Self {
        Self {
            namespace: &own.namespace,
            name: text(backend, "/service/name").unwrap_or_default(),
            port_name: text(backend, "/service/port/name"),
            port: object::port(backend, "/service/port/number"),
        }
    }

    pub(super) fn named(namespace: &'v str, name: &'v str, port: Option<u16>) -> Self {
        Self { namespace, name, port_name: None, port }
    }

    pub(super) fn port(&self, planner: &Planner<'_>) -> Result<ServicePort, String> {
        let is_it = |one: &Value| match (self.port, self.port_name) {
            (Some(port), _) => object::port(one, "/port") == Some(port),
            (None, Some(name)) => text(one, "/name") == Some(name),
            (None, None) => true,
        };
        planner
            .service_port(self.namespace, self.name, is_it)
            .map_err(|fault| format!("backend: {fault}"))
    }
}

/// What an Ingress says about the choice of a server, as directives of the group.
#[derive(Clone, Debug, Default)]
pub(super) struct BalanceSettings(Vec<String>);

impl BalanceSettings {
    pub(super) fn read(annotations: &mut Annotations<'_>) -> Self {
        let mut lines = Vec::new();
        let hash = annotations.parsed("upstream-hash-by", hash_key);
        let balance = annotations.text("load-balance");
        match (hash, balance) {
            (Some(hash), _) => lines.push(format!("hash {hash} consistent")),
            (None, Some("round_robin") | None) => {}
            (None, Some("least_conn")) => lines.push("least_conn".to_owned()),
            // The average of times, by which ingress-nginx chooses.
            (None, Some("ewma")) => lines.push("least_time header".to_owned()),
            (None, Some("ip_hash")) => {
                lines.push("hash $binary_remote_addr consistent".to_owned());
            }
            (None, Some(_)) => annotations.refuse("load-balance", "its value is not supported"),
        }
        lines.extend(sticky(annotations));
        Self(lines)
    }

    pub(super) fn group(
        &self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        port: &ServicePort,
    ) -> String {
        let owner = if self.0.is_empty() { "" } else { own.name.as_str() };
        planner.group(port, false, owner, &self.0)
    }
}

/// A single variable, or several with text between them.
fn hash_key(text: &str) -> Option<String> {
    const KNOWN: [&str; 8] = [
        "remote_addr",
        "binary_remote_addr",
        "request_uri",
        "uri",
        "host",
        "http_host",
        "args",
        "query_string",
    ];
    let is_variable = |name: &str| {
        let is_known = KNOWN.contains(&name)
            || ["arg_", "cookie_", "http_"]
                .iter()
                .any(|prefix| name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()));
        is_known && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut out = String::new();
    let mut parts = text.split('$');
    if !parts.next()?.is_empty() {
        return None;
    }
    for part in parts {
        let name = part.trim_start_matches('{').trim_end_matches('}');
        if !is_variable(name) {
            return None;
        }
        out.push_str(&format!("${{{name}}}"));
    }
    (!out.is_empty()).then(|| quoted(&out))
}

fn sticky(annotations: &mut Annotations<'_>) -> Option<String> {
    let affinity = annotations.text("affinity");
    let is_name = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        text.len() < 100 && text.bytes().all(is_plain)
    };
    let name = annotations.parsed("session-cookie-name", |text| is_name(text).then_some(text));
    let plain = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
        text.bytes().all(is_plain).then(|| text.to_owned())
    };
    let path = annotations.parsed("session-cookie-path", plain);
    let domain = annotations.parsed("session-cookie-domain", plain);
    let expires = annotations.number("session-cookie-expires", 1 << 31);
    let age = annotations.number("session-cookie-max-age", 1 << 31);
    let is_secure = annotations.is_on("session-cookie-secure");
    let site = annotations.parsed("session-cookie-samesite", |text| {
        ["strict", "lax", "none"].into_iter().find(|one| one.eq_ignore_ascii_case(text))
    });
    let mode = annotations.text("affinity-mode");
    if mode.is_some_and(|mode| mode != "balanced") {
        annotations.refuse("affinity-mode", "only \"balanced\" is supported");
    }
    match affinity {
        None => return None,
        Some("cookie") => {}
        Some(_) => {
            annotations.refuse("affinity", "only \"cookie\" is supported");
            return None;
        }
    }
    let mut line = format!("sticky cookie {}", quoted(name.unwrap_or("INGRESSCOOKIE")));
    if let Some(seconds) = age.or(expires) {
        line.push_str(&format!(" expires={seconds}s"));
    }
    if let Some(domain) = domain {
        line.push_str(&format!(" domain={domain}"));
    }
    line.push_str(&format!(" path={} httponly", path.as_deref().unwrap_or("/")));
    if is_secure {
        line.push_str(" secure");
    }
    if let Some(site) = site {
        line.push_str(&format!(" samesite={site}"));
    }
    Some(line)
}

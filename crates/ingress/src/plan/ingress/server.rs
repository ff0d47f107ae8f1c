//! What an Ingress says about the servers of its hosts: TLS, certificates of clients, and the
//! settings that are not those of a location.

use std::collections::BTreeMap;

use serde_json::Value;

use super::annotations::{Annotations, is_whole};
use super::target::ServiceReference;
use crate::ResourceKey;
use crate::plan::names;
use crate::plan::nginx_conf::{Entry, StreamTarget, quoted};
use crate::plan::object::{key, list, text};
use crate::plan::outcome::PlannedListen;
use crate::plan::planner::Planner;

const HTTP: PlannedListen = PlannedListen { address: None, port: 80 };
const HTTPS: PlannedListen = PlannedListen { address: None, port: 443 };

/// The files of certificate and key.
type CertificateFiles = (String, String);

#[derive(Clone, Debug, Default)]
pub(super) struct ServerSettings {
    /// By host; `None`: the Secret cannot be used.
    certificates: BTreeMap<String, Option<CertificateFiles>>,
    /// The certificate of hosts that `tls` does not name.
    of_others: Option<Option<CertificateFiles>>,
    redirects: bool,
    forces_redirect: bool,
    aliases: Vec<String>,
    redirects_www: bool,
    client_certificates: BTreeMap<&'static str, String>,
    pub(super) snippet: Option<String>,
    pub(super) is_passthrough: bool,
}

/// When requests in the clear are sent to HTTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpsRedirect {
    Never,
    /// If the connection has no TLS.
    Plain,
    /// If it has none, and nobody before us has terminated it.
    Forced,
}

impl ServerSettings {
    pub(super) fn read(
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        ingress: &Value,
        annotations: &mut Annotations<'_>,
    ) -> Self {
        let mut settings = Self {
            redirects: annotations.switch("ssl-redirect").unwrap_or(true),
            forces_redirect: annotations.is_on("force-ssl-redirect"),
            aliases: annotations.several("server-alias", names::is_host).unwrap_or_default(),
            redirects_www: annotations.is_on("from-to-www-redirect"),
            is_passthrough: annotations.is_on("ssl-passthrough"),
            ..Self::default()
        };
        for tls in list(ingress, "/spec/tls") {
            let secret = key(&own.namespace, text(tls, "/secretName").unwrap_or_default());
            let files = match planner.certificate(&secret) {
                Ok(files) => Some(files),
                Err(why) => {
                    annotations.warnings.push(format!("tls: {why}"));
                    None
                }
            };
            let hosts = list(tls, "/hosts");
            if hosts.is_empty() {
                settings.of_others = Some(files.clone());
            }
            for host in hosts.iter().filter_map(Value::as_str) {
                settings.certificates.insert(host.to_ascii_lowercase(), files.clone());
            }
        }
        settings.read_client_certificates(planner, own, annotations);
        settings.read_snippet(planner, annotations);
        settings
    }

    fn read_client_certificates(
        &mut self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
    ) {
        let secret = annotations.text("auth-tls-secret").map(|name| own_object(own, name));
        let verify = annotations.parsed("auth-tls-verify-client", |text| {
            ["on", "off", "optional", "optional_no_ca"].into_iter().find(|one| *one == text)
        });
        let depth = annotations.number("auth-tls-verify-depth", 20).unwrap_or(1);
        let Some(secret) = secret else { return };
        let file = secret.and_then(|secret| planner.authorities(&secret));
        let settings = &mut self.client_certificates;
        match file {
            Ok(file) => {
                let file = format!("{}/{file}", planner.settings.folder);
                settings.insert("ssl_client_certificate", quoted(&file));
                settings.insert("ssl_verify_client", verify.unwrap_or("on").to_owned());
                settings.insert("ssl_verify_depth", depth.to_string());
            }
            // Without the authorities nobody can be let in.
            Err(why) => {
                annotations.refuse("auth-tls-secret", &format!("{why}; nobody is let in"));
                settings.insert("return", "503".to_owned());
            }
        }
    }

    fn read_snippet(&mut self, planner: &Planner<'_>, annotations: &mut Annotations<'_>) {
        self.snippet = snippet(planner, annotations, "server-snippet");
    }

    fn has_tls(&self, host: &str) -> bool {
        self.certificate(host).is_some()
    }

    fn certificate(&self, host: &str) -> Option<&Option<CertificateFiles>> {
        let exact = self.certificates.get(host);
        let wildcard = host.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        exact.or_else(|| self.certificates.get(&wildcard?)).or(self.of_others.as_ref())
    }

    pub(super) fn redirects_to_https(&self, host: &str) -> HttpsRedirect {
        if self.forces_redirect {
            HttpsRedirect::Forced
        } else if self.redirects && self.has_tls(host) {
            HttpsRedirect::Plain
        } else {
            HttpsRedirect::Never
        }
    }

    /// Adds the entries to the servers of their hosts.
    pub(super) fn add(
        &self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        entries: &BTreeMap<String, Vec<Entry>>,
        includes: &[String],
        annotations: &mut Annotations<'_>,
    ) {
        let mut all: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for (host, entries) in entries {
            all.entry(host).or_default().extend(entries);
            for alias in self.aliases.iter().filter(|_| !host.is_empty()) {
                all.entry(alias).or_default().extend(entries);
            }
        }
        for (host, entries) in all {
            for listen in [HTTP, HTTPS] {
                let is_tls = listen == HTTPS;
                let certificate = self.certificate(host).cloned().flatten();
                if is_tls && certificate.is_none() {
                    continue;
                }
                if *planner.sites.http_ports.entry(listen).or_insert(is_tls) != is_tls {
                    let message =
                        format!("a Gateway has the port {} for another protocol", listen.port);
                    annotations.warnings.push(message);
                    continue;
                }
                self.site(planner, own, (listen, host), certificate.filter(|_| is_tls), &entries);
                let site = planner.sites.http.entry((listen, host.to_owned())).or_default();
                site.includes.extend(includes.iter().cloned());
            }
            if self.redirects_www && !host.is_empty() && !host.starts_with('*') {
                self.redirect_www(planner, host);
            }
        }
    }

    fn site(
        &self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        (listen, host): (PlannedListen, &str),
        certificate: Option<CertificateFiles>,
        entries: &[&Entry],
    ) {
        let is_tls = listen == HTTPS;
        let site = planner.sites.http.entry((listen, host.to_owned())).or_default();
        if site.certificates.is_empty() {
            site.certificates.extend(certificate);
        }
        // Whoever asks for the name itself comes before a redirect away from it.
        if site.settings.get("return").is_some_and(|value| value.starts_with("308")) {
            site.settings.remove("return");
        }
        site.entries.extend(entries.iter().map(|entry| (*entry).clone()));
        if !is_tls || self.client_certificates.is_empty() {
            return;
        }
        if site.settings.is_empty() {
            site.settings.clone_from(&self.client_certificates);
        } else if site.settings != self.client_certificates {
            let ResourceKey { namespace, name } = own;
            let message = format!(
                "Ingress {namespace}/{name}: another Ingress says otherwise about the certificates \
                 of clients of {host}"
            );
            planner.warn(message);
        }
    }

    /// The other one of `www.NAME` and `NAME` leads here.
    fn redirect_www(&self, planner: &mut Planner<'_>, host: &str) {
        let other = match host.strip_prefix("www.") {
            Some(rest) => rest.to_owned(),
            None => format!("www.{host}"),
        };
        for listen in [HTTP, HTTPS] {
            let is_tls = listen == HTTPS;
            let certificate = self.certificate(host).cloned().flatten();
            let site = (listen, other.clone());
            let is_free = names::is_host(&other) && !planner.sites.http.contains_key(&site);
            let is_served = planner.sites.http.contains_key(&(listen, host.to_owned()));
            if !is_free || !is_served {
                continue;
            }
            let site = planner.sites.http.entry(site).or_default();
            site.certificates.extend(certificate.filter(|_| is_tls));
            let target = format!("308 $scheme://{host}$redirect_port$request_uri");
            site.settings.insert("return", target);
        }
    }
}

/// Directives of an annotation, if the operator allows it and they are whole.
pub(super) fn snippet(
    planner: &Planner<'_>,
    annotations: &mut Annotations<'_>,
    name: &'static str,
) -> Option<String> {
    let text = annotations.text(name)?;
    if !planner.settings.allow_snippets {
        annotations.refuse(name, "snippets are not allowed");
        return None;
    }
    if !is_whole(text) || text.contains('\0') {
        annotations.refuse(name, "its braces or quotes do not match, or a \";\" is missing");
        return None;
    }
    Some(text.to_owned())
}

/// `NAMESPACE/NAME` or `NAME`, of the own namespace.
pub(super) fn own_object(own: &ResourceKey, text: &str) -> Result<ResourceKey, String> {
    let (namespace, name) = text.split_once('/').unwrap_or((&own.namespace, text));
    if namespace != own.namespace {
        return Err(format!("{text} is in another namespace"));
    }
    if !names::is_name(name) {
        return Err(format!("{name:?} is not a name"));
    }
    Ok(key(namespace, name))
}

/// TLS of the hosts goes to the backend as it is.
pub(super) fn pass_through(planner: &mut Planner<'_>, own: &ResourceKey, ingress: &Value) {
    let ResourceKey { namespace, name } = own;
    for rule in list(ingress, "/spec/rules") {
        let host = text(rule, "/host").unwrap_or_default().to_ascii_lowercase();
        let paths = list(rule, "/http/paths");
        let backend = paths.first().and_then(|path| path.pointer("/backend"));
        let Some(backend) = backend.filter(|_| names::is_host(&host)) else {
            planner.warn(format!("Ingress {namespace}/{name}: ssl-passthrough needs a host"));
            continue;
        };
        if planner.sites.http_ports.get(&HTTPS) == Some(&false) {
            planner.warn(format!("Ingress {namespace}/{name}: the port 443 is not for TLS"));
            continue;
        }
        let port = match ServiceReference::read(own, backend).port(planner) {
            Ok(port) => port,
            Err(why) => {
                planner.warn(format!("Ingress {namespace}/{name}: {why}"));
                continue;
            }
        };
        let group = planner.group(&port, true, "", &[]);
        let stream = planner.sites.stream.entry(HTTPS).or_default();
        stream.is_tls = true;
        stream.targets.entry(host).or_insert(StreamTarget {
            title: format!("Ingress {namespace}/{name}"),
            proxy_pass: Some(group),
            certificates: Vec::new(),
        });
    }
}

//! What planning reads and collects, and what Gateway API and Ingress have in common: Services,
//! Secrets and permissions to refer to objects of other namespaces.

use std::collections::BTreeSet;
use std::fmt;

use net::tls::{Credential, TrustedCertificates};
use serde_json::Value;

use super::endpoints::Endpoints;
use super::names;
use super::nginx_conf::{PlannedSites, ServiceGroupName};
use super::object::{self, key, list, text};
use crate::plan::outcome::{PlannedFiles, PlannedListen, Settings, StatusUpdate};
use crate::{Objects, ResourceKey, ResourceKind};

pub(crate) struct Planner<'o> {
    pub(crate) objects: &'o Objects,
    pub(crate) settings: &'o Settings,
    pub(crate) sites: PlannedSites,
    pub(crate) files: PlannedFiles,
    pub(crate) statuses: Vec<StatusUpdate>,
    /// Where the listeners of Gateways listen.
    pub(crate) listens: BTreeSet<(PlannedListen, ResourceKey)>,
    /// What was left out, for people.
    pub(crate) warnings: BTreeSet<String>,
    endpoints: Endpoints<'o>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServicePort {
    pub(crate) namespace: String,
    pub(crate) service: String,
    pub(crate) port: u16,
    pub(crate) app_protocol: String,
}

/// Why a Service cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServiceFault {
    Missing(String),
    /// A Service that stands for a name, which could be of anything.
    External(String),
}

impl fmt::Display for ServiceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(what) => write!(f, "{what} does not exist"),
            Self::External(what) => write!(f, "{what} has the type ExternalName"),
        }
    }
}

/// Who refers to an object of another namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Referrer<'r> {
    pub(crate) group: &'r str,
    pub(crate) kind: &'r str,
    pub(crate) namespace: &'r str,
}

impl<'o> Planner<'o> {
    pub(crate) fn new(objects: &'o Objects, settings: &'o Settings) -> Self {
        Self {
            objects,
            settings,
            sites: PlannedSites::default(),
            files: PlannedFiles::new(),
            statuses: Vec::new(),
            listens: BTreeSet::new(),
            warnings: BTreeSet::new(),
            endpoints: Endpoints::new(objects),
        }
    }

    /// Objects of a kind whose names are sound.
    pub(crate) fn all(&self, kind: ResourceKind) -> Vec<(&'o ResourceKey, &'o Value)> {
        self.objects.of(kind).filter(|(key, _)| names::is_sound(key)).collect()
    }

    /// The older one is first.
    pub(crate) fn by_age(&self, kind: ResourceKind) -> Vec<(&'o ResourceKey, &'o Value)> {
        let mut all = self.all(kind);
        all.sort_by_key(|(key, object)| (object::created(object), *key));
        all
    }

    pub(crate) fn warn(&mut self, what: impl Into<String>) {
        self.warnings.insert(what.into().replace(char::is_control, " "));
    }

    /// Why an object is left out, if it is.
    pub(crate) fn refusal(&self, kind: ResourceKind, key: &ResourceKey) -> Option<&'o str> {
        self.settings.faults.refused.get(&(kind, key.clone())).map(String::as_str)
    }

    /// Whether a ReferenceGrant of the other namespace allows it.
    pub(crate) fn may_refer(&self, from: Referrer<'_>, to_kind: &str, to: &ResourceKey) -> bool {
        if from.namespace == to.namespace {
            return true;
        }
        self.objects.of(ResourceKind::ReferenceGrant).any(|(own, grant)| {
            own.namespace == to.namespace
                && list(grant, "/spec/from").iter().any(|one| {
                    text(one, "/group") == Some(from.group)
                        && text(one, "/kind") == Some(from.kind)
                        && text(one, "/namespace") == Some(from.namespace)
                })
                && list(grant, "/spec/to").iter().any(|one| {
                    text(one, "/group").unwrap_or_default().is_empty()
                        && text(one, "/kind") == Some(to_kind)
                        && text(one, "/name").is_none_or(|name| name.is_empty() || name == to.name)
                })
        })
    }

    pub(crate) fn service_port(
        &self,
        namespace: &str,
        service: &str,
        matches: impl Fn(&Value) -> bool,
    ) -> Result<ServicePort, ServiceFault> {
        let shown = format!("Service {namespace}/{service}");
        let own = key(namespace, service);
        let is_sound = names::is_label(namespace) && names::is_label(service);
        let object = self.objects.get(ResourceKind::Service, &own).filter(|_| is_sound);
        let object = object.ok_or_else(|| ServiceFault::Missing(shown.clone()))?;
        if text(object, "/spec/type") == Some("ExternalName") {
            return Err(ServiceFault::External(shown));
        }
        let found = list(object, "/spec/ports").iter().find(|port| matches(port));
        let port = found.and_then(|found| Some((found, object::port(found, "/port")?)));
        let (found, port) =
            port.ok_or_else(|| ServiceFault::Missing(format!("the port of {shown}")))?;
        Ok(ServicePort {
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            port,
            app_protocol: text(found, "/appProtocol").unwrap_or_default().to_owned(),
        })
    }

    /// The group for a port of a Service, which is declared if it is not yet. `owner` has settings
    /// of its own for it.
    pub(crate) fn group(
        &mut self,
        port: &ServicePort,
        is_stream: bool,
        owner: &str,
        settings: &[String],
    ) -> String {
        let name = ServiceGroupName {
            is_stream,
            namespace: port.namespace.clone(),
            service: port.service.clone(),
            port: port.port,
            owner: owner.to_owned(),
        };
        let shown = name.name();
        if !self.sites.groups.contains(&name) {
            let servers = self.endpoints.of(&name);
            self.sites.groups.insert(name, settings, servers);
        }
        shown
    }

    /// The files of a Secret's certificate and key.
    pub(crate) fn certificate(&mut self, secret: &ResourceKey) -> Result<(String, String), String> {
        let shown = format!("Secret {}/{}", secret.namespace, secret.name);
        let (certificate, key) =
            (self.secret_data(secret, "tls.crt")?, self.secret_data(secret, "tls.key")?);
        let read = Credential::read(&certificate, &key, &[]);
        read.map_err(|error| format!("{shown} has no usable certificate and key: {error:?}"))?;
        let name = format!("certificates/{}.{}", secret.namespace, secret.name);
        let files = (format!("{name}.crt"), format!("{name}.key"));
        self.files.insert(files.0.clone(), certificate);
        self.files.insert(files.1.clone(), key);
        Ok(files)
    }

    /// The file of certificates of authorities from a Secret.
    pub(crate) fn authorities(&mut self, secret: &ResourceKey) -> Result<String, String> {
        let text = self.secret_data(secret, "ca.crt")?;
        self.authorities_file(&format!("{}.{}", secret.namespace, secret.name), text)
    }

    pub(crate) fn authorities_file(&mut self, name: &str, text: Vec<u8>) -> Result<String, String> {
        TrustedCertificates::read(&text)
            .map_err(|error| format!("the authorities of {name} cannot be read: {error:?}"))?;
        let file = format!("certificates/{name}.ca.crt");
        self.files.insert(file.clone(), text);
        Ok(file)
    }

    pub(crate) fn secret_data(&self, secret: &ResourceKey, part: &str) -> Result<Vec<u8>, String> {
        let shown = format!("Secret {}/{}", secret.namespace, secret.name);
        let object =
            self.objects.get(ResourceKind::Secret, secret).filter(|_| names::is_sound(secret));
        let object = object.ok_or_else(|| format!("{shown} does not exist"))?;
        let data = object.get("data").and_then(|data| data.get(part)).and_then(Value::as_str);
        let data = data.ok_or_else(|| format!("{shown} has no {part}"))?;
        let mut out = Vec::new();
        wire::base64::decode(data.trim().as_bytes(), &mut out)
            .ok_or_else(|| format!("{part} of {shown} is not base64"))?;
        Ok(out)
    }
}

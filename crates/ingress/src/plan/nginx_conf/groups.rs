//! The groups of servers: each is declared without servers, which come by the API and are kept in a
//! file.

use std::collections::{BTreeMap, BTreeSet};

use super::{ConfText, PlannedFiles, quoted};
use crate::ResourceKey;

/// A port of a Service, within `http` or `stream`, for all who use it with the same settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceGroupName {
    pub(crate) is_stream: bool,
    /// Without dots, which is what keeps the parts of the name apart.
    pub(crate) namespace: String,
    pub(crate) service: String,
    pub(crate) port: u16,
    /// Who has settings of its own for the group; empty for all others.
    pub(crate) owner: String,
}

impl ServiceGroupName {
    /// As `proxy_pass` names it.
    pub(crate) fn name(&self) -> String {
        let Self { namespace, service, port, owner, .. } = self;
        match owner.as_str() {
            "" => format!("{namespace}.{service}.{port}"),
            owner => format!("{namespace}.{service}.{port}.for.{owner}"),
        }
    }

    /// As the API names it.
    pub(crate) fn api_name(&self) -> String {
        if self.is_stream { format!("stream/{}", self.name()) } else { self.name() }
    }

    pub(crate) fn service_key(&self) -> ResourceKey {
        ResourceKey { namespace: self.namespace.clone(), name: self.service.clone() }
    }

    /// The list of its servers.
    pub(crate) fn servers(&self, endpoints: &[String]) -> Vec<String> {
        match endpoints {
            [] if !self.is_stream => vec![NO_SERVERS.to_owned()],
            endpoints => endpoints.to_vec(),
        }
    }

    fn file(&self) -> String {
        let subsystem = if self.is_stream { "stream" } else { "http" };
        format!("groups/{subsystem}/{}.conf", self.name())
    }
}

#[derive(Clone, Debug, Default)]
struct PlannedGroup {
    settings: Vec<String>,
    servers: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceGroups(BTreeMap<ServiceGroupName, PlannedGroup>);

/// Where requests for a group without servers go. Not a Unix socket: the file of one would be in
/// the way of the next start after a crash.
pub(crate) const NO_SERVERS: &str = "127.87.69.73:8503";

impl ServiceGroups {
    pub(crate) fn contains(&self, name: &ServiceGroupName) -> bool {
        self.0.contains_key(name)
    }

    /// Whether requests of HTTP may go to a port of the Service.
    pub(crate) fn has_service(&self, namespace: &str, service: &str) -> bool {
        self.0
            .keys()
            .any(|name| !name.is_stream && name.namespace == namespace && name.service == service)
    }

    pub(crate) fn insert(
        &mut self,
        name: ServiceGroupName,
        settings: &[String],
        servers: Vec<String>,
    ) {
        self.0.entry(name).or_insert_with(|| PlannedGroup { settings: settings.to_vec(), servers });
    }

    /// The list of servers of each group, by the name that the API has.
    pub(crate) fn servers(&self) -> BTreeMap<String, Vec<String>> {
        let groups = self.0.iter();
        groups.map(|(name, group)| (name.api_name(), name.servers(&group.servers))).collect()
    }

    pub(crate) fn names(&self) -> BTreeSet<ServiceGroupName> {
        self.0.keys().cloned().collect()
    }

    /// Writes a file per group, and returns the lines that include those of one subsystem.
    pub(crate) fn write(
        &self,
        is_stream: bool,
        folder: &str,
        files: &mut PlannedFiles,
    ) -> Vec<String> {
        let mut includes = Vec::new();
        for (name, group) in self.0.iter().filter(|(name, _)| name.is_stream == is_stream) {
            let mut text = ConfText::default();
            text.block(format!("upstream {}", name.name()), |text| {
                for line in &group.settings {
                    text.line(line);
                }
                let state = format!("{}.servers", name.file().trim_end_matches(".conf"));
                text.line(format!("state {}", quoted(&format!("{folder}/{state}"))));
            });
            includes.push(format!("include {}", quoted(&format!("{folder}/{}", name.file()))));
            files.insert(name.file(), text.into_bytes());
        }
        includes
    }
}

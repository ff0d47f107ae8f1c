//! The hosts of one row: where its client, its server and its backends are, and the links between
//! them.

use std::net::Ipv4Addr;

use super::{NetworkNamespace, StudyNetwork};
use crate::study::{HostNames, RowSetting};

/// A part of a study, which is on some host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostRole {
    Client,
    Server,
    Backend,
}

/// The hosts of a row. Each row has its own, so that what one leaves behind (sockets in TIME_WAIT,
/// for instance) is not met by another, and what is counted on an interface is its own.
pub(crate) struct RowHosts {
    /// None on loopback addresses; else each host once.
    namespaces: Vec<(String, NetworkNamespace)>,
    /// The interfaces between them, and where they begin.
    links: Vec<(HostRole, String)>,
    names: HostNames,
    /// The address that clients use: the server's, or the backend's if they go there directly.
    pub(crate) front: Ipv4Addr,
    /// The address that whoever is in front of the backends uses.
    pub(crate) back: Ipv4Addr,
}

impl RowHosts {
    pub(crate) fn new(
        network: &StudyNetwork,
        setting: &RowSetting,
        direct: bool,
    ) -> Result<Self, String> {
        let names = setting.hosts.clone();
        let (front, back) = (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
        let mut hosts = Self { namespaces: Vec::new(), links: Vec::new(), names, front, back };
        if let StudyNetwork::Namespaces = network {
            hosts.make(setting)?;
            hosts.join(setting, direct)?;
        }
        Ok(hosts)
    }

    fn make(&mut self, setting: &RowSetting) -> Result<(), String> {
        for role in [HostRole::Client, HostRole::Server, HostRole::Backend] {
            let name = self.names.of(role).to_owned();
            if self.namespaces.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let namespace = NetworkNamespace::new()?;
            for (setting, value) in &setting.kernel {
                namespace.set_kernel(setting, value)?;
            }
            self.namespaces.push((name, namespace));
        }
        Ok(())
    }

    fn join(&mut self, setting: &RowSetting, direct: bool) -> Result<(), String> {
        let target = if direct { HostRole::Backend } else { HostRole::Server };
        self.front = self.link(1, HostRole::Client, target, &setting.link)?;
        self.back = match direct {
            true => self.front,
            false => self.link(2, HostRole::Server, HostRole::Backend, "")?,
        };
        Ok(())
    }

    /// Joins two hosts, and returns the second's address; on the same host, its own.
    fn link(
        &mut self,
        number: u8,
        from: HostRole,
        to: HostRole,
        netem: &str,
    ) -> Result<Ipv4Addr, String> {
        let (Some(first), Some(second)) = (self.namespace(from), self.namespace(to)) else {
            return Ok(Ipv4Addr::LOCALHOST);
        };
        if first.pid() == second.pid() {
            return Ok(Ipv4Addr::LOCALHOST);
        }
        let name = format!("{INTERFACE}{number}");
        first.ip(&format!(
            "link add name {name} type veth peer name {name} netns {}\n",
            second.pid()
        ))?;
        let address = |host| Ipv4Addr::new(10, 91, number, host);
        for (namespace, host) in [(first, 1), (second, 2)] {
            let address = address(host);
            namespace.ip(&format!("addr add {address}/24 dev {name}\nlink set dev {name} up\n"))?;
            if !netem.is_empty() {
                namespace.netem(&name, netem)?;
            }
        }
        self.links.push((from, name));
        Ok(address(2))
    }

    /// Waits until its links pass packets, which takes up to a second, for many together as well.
    pub(crate) fn wait_for_links(&self) -> Result<(), String> {
        let wait = |(role, name): &(HostRole, String)| {
            self.namespace(*role).map_or(Ok(()), |namespace| namespace.wait_for(name))
        };
        self.links.iter().try_for_each(wait)
    }

    fn namespace(&self, role: HostRole) -> Option<&NetworkNamespace> {
        let name = self.names.of(role);
        let found = self.namespaces.iter().find(|(known, _)| known == name);
        found.map(|(_, namespace)| namespace)
    }

    /// The words before a program that run it on the host of a role; none on loopback addresses.
    pub(crate) fn enter(&self, role: HostRole) -> Vec<String> {
        self.namespace(role).map_or_else(Vec::new, NetworkNamespace::enter)
    }
}

/// How the names of interfaces between hosts begin; a link's number follows.
const INTERFACE: &str = "weir";

/// Whether what passes an interface belongs to a study. Each host has no other ones; on loopback
/// addresses it is all that passes between the parts.
pub(crate) fn counts(interface: &str) -> bool {
    interface == "lo" || interface.starts_with(INTERFACE)
}

impl HostNames {
    fn of(&self, role: HostRole) -> &str {
        match role {
            HostRole::Client => &self.client,
            HostRole::Server => &self.server,
            HostRole::Backend => &self.backend,
        }
    }
}

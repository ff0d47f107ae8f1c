//! The hosts of one row: those of its client, its server and its backends, and the links between
//! them.

use std::net::Ipv4Addr;

use super::{CONGESTION, NetworkNamespace, StudyNetwork};
use crate::study::{HostNames, RowSetting};

/// A part of a study, which runs on some host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostRole {
    Client,
    Server,
    Backend,
}

impl HostRole {
    pub(crate) const ALL: [Self; 3] = [Self::Client, Self::Server, Self::Backend];

    /// Its name in arguments and reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Backend => "backend",
        }
    }
}

/// The hosts of a row. Each row has its own, so that no row meets the leftovers of another (sockets
/// in TIME_WAIT, for instance), and the traffic on an interface is that row's alone.
pub(crate) struct RowHosts {
    /// Each host once; empty on loopback addresses.
    namespaces: Vec<(String, NetworkNamespace)>,
    /// The interfaces between hosts, each with the part at its first end.
    links: Vec<(HostRole, String)>,
    names: HostNames,
    /// The address that clients connect to: the server's, or the backend's if the load goes there
    /// directly.
    pub(crate) front: Ipv4Addr,
    /// The address of the backends.
    pub(crate) back: Ipv4Addr,
    /// Addresses of the client's host for idle connections.
    pub(crate) sources: Vec<Ipv4Addr>,
}

impl RowHosts {
    pub(crate) fn new(
        network: &StudyNetwork,
        setting: &RowSetting,
        direct: bool,
    ) -> Result<Self, String> {
        let names = setting.hosts.clone();
        let (front, back) = (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
        let (namespaces, links, sources) = (Vec::new(), Vec::new(), Vec::new());
        let mut hosts = Self { namespaces, links, names, front, back, sources };
        if let StudyNetwork::Namespaces(congestion) = network {
            hosts.make(setting, congestion)?;
            hosts.join(setting, direct)?;
        }
        hosts.add_sources(source_count(setting.load.idle))?;
        Ok(hosts)
    }

    fn make(&mut self, setting: &RowSetting, congestion: &str) -> Result<(), String> {
        for role in HostRole::ALL {
            let name = self.names.of(role).to_owned();
            if self.namespaces.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let namespace = NetworkNamespace::new()?;
            namespace.set_kernel(CONGESTION, congestion)?;
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
        if let Some(namespace) = self.namespace(target).filter(|_| !self.front.is_loopback()) {
            namespace.route(&format!("{INTERFACE}1"), self.front, &setting.route)?;
        }
        self.back = match direct {
            true => self.front,
            false => self.link(2, HostRole::Server, HostRole::Backend, "")?,
        };
        Ok(())
    }

    /// Adds addresses to the client's end of its link. Loopback addresses need not be added.
    fn add_sources(&mut self, count: u8) -> Result<(), String> {
        let [a, b, c, _] = self.front.octets();
        let own = if self.front.is_loopback() { 1 } else { LINK_HOSTS };
        self.sources = (1..=count).map(|number| Ipv4Addr::new(a, b, c, own + number)).collect();
        let client = self.namespace(HostRole::Client).filter(|_| !self.front.is_loopback());
        let Some((client, (_, link))) = client.zip(self.links.first()) else { return Ok(()) };
        let line = |address| format!("addr add {address}/24 dev {link}\n");
        client.ip(&self.sources.iter().map(line).collect::<String>())
    }

    /// Joins two hosts and returns the second's address; the loopback address if both are the same
    /// host.
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

    /// Waits until all links pass packets, which takes up to a second, however many links there
    /// are.
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

    /// The words before a command that run it on the host of a part; none on loopback addresses.
    pub(crate) fn enter(&self, role: HostRole) -> Vec<String> {
        self.namespace(role).map_or_else(Vec::new, NetworkNamespace::enter)
    }
}

/// The idle connections of an address, which has about 28,000 ports.
const SOURCE_CONNECTIONS: u32 = 15_000;

/// The number of source addresses for idle connections.
fn source_count(idle: u32) -> u8 {
    idle.div_ceil(SOURCE_CONNECTIONS).min(u32::from(SOURCES_MAX)) as u8
}

/// The hosts of a link, which have its first addresses.
const LINK_HOSTS: u8 = 2;
/// The most further addresses.
const SOURCES_MAX: u8 = 200;

/// The prefix of the names of interfaces between hosts; a link's number follows.
const INTERFACE: &str = "weir";

/// Whether the traffic of an interface belongs to a study. A host has no other interfaces; on
/// loopback addresses it is all traffic between the parts.
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

#[cfg(test)]
mod tests {
    #[test]
    fn many_idle_connections_need_several_addresses() {
        assert_eq!([0, 1, 15_000, 50_000, u32::MAX].map(super::source_count), [0, 1, 1, 4, 200]);
    }
}

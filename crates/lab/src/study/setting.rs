//! The resolved values of a row: configuration, load, hosts and kernel settings.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

use super::{FactorTarget, RowCores, Study, StudyLoad, StudyRow, route};

/// Values that are known only when a server is about to start.
#[derive(Clone, Copy)]
pub(crate) struct StudyPlaces<'p> {
    pub(crate) listen: SocketAddrV4,
    pub(crate) listen_tls: SocketAddrV4,
    pub(crate) dir: &'p str,
    pub(crate) backends: &'p [BackendAddress],
    /// The number of processors that the server may use.
    pub(crate) processors: usize,
}

/// Where a backend listens; without datagrams both are the same.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct BackendAddress {
    pub(crate) http: SocketAddrV4,
    pub(crate) udp: SocketAddrV4,
}

impl BackendAddress {
    /// A backend without datagrams.
    pub(crate) const fn of_http(http: SocketAddrV4) -> Self {
        Self { http, udp: http }
    }
}

/// The values of a row besides its configuration.
#[derive(Clone, Debug)]
pub(crate) struct RowSetting {
    pub(crate) load: StudyLoad,
    pub(crate) hosts: HostNames,
    /// Kernel settings, such as `net.core.somaxconn`, and their values.
    pub(crate) kernel: Vec<(String, String)>,
    /// The arguments of netem, or nothing.
    pub(crate) link: String,
    /// Options of the route to the client, or nothing.
    pub(crate) route: String,
    /// The processors of server and generator, if the row chooses them.
    pub(crate) cores: Option<RowCores>,
}

/// The host of each part; parts with the same name share a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostNames {
    pub(crate) client: String,
    pub(crate) server: String,
    pub(crate) backend: String,
}

/// Each part on its own host.
const APART: &str = "client server backend";

impl RowSetting {
    /// Resolves a row; an invalid level is an error.
    pub(crate) fn of(study: &Study, row: &StudyRow) -> Result<Self, String> {
        let hosts = HostNames::read(APART)?;
        let load = study.load.clone();
        let mut setting = Self {
            load,
            hosts,
            kernel: Vec::new(),
            link: String::new(),
            route: String::new(),
            cores: None,
        };
        for (name, level) in study.levels(row) {
            let Some(factor) = study.factors.get(name) else { continue };
            let text = factor.text(level);
            match factor.sets {
                FactorTarget::Template => {}
                FactorTarget::Kernel => setting.kernel.extend(kernel_settings(text)?),
                FactorTarget::Hosts if text.is_empty() => {}
                FactorTarget::Hosts => setting.hosts = HostNames::read(text)?,
                FactorTarget::Link => text.clone_into(&mut setting.link),
                FactorTarget::Route => setting.route = route::options(text)?,
                FactorTarget::Cores => setting.cores = RowCores::parse(text)?,
                target => setting.load.set(target, text)?,
            }
        }
        Ok(setting)
    }

    /// Whether it needs more than loopback addresses.
    pub(crate) fn needs_namespaces(&self) -> bool {
        let is_apart = HostNames::read(APART).is_ok_and(|apart| apart == self.hosts);
        let has_own_network = !self.kernel.is_empty() || !self.link.is_empty();
        !is_apart || has_own_network || !self.route.is_empty()
    }
}

impl HostNames {
    fn read(text: &str) -> Result<Self, String> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            [client, server, backend] => {
                let [client, server, backend] = [client, server, backend].map(str::to_owned);
                Ok(Self { client, server, backend })
            }
            _ => Err(format!(
                "\"{text}\" must name three hosts: the client's, the server's, the backends'"
            )),
        }
    }
}

/// Parses `net.core.somaxconn=65535; net.ipv4.tcp_fastopen=2`. Only settings of the network belong
/// to a network namespace.
fn kernel_settings(text: &str) -> Result<Vec<(String, String)>, String> {
    let settings = text.split(';').map(str::trim).filter(|setting| !setting.is_empty());
    let read = |setting: &str| {
        let (name, value) = setting.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_ours = name.starts_with("net.") && name.chars().all(is_plain);
        (is_ours && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    };
    let unread = |setting: &str| format!("\"{setting}\" is no kernel setting net.NAME=VALUE");
    settings.map(|setting| read(setting).ok_or_else(|| unread(setting))).collect()
}

impl Study {
    /// The configuration of a row.
    pub(crate) fn configuration(&self, row: &StudyRow, places: StudyPlaces<'_>) -> String {
        places.fill(&self.text(row, places.backends))
    }

    /// The configuration of a row without the places that only the server's machine knows.
    pub(crate) fn text(&self, row: &StudyRow, backends: &[BackendAddress]) -> String {
        let mut text = self.template.clone();
        for (name, level) in self.levels(row) {
            let level = self.factors.get(name).map_or(level, |factor| factor.text(level));
            text = text.replace(&format!("%%{name}%%"), level);
        }
        for (backend, number) in backends.iter().zip(1..) {
            text = text
                .replace(&format!("%%backend{number}%%"), &backend.http.to_string())
                .replace(&format!("%%backend{number}_udp%%"), &backend.udp.to_string());
        }
        text
    }
}

impl StudyPlaces<'_> {
    /// Fills the blanks of a configuration that its machine fills.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("%%listen%%", &self.listen.to_string())
            .replace("%%server_processors%%", &self.processors.to_string())
            .replace("%%listen_tls%%", &self.listen_tls.to_string())
            .replace("%%dir%%", self.dir)
    }
}

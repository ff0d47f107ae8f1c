//! Every group of a configuration, by name.

use std::collections::HashMap;
use std::sync::Arc;

use conf::{Directive, Error, Layered, Load, Result, suggest};

use super::method::GroupReading;
use super::{Conf, HostNotFound, Layer, ServerLine};
use crate::address::Endpoint;
use crate::group::{Group, GroupParts};
use crate::lines::{GroupLine, GroupLines, LineLookup, LineResolver};
use crate::memory::StateMemory;
use crate::name::GroupName;
use crate::pool::GroupPool;
use crate::resolver::WatchedName;

/// The default of `resolver_timeout`.
const RESOLVER_TIMEOUT_MS: u64 = 30_000;

/// The groups of a subsystem, kept in its registry. Names are case-insensitive.
#[derive(Default)]
pub struct Groups {
    blocks: Vec<GroupBlock>,
    by_name: HashMap<Box<[u8]>, Option<Arc<Group>>>,
    /// The setting for servers without a block.
    not_found: Option<HostNotFound>,
}

struct GroupBlock {
    layer: Layer,
    /// The line that opens it.
    from: Directive,
}

impl Groups {
    /// Begins a block, without the state of the previous one.
    pub fn begin(from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let name = from.arg(0);
        let group = name.text.clone();
        *load.own.of() = GroupReading { group, ..GroupReading::default() };
        let by_name = &mut load.own.of::<Self>().by_name;
        match by_name.insert(name.text.to_ascii_lowercase().into(), None) {
            None => Ok(()),
            Some(_) => Err(from.error_at(name, format!("duplicate upstream \"{name}\""))),
        }
    }

    pub fn end(layer: Layer, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        layer.check(from)?;
        let from = Directive { block: None, ..from.clone() };
        load.own.of::<Self>().blocks.push(GroupBlock { layer, from });
        Ok(())
    }

    /// Builds the groups. `main` has the settings outside the blocks; `around` is the resolver for
    /// blocks without one.
    pub fn build(main: &Layer, around: Option<&LineResolver>, load: &mut Load<'_>) -> Result<()> {
        let mut outermost = main.clone();
        outermost.inherit(&Layer::defaults(load), false);
        for mut block in std::mem::take(&mut load.own.of::<Self>().blocks) {
            block.layer.inherit(&outermost, false);
            let group = Arc::new(group(&block.layer.resolve(), &block.from, around, load)?);
            let name = block.from.arg(0).text.to_ascii_lowercase();
            load.own.of::<Self>().by_name.insert(name.into(), Some(group));
        }
        load.own.of::<Self>().not_found = outermost.upstream_host_not_found;
        Ok(())
    }

    /// The group of a server without a block, with its present addresses; `Err` if the name was not
    /// found and that is an error.
    pub fn implicit(
        name: &[u8],
        place: &Endpoint,
        blame: impl Fn(String) -> Error,
        load: &mut Load<'_>,
    ) -> Result<Arc<Group>> {
        let addresses = place.addresses();
        if !addresses.is_empty() {
            return Ok(Group::implicit(load.subsystem, name, addresses));
        }
        let shown = String::from_utf8_lossy(name);
        let error = blame(format!("host not found in upstream \"{shown}\""));
        let error = Error { help: load.own.of::<Self>().advice(name), ..error };
        let refuses = load.own.of::<Self>().not_found == Some(HostNotFound::Refuse);
        not_found(refuses, error, load)?;
        Ok(Group::sought(load.subsystem, name, place.clone()))
    }

    /// A hint at the probable meaning of an unknown host: one without a dot is most often a group.
    fn advice(&self, name: &[u8]) -> Option<String> {
        if name.contains(&b'.') || name.contains(&b':') {
            return None;
        }
        let groups = self.by_name.keys().filter_map(|name| std::str::from_utf8(name).ok());
        Some(match suggest::nearest(name, groups) {
            Some(meant) => format!("did you mean upstream \"{meant}\"?"),
            None => {
                format!("there is no \"upstream {} {{}}\" block", String::from_utf8_lossy(name))
            }
        })
    }

    /// All groups by their names in lower case, after [`build`](Self::build).
    pub fn all(&self) -> HashMap<Box<[u8]>, Arc<Group>> {
        let built = self.by_name.iter().filter_map(|(name, group)| {
            let group = group.as_ref()?;
            Some((name.clone(), group.clone()))
        });
        built.collect()
    }

    /// The group of that name, after [`build`](Self::build).
    pub fn find(&self, name: &[u8]) -> Option<&Arc<Group>> {
        match name.iter().any(u8::is_ascii_uppercase) {
            false => self.by_name.get(name)?.as_ref(),
            true => self.by_name.get(&name.to_ascii_lowercase()[..])?.as_ref(),
        }
    }
}

fn group(
    conf: &Conf,
    from: &Directive,
    around: Option<&LineResolver>,
    load: &mut Load<'_>,
) -> Result<Group> {
    let name = from.arg(0);
    let servers = conf.resolver.clone().map_or(around.cloned(), |names| {
        let timeout_ms = around.map_or(RESOLVER_TIMEOUT_MS, |around| around.timeout_ms);
        Some(LineResolver { names, timeout_ms })
    });
    let servers = servers.map(|servers| LineResolver {
        timeout_ms: conf.resolver_timeout.map_or(servers.timeout_ms, |timeout| timeout.0),
        ..servers
    });
    if servers.is_none() && conf.server.iter().any(|line| line.is_watched()) {
        let message = "no resolver defined to resolve names at run time in upstream";
        return Err(from.error_at(name, format!("{message} \"{name}\"")));
    }
    if conf.server.iter().all(|line| line.backup) {
        return Err(from.error_at(name, format!("no servers in upstream \"{name}\"")));
    }
    let group = GroupName::new(load.subsystem, &name.text);
    let pool = GroupPool::of(&group, conf.keepalive());
    let mut lines = GroupLines::new(group);
    lines.limit = conf.limit(pool.number().into(), from, load)?;
    for line in &conf.server {
        line.add_to(&mut lines, servers.as_ref(), conf.upstream_host_not_found, load)?;
    }
    Ok(Group::new(GroupParts {
        balance: conf.balance(),
        sticky: conf.sticky.clone(),
        pool,
        lines,
        check: conf.server_check()?,
    }))
}

fn not_found(refuses: bool, error: Error, load: &mut Load<'_>) -> Result<()> {
    if refuses || load.checking {
        return load.of_this_machine(Err(error)).map(|_: Option<()>| ());
    }
    load.warn(error);
    Ok(())
}

impl ServerLine {
    fn is_watched(&self) -> bool {
        self.resolve && matches!(self.place, Endpoint::Named { .. })
    }

    fn add_to(
        &self,
        lines: &mut GroupLines,
        servers: Option<&LineResolver>,
        not_found: HostNotFound,
        load: &mut Load<'_>,
    ) -> Result<()> {
        let memory = StateMemory::process();
        let mut line = GroupLine::new(self.terms.clone(), self.backup);
        let mut addresses = Vec::new();
        match (&self.place, servers) {
            (Endpoint::Named { host, port }, Some(servers)) if self.resolve => {
                let (name, service) = (host.clone(), self.service.clone());
                let watched = WatchedName { name, service, port: *port };
                line.known = memory.found(&lines.group, &watched);
                line.lookup = LineLookup::Watch(watched, servers.clone());
            }
            _ => addresses = self.place.addresses(),
        }
        if addresses.is_empty() && matches!(line.lookup, LineLookup::None) {
            let (from, text) = (&self.from, self.from.arg(0));
            let error = from.error_at(text, format!("host not found in upstream \"{text}\""));
            self::not_found(not_found == HostNotFound::Refuse, error, load)?;
            line.lookup = LineLookup::Until(self.place.clone());
        }
        lines.add(line, addresses, memory);
        Ok(())
    }
}

//! Every group of a configuration, by name.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use conf::{Directive, Error, Layered, Load, Result, Subsystem, suggest};

use super::method::GroupReading;
use super::state::KeptServers;
use super::{Conf, HostNotFound, Layer, ServerLine};
use crate::address::Endpoint;
use crate::api::GroupRules;
use crate::group::{Group, GroupParts};
use crate::lines::{GroupLine, GroupLines, LineLookup, LineResolver};
use crate::memory::StateMemory;
use crate::name::GroupName;
use crate::pool::GroupPool;
use crate::resolver::WatchedName;
use crate::roster::LineOwner;
use crate::waiting::GroupLimit;

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
    /// The servers of its state file, if it has one.
    kept: Option<KeptServers>,
    /// A hash of its text.
    text: u64,
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
        let kept = layer.kept(load)?;
        layer.check(from)?;
        let text = text_hash(from);
        let from = Directive { block: None, ..from.clone() };
        load.own.of::<Self>().blocks.push(GroupBlock { layer, from, kept, text });
        Ok(())
    }

    /// Builds the groups. `main` has the settings outside the blocks; `around` is the resolver for
    /// blocks without one.
    pub fn build(main: &Layer, around: Option<&LineResolver>, load: &mut Load<'_>) -> Result<()> {
        let mut outermost = main.clone();
        outermost.inherit(&Layer::defaults(load), false);
        for mut block in std::mem::take(&mut load.own.of::<Self>().blocks) {
            block.layer.inherit(&outermost, false);
            let group = Arc::new(group(&block.layer.resolve(), &block, around, load)?);
            if let Some(nodes) = group.limit().and_then(GroupLimit::nodes) {
                let follower = Arc::downgrade(&group);
                nodes.tell(follower);
            }
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
    block: &GroupBlock,
    around: Option<&LineResolver>,
    load: &mut Load<'_>,
) -> Result<Group> {
    let from = &block.from;
    let name = from.arg(0);
    let resolver = conf.resolver.clone().map_or(around.cloned(), |names| {
        let timeout_ms = around.map_or(RESOLVER_TIMEOUT_MS, |around| around.timeout_ms);
        Some(LineResolver { names, timeout_ms })
    });
    let resolver = resolver.map(|resolver| LineResolver {
        timeout_ms: conf.resolver_timeout.map_or(resolver.timeout_ms, |timeout| timeout.0),
        ..resolver
    });
    let (servers, owner) = match &block.kept {
        Some(kept) => (&kept.servers, LineOwner::StateFile),
        None => (&conf.server, LineOwner::Configuration),
    };
    if resolver.is_none() && servers.iter().any(|line| line.is_watched()) {
        let message = "no resolver defined to resolve names at run time in upstream";
        return Err(from.error_at(name, format!("{message} \"{name}\"")));
    }
    if block.kept.is_none() && servers.iter().all(|line| line.spec.backup) {
        return Err(from.error_at(name, format!("no servers in upstream \"{name}\"")));
    }
    let group = GroupName::new(load.subsystem, &name.text);
    let pool = GroupPool::of(&group, conf.keepalive());
    let mut lines = GroupLines::new(group);
    lines.limit = Some(conf.limit(pool.number().into(), from, load)?);
    for line in servers {
        line.add_to(&mut lines, resolver.as_ref(), conf.upstream_host_not_found, owner, load)?;
    }
    let balance = conf.balance();
    let rules = GroupRules {
        state: block.kept.as_ref().map(|kept| kept.path.as_path().into()),
        text: block.text,
        refused: balance.refused(),
        resolves: resolver.is_some(),
        needs_port: load.subsystem == Subsystem::Stream,
    };
    lines.resolver = resolver;
    Ok(Group::new(GroupParts {
        balance,
        sticky: conf.sticky.clone(),
        pool,
        lines,
        check: conf.server_check()?,
        rules: Some(rules),
    }))
}

/// Differs if the text of a block does, apart from spaces and comments.
fn text_hash(block: &Directive) -> u64 {
    fn add(line: &Directive, hash: &mut impl Hasher) {
        line.name.text.hash(hash);
        line.args.iter().for_each(|word| word.text.hash(hash));
        line.block.iter().flatten().for_each(|line| add(line, hash));
        line.block.is_some().hash(hash);
    }
    let mut hash = DefaultHasher::new();
    add(block, &mut hash);
    hash.finish()
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
        self.spec.resolve && matches!(self.place, Endpoint::Named { .. })
    }

    fn add_to(
        &self,
        lines: &mut GroupLines,
        servers: Option<&LineResolver>,
        not_found: HostNotFound,
        owner: LineOwner,
        load: &mut Load<'_>,
    ) -> Result<()> {
        let memory = StateMemory::process();
        let mut line = GroupLine { owner, ..GroupLine::new(self.spec.clone()) };
        let mut addresses = Vec::new();
        match (&self.place, servers) {
            (Endpoint::Named { host, port }, Some(servers)) if self.spec.resolve => {
                let service = self.spec.service.as_deref().map(Box::from);
                let name = host.clone();
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

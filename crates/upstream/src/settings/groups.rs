//! Every group of a configuration, by name.

use std::collections::HashMap;
use std::sync::Arc;

use conf::{Directive, Layered, Load, Result};

use super::method::Reading;
use super::{Conf, HostNotFound, Layer, ServerLine};
use crate::group::{Group, Parts, Twins};
use crate::memory::Memory;
use crate::pool;
use crate::server::Server;

/// The groups, kept in the registry. Names are compared without regard to case.
#[derive(Default)]
pub struct Groups {
    blocks: Vec<Block>,
    by_name: HashMap<Box<[u8]>, Option<Arc<Group>>>,
}

/// A block as it was read.
struct Block {
    layer: Layer,
    /// The line that opens it.
    from: Directive,
}

impl Groups {
    /// Begins a block: what its lines are read by must not know of another's.
    pub fn begin(from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let name = from.arg(0);
        let group = name.text.clone();
        *load.registry.of() = Reading { group, ..Reading::default() };
        let by_name = &mut load.registry.of::<Self>().by_name;
        match by_name.insert(name.text.to_ascii_lowercase().into(), None) {
            None => Ok(()),
            Some(_) => Err(from.error_at(name, format!("duplicate upstream \"{name}\""))),
        }
    }

    /// Ends a block.
    pub fn end(layer: Layer, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        layer.check(from)?;
        let from = Directive { block: None, ..from.clone() };
        load.registry.of::<Self>().blocks.push(Block { layer, from });
        Ok(())
    }

    /// Makes the groups. `main` is what holds around the blocks.
    pub fn build(main: &Layer, load: &mut Load<'_>) -> Result<()> {
        let mut outermost = main.clone();
        outermost.inherit(&Layer::defaults(load), false);
        for mut block in std::mem::take(&mut load.registry.of::<Self>().blocks) {
            block.layer.inherit(&outermost, false);
            let group = Arc::new(group(&block.layer.resolve(), &block.from, load)?);
            let name = block.from.arg(0).text.to_ascii_lowercase();
            load.registry.of::<Self>().by_name.insert(name.into(), Some(group));
        }
        Ok(())
    }

    /// Every group by its name in lower case, once they are built.
    pub fn all(&self) -> HashMap<Box<[u8]>, Arc<Group>> {
        let built = self.by_name.iter().filter_map(|(name, group)| {
            let group = group.as_ref()?;
            Some((name.clone(), group.clone()))
        });
        built.collect()
    }

    /// The group of that name, once they are built.
    pub fn find(&self, name: &[u8]) -> Option<&Arc<Group>> {
        match name.iter().any(u8::is_ascii_uppercase) {
            false => self.by_name.get(name)?.as_ref(),
            true => self.by_name.get(&name.to_ascii_lowercase()[..])?.as_ref(),
        }
    }
}

fn group(conf: &Conf, from: &Directive, load: &mut Load<'_>) -> Result<Group> {
    let name = &from.arg(0).text;
    let mut twins = Twins::new(name, Memory::process());
    let (mut primary, mut backup) = (Vec::new(), Vec::new());
    for line in &conf.server {
        let tier = if line.backup { &mut backup } else { &mut primary };
        for address in line.addresses(conf.upstream_host_not_found, load)? {
            let standing = twins.standing(&address);
            tier.push(Arc::new(Server::new(address, line.terms.clone(), standing)));
        }
    }
    if conf.server.iter().all(|line| line.backup) {
        let name = from.arg(0);
        return Err(from.error_at(name, format!("no servers in upstream \"{name}\"")));
    }
    Ok(Group::new(Parts {
        name: name.clone(),
        balance: conf.balance(),
        sticky: conf.sticky.clone(),
        keepalive: conf.keepalive(),
        number: pool::number(name),
        primary,
        backup,
    }))
}

impl ServerLine {
    fn addresses(&self, not_found: HostNotFound, load: &mut Load<'_>) -> Result<Vec<net::Address>> {
        let addresses = self.place.addresses();
        if addresses.is_empty() {
            let (from, text) = (&self.from, self.from.arg(0));
            let error = from.error_at(text, format!("host not found in upstream \"{text}\""));
            match not_found {
                HostNotFound::Refuse => return Err(error),
                HostNotFound::Down => load.warn(error),
            }
        }
        Ok(addresses)
    }
}

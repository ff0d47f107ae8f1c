//! `geo`: a variable whose value is looked up by address.
//!
//! Networks and ranges become stretches of the address space at load, so that a lookup is one
//! search by halves and a later line has had its effect already. Deliberately absent: nginx's
//! binary form of large bases, `FILE.bin`. It is neither read nor written, for the text says the
//! same.

mod block;
mod networks;
mod ranges;
mod stretches;

use std::net::IpAddr;

use conf::{Directive, Load, Result, VariableId};

use crate::Session;
use crate::forwarded::Proxies;
use crate::variables::{self, Variable};
use block::Block;
use stretches::Stretches;

/// What a `geo` block comes to.
struct Geo {
    /// The variable that holds the address; `None`: the client's address.
    source: Option<VariableId>,
    proxies: Proxies,
    proxy_recursive: bool,
    v4: Stretches<u32>,
    v6: Stretches<u128>,
    values: Vec<Box<[u8]>>,
}

/// Whether a subsystem's `geo` blocks name proxies: HTTP has a header for what they say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Forwarded {
    /// `proxy` and `proxy_recursive` are lines of a block.
    Believed,
    /// They are not.
    Never,
}

/// Reads a `geo` block and defines its variable.
pub fn declare<X: Session>(
    forwarded: Forwarded,
    from: &Directive,
    load: &mut Load<'_>,
) -> Result<()> {
    let first = from.arg(0);
    let (source, name) = match from.args.get(1) {
        Some(name) => {
            let source = variables::name(first, from)?;
            (Some(load.names.number(source, Some(first.span))), name)
        }
        None => (None, first),
    };
    let name = variables::claim::<X>(name, from, load)?;
    let mut block = Block::new(forwarded);
    for line in from.block.iter().flatten() {
        block.line(line, load)?;
    }
    let volatile = block.volatile;
    let geo = block.finish(source);
    let get = move |x: &mut X, out: &mut Vec<u8>| geo.get(x, out);
    let variable = if volatile { Variable::fresh(get) } else { Variable::cached(get) };
    variables::define(name, variable, load);
    Ok(())
}

impl Geo {
    fn get<X: Session>(&self, x: &mut X, out: &mut Vec<u8>) -> bool {
        let value = match self.address(x, out).map(|ip| ip.to_canonical()) {
            Some(IpAddr::V4(ip)) => self.v4.find(ip.to_bits()),
            Some(IpAddr::V6(ip)) => self.v6.find(ip.to_bits()),
            // What is no address counts as the one that nobody has.
            None => self.v4.find(u32::MAX),
        };
        out.extend_from_slice(&self.values[value as usize]);
        true
    }

    /// The address to look up; `out` is as before.
    fn address<X: Session>(&self, x: &mut X, out: &mut Vec<u8>) -> Option<IpAddr> {
        let ip = match self.source {
            None => x.client().peer?.ip(),
            Some(variable) => {
                let start = out.len();
                x.variable(variable, out);
                let ip = conf::address(&out[start..]);
                out.truncate(start);
                ip?
            }
        };
        if self.proxies.networks.is_empty() {
            return Some(ip);
        }
        Some(x.forwarded(ip, &self.proxies, self.proxy_recursive))
    }
}

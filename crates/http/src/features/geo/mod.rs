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
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use conf::{Directive, Load, Result, Values, VariableId};
use wire::Known;

use crate::exchange::Exchange;
use crate::forwarded::{Proxies, forwarded};
use crate::site::Place;
use crate::variables::{self, Variable};
use block::Block;
use stretches::Stretches;

conf::directives! {
    declare {
        /// Sets a variable by an address: the client's, or that of another variable. The most
        /// specific network wins. Inside: `default`, `include`, `ranges`, `proxy`, `delete`,
        /// `volatile`.
        ///
        /// Syntax: [$ADDRESS] $VARIABLE
        /// Differs: binary files (`FILE.bin`) are neither read nor written; Weir reads the text
        /// file beside them.
        ///
        /// ```nginx
        /// geo $internal {
        ///     default 0;
        ///     10.0.0.0/8 1;
        ///     192.168.0.0/16 1;
        /// }
        /// ```
        geo(1..=2) {} in MAIN => declare;
    }

    in MAIN;
}

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

/// Nothing hooks into a location: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut Place<'_, '_>) -> Result<()> {
    Ok(())
}

fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let first = from.arg(0);
    let (source, name) = match from.args.get(1) {
        Some(name) => {
            let source = variables::name(first, from)?;
            (Some(load.names.number(source, Some(first.span))), name)
        }
        None => (None, first),
    };
    let name = variables::claim(name, from, load)?;
    let mut block = Block::default();
    for line in from.block.iter().flatten() {
        block.line(line, load)?;
    }
    let volatile = block.volatile;
    let geo = block.finish(source);
    let get = move |x: &mut Exchange, out: &mut Vec<u8>| geo.get(x, out);
    let variable = if volatile { Variable::fresh(get) } else { Variable::cached(get) };
    variables::define(name, variable, load);
    Ok(())
}

impl Geo {
    fn get(&self, x: &mut Exchange, out: &mut Vec<u8>) -> bool {
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
    fn address(&self, x: &mut Exchange, out: &mut Vec<u8>) -> Option<IpAddr> {
        let ip = match self.source {
            None => x.client.peer?.ip(),
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
        let fields = x.request.head.fields_of(Known::XForwardedFor);
        let lines = fields.map(|field| x.request.text(field.value));
        let forwarded = forwarded(Some(ip), lines, &self.proxies, self.proxy_recursive);
        Some(forwarded.map_or(ip, |(ip, _)| ip))
    }
}

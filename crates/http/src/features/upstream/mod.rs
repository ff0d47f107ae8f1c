//! `upstream {}`: reads the blocks and builds groups of servers. Crate `upstream` implements the
//! groups and their balancing.
//!
//! While a location is compiled, a feature finds a group by name, wherever its block is:
//! `location.load.own.of::<::upstream::Groups>().find(name)`.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::upstream::Groups;
use conf::lacking::EnclosingBlock;
use conf::{Directive, Load, Result, UPSTREAM};

use super::{Layers, resolver};
use crate::site::LocationBuilder;

pub use ::upstream::settings::{Conf, Layer};

/// Installs nothing: the groups are the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

pub(crate) fn read(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    Groups::begin(from, load)?;
    let mut layers = Layers::default();
    let block =
        EnclosingBlock { context: "upstream", lines: from.block.as_deref().unwrap_or_default() };
    for line in block.lines {
        let read = match layers.set(UPSTREAM, line, load) {
            Ok(false) => load.without_feature(line, block).map(drop),
            read => read.map(drop),
        };
        load.tolerate(read)?;
    }
    Groups::end(layers.upstream, from, load)
}

/// Builds the groups, after the whole configuration was read. `main` are the settings of `http {}`.
pub(crate) fn build(main: &Layers, load: &mut Load<'_>) -> Result<()> {
    let around = resolver::of_main(&main.resolver, load);
    Groups::build(&main.upstream, around.as_ref(), load)
}

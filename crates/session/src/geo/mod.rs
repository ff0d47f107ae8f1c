//! `geo`: a variable whose value is looked up by address.
//!
//! Networks and ranges become stretches of the address space at load, so that a lookup is one
//! binary search and the order of lines is already resolved. Deliberately absent: nginx's binary
//! form of large bases, `FILE.bin`. It is neither read nor written, because the text has the same
//! content.

mod block;
mod lookup;
mod networks;
mod ranges;
mod stretches;

use conf::{Directive, Load, Result};

use crate::Session;
use crate::variables::{self, Variable};
pub use block::Forwarded;
use block::GeoBlock;

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
    let mut block = GeoBlock::new(forwarded);
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

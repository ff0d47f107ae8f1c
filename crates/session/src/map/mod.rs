//! `map`: a variable whose value is looked up by another.
//!
//! A lookup allocates nothing: the text to look up is written to the output first, and then
//! replaced by the value. Names are found in a table without regard to case; then regular
//! expressions are tried in order.

mod block;
mod lookup;

use conf::{Directive, Load, Result, Template};

use crate::Session;
use crate::variables::{self, Variable};
use block::MapBlock;

/// Reads a `map` block and defines its variable.
pub fn declare<X: Session>(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let source = Template::compile(from.arg(0), from, load)?;
    let name = variables::claim::<X>(from.arg(1), from, load)?;
    let MapBlock { mut map, volatile } = MapBlock::read(from, load)?;
    map.source = source;
    let get = move |x: &mut X, out: &mut Vec<u8>| map.get(x, out);
    let variable = if volatile { Variable::fresh(get) } else { Variable::cached(get) };
    variables::define(name, variable, load);
    Ok(())
}

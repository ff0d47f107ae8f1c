//! `map`: a variable whose value is looked up by another.
//!
//! Looking up allocates nothing: the text to be looked up stands for a moment where the value will.
//! Names are found in a table, whatever their case; then regular expressions are tried in order.

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

//! `map`: a variable whose value is looked up by another.
//!
//! Looking up allocates nothing: the text to be looked up stands for a moment where the value will.
//! Names are found in a table, whatever their case; then regular expressions are tried in order.

mod block;

use conf::{Directive, Load, Result, Template};

use crate::Session;
use crate::regex::Pattern;
use crate::variables::{self, Variable};
use crate::wildcards::Wildcards;
use block::Block;

/// A map.
struct Map<X> {
    source: Template,
    /// Whether the text is a host name, whose last dot does not count.
    hostnames: bool,
    names: Wildcards<u32>,
    patterns: Vec<(Pattern<X>, u32)>,
    /// Each once, however often it is mentioned.
    values: Vec<Template>,
    default: Option<u32>,
}

/// Reads a `map` block and defines its variable.
pub fn declare<X: Session>(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let source = Template::compile(from.arg(0), from, load)?;
    let name = variables::claim::<X>(from.arg(1), from, load)?;
    let Block { mut map, volatile } = Block::read(from, load)?;
    map.source = source;
    let get = move |x: &mut X, out: &mut Vec<u8>| map.get(x, out);
    let variable = if volatile { Variable::fresh(get) } else { Variable::cached(get) };
    variables::define(name, variable, load);
    Ok(())
}

impl<X: Session> Map<X> {
    fn get(&self, x: &mut X, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.source.render(x, out);
        let value = self.find(&out[start..], x).or(self.default);
        out.truncate(start);
        if let Some(value) = value {
            self.values[value as usize].render(x, out);
        }
        true
    }

    fn find(&self, text: &[u8], x: &mut X) -> Option<u32> {
        let text = match text {
            [name @ .., b'.'] if self.hostnames => name,
            text => text,
        };
        if let Some(value) = self.names.find(text) {
            return Some(*value);
        }
        if text.is_empty() {
            return None;
        }
        for (pattern, value) in &self.patterns {
            // A match that was given up has been logged; nginx asks no other pattern then.
            if pattern.matches(text, x).ok()? {
                return Some(*value);
            }
        }
        None
    }
}

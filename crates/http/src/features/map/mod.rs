//! `map`: a variable whose value is looked up by another.
//!
//! Looking up allocates nothing: the text to be looked up stands for a moment where the value will.
//! Names are found in a table, whatever their case; then regular expressions are tried in order.

mod block;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Directive, Load, Number, Result, Template};

use crate::exchange::Exchange;
use crate::regex::Pattern;
use crate::site::Place;
use crate::variables::{self, Variable};
use crate::wildcards::Wildcards;
use block::Block;

conf::directives! {
    declare {
        /// Sets a variable depending on a text: by exact strings, names with `*` (after
        /// `hostnames`), or regular expressions after `~` (`~*`: case-insensitive). It is evaluated
        /// when the variable is used. Inside: `default`, `hostnames`, `include`, `volatile`.
        ///
        /// Syntax: STRING $VARIABLE
        ///
        /// ```nginx
        /// map $http_upgrade $connection_upgrade {
        ///     default upgrade;
        ///     "" close;
        /// }
        /// ```
        map(2..=2) {} in MAIN => declare;
    }

    in MAIN;

    /// The largest size of nginx's tables of maps.
    ///
    /// Differs: no effect; the tables are sized by their contents.
    map_hash_max_size: Number = "2048",
    /// The size of a bucket in nginx's tables of maps.
    ///
    /// Differs: no effect; the tables are sized by their contents.
    map_hash_bucket_size: Number = "64",
}

/// A map.
struct Map {
    source: Template,
    /// Whether the text is a host name, whose last dot does not count.
    hostnames: bool,
    names: Wildcards<u32>,
    patterns: Vec<(Pattern, u32)>,
    /// Each once, however often it is mentioned.
    values: Vec<Template>,
    default: Option<u32>,
}

/// Nothing hooks into a location: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut Place<'_, '_>) -> Result<()> {
    Ok(())
}

fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let source = Template::compile(from.arg(0), from, load)?;
    let name = variables::claim(from.arg(1), from, load)?;
    let Block { mut map, volatile } = Block::read(from, load)?;
    map.source = source;
    let get = move |x: &mut Exchange, out: &mut Vec<u8>| map.get(x, out);
    let variable = if volatile { Variable::fresh(get) } else { Variable::cached(get) };
    variables::define(name, variable, load);
    Ok(())
}

impl Map {
    fn get(&self, x: &mut Exchange, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.source.render(x, out);
        let value = self.find(&out[start..], x).or(self.default);
        out.truncate(start);
        if let Some(value) = value {
            self.values[value as usize].render(x, out);
        }
        true
    }

    fn find(&self, text: &[u8], x: &mut Exchange) -> Option<u32> {
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

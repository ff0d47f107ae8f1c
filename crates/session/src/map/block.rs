//! The lines of a `map` block.

use std::collections::hash_map::Entry;

use conf::{Directive, Load, Result, Template, Word};

use super::lookup::{MapTable, MapValue};
use crate::Session;
use crate::regex::Pattern;
use crate::table::TextMap;
use crate::wildcards::WildcardError;

/// A block as it is read.
pub(super) struct MapBlock<X> {
    pub(super) map: MapTable<X>,
    pub(super) volatile: bool,
}

impl<X: Session> MapBlock<X> {
    pub(super) fn read(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut block = Self { map: MapTable::default(), volatile: false };
        let mut numbers = TextMap::default();
        for line in from.block.iter().flatten() {
            block.line(line, &mut numbers, load)?;
        }
        Ok(block)
    }

    fn line<'d>(
        &mut self,
        line: &'d Directive,
        numbers: &mut TextMap<'d, u32>,
        load: &mut Load<'_>,
    ) -> Result<()> {
        if line.block.is_some() {
            return Err(line.error("unexpected \"{\""));
        }
        match (&*line.name.text, &line.args[..]) {
            (b"hostnames", []) => self.map.hostnames = true,
            (b"volatile", []) => self.volatile = true,
            (_, [word]) => {
                let value = self.value(word, line, numbers, load)?;
                self.entry(value, line, load)?;
            }
            _ => return Err(line.error("invalid number of the map parameters")),
        }
        Ok(())
    }

    fn value<'d>(
        &mut self,
        word: &'d Word,
        line: &Directive,
        numbers: &mut TextMap<'d, u32>,
        load: &mut Load<'_>,
    ) -> Result<u32> {
        let next = self.map.values.len() as u32;
        let number = match numbers.entry(&word.text) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(unknown) => *unknown.insert(next),
        };
        let value = match word.text.contains(&b'$') {
            true => MapValue::Template(Template::compile(word, line, load)?),
            false => self.map.add_text(&word.text),
        };
        self.map.values.push(value);
        Ok(number)
    }

    fn entry(&mut self, value: u32, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        let map = &mut self.map;
        let word = &line.name;
        let added = match &*word.text {
            b"default" if map.default.is_some() => {
                return Err(line.error("duplicate default map parameter"));
            }
            b"default" => {
                map.default = Some(value);
                Ok(())
            }
            [b'~', pattern @ ..] => {
                let (pattern, caseless) = match pattern {
                    [b'*', pattern @ ..] => (pattern, true),
                    pattern => (pattern, false),
                };
                let pattern = Pattern::compile(pattern, caseless, word, line, load)?;
                map.patterns.push((pattern, value));
                Ok(())
            }
            name => {
                let name = name.strip_prefix(b"\\").unwrap_or(name);
                let added = match map.hostnames {
                    true => map.names.add(name, value),
                    false => map.names.add_exact(name, value),
                };
                added.map_err(|refused| (refused, name))
            }
        };
        added.map_err(|(refused, name)| {
            let name = String::from_utf8_lossy(name);
            line.error(match refused {
                WildcardError::Invalid => format!("invalid hostname or wildcard \"{name}\""),
                // nginx has converted it to lower case at this point.
                WildcardError::Conflicting => {
                    format!("conflicting parameter \"{}\"", name.to_ascii_lowercase())
                }
            })
        })
    }
}

//! The lines of a `map` block.

use std::collections::HashMap;

use conf::{Directive, Load, Result, Template, Word};

use super::lookup::MapTable;
use crate::Session;
use crate::regex::Pattern;
use crate::wildcards::WildcardError;

/// A block as far as it was read.
pub(super) struct MapBlock<X> {
    pub(super) map: MapTable<X>,
    pub(super) volatile: bool,
}

impl<X: Session> MapBlock<X> {
    pub(super) fn read(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut block = Self { map: MapTable::default(), volatile: false };
        let mut numbers = HashMap::new();
        for line in from.block.iter().flatten() {
            block.line(line, &mut numbers, load)?;
        }
        Ok(block)
    }

    fn line(
        &mut self,
        line: &Directive,
        numbers: &mut HashMap<Box<[u8]>, u32>,
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

    fn value(
        &mut self,
        word: &Word,
        line: &Directive,
        numbers: &mut HashMap<Box<[u8]>, u32>,
        load: &mut Load<'_>,
    ) -> Result<u32> {
        if let Some(number) = numbers.get(&word.text) {
            return Ok(*number);
        }
        let number = self.map.values.len() as u32;
        self.map.values.push(Template::compile(word, line, load)?);
        numbers.insert(word.text.clone(), number);
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
                // nginx has put it into lower case by then.
                WildcardError::Conflicting => {
                    format!("conflicting parameter \"{}\"", name.to_ascii_lowercase())
                }
            })
        })
    }
}

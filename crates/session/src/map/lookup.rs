//! The lookup of a text's value.

use std::ops::Range;

use conf::Template;

use crate::Session;
use crate::regex::Pattern;
use crate::wildcards::Wildcards;

/// A compiled `map` block.
pub(super) struct MapTable<X> {
    pub(super) source: Template,
    /// Whether the text is a host name, whose trailing dot is ignored.
    pub(super) hostnames: bool,
    pub(super) names: Wildcards<u32>,
    pub(super) patterns: Vec<(Pattern<X>, u32)>,
    /// The distinct values.
    pub(super) values: Vec<MapValue>,
    /// The values without variables, concatenated.
    pub(super) texts: Vec<u8>,
    pub(super) default: Option<u32>,
}

/// A value of the map.
pub(super) enum MapValue {
    /// The range of the value in `texts`.
    Text(Range<usize>),
    Template(Template),
}

impl<X> Default for MapTable<X> {
    fn default() -> Self {
        Self {
            source: Template::fixed(b""),
            hostnames: false,
            names: Wildcards::default(),
            patterns: Vec::new(),
            values: Vec::new(),
            texts: Vec::new(),
            default: None,
        }
    }
}

impl<X: Session> MapTable<X> {
    pub(super) fn add_text(&mut self, text: &[u8]) -> MapValue {
        let start = self.texts.len();
        self.texts.extend_from_slice(text);
        MapValue::Text(start..self.texts.len())
    }

    pub(super) fn get(&self, x: &mut X, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.source.render(x, out);
        let value = self.find(&out[start..], x).or(self.default);
        out.truncate(start);
        match value.map(|value| &self.values[value as usize]) {
            Some(MapValue::Text(range)) => out.extend_from_slice(&self.texts[range.clone()]),
            Some(MapValue::Template(template)) => template.render(x, out),
            None => {}
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
            // A failed match has been logged; like nginx, no further pattern is tried.
            if pattern.matches(text, x).ok()? {
                return Some(*value);
            }
        }
        None
    }
}

//! The lines of a `geo` block.

use std::collections::HashMap;

use conf::{Cidr, Directive, Load, Result, VariableId, Word};

use super::lookup::Geo;
use super::networks::Networks;
use super::ranges::GeoRanges;
use super::stretches::Stretches;
use crate::forwarded::Proxies;

/// Whether a subsystem's `geo` blocks may list proxies. HTTP does: it has a header for the
/// addresses that proxies forward.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Forwarded {
    /// `proxy` and `proxy_recursive` are allowed in a block.
    Believed,
    /// They are not allowed.
    Never,
}

/// A block as it is read.
pub(super) struct GeoBlock {
    pub(super) volatile: bool,
    proxies: Proxies,
    proxy_recursive: bool,
    forwarded: Forwarded,
    /// `None` for a block of networks.
    ranges: Option<GeoRanges>,
    v4: Networks,
    v6: Networks,
    /// Whether the block has lines for networks, after which `ranges` is refused.
    networks_said: bool,
    /// The value of `default` in a block of ranges.
    default: Option<u32>,
    values: Vec<Box<[u8]>>,
    /// The index of each value in `values`.
    numbers: HashMap<Box<[u8]>, u32>,
}

/// The index of the empty value, for addresses without a line.
const NOTHING: u32 = 0;

impl GeoBlock {
    pub(super) fn new(forwarded: Forwarded) -> Self {
        Self {
            volatile: false,
            proxies: Proxies::default(),
            proxy_recursive: false,
            forwarded,
            ranges: None,
            v4: Networks::new(32),
            v6: Networks::new(128),
            networks_said: false,
            default: None,
            values: vec![Box::default()],
            numbers: HashMap::from([(Box::default(), NOTHING)]),
        }
    }

    pub(super) fn line(&mut self, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        if line.block.is_some() {
            return Err(line.error("unexpected \"{\""));
        }
        let proxies = self.forwarded == Forwarded::Believed;
        match (&*line.name.text, &line.args[..]) {
            (b"ranges", []) if self.networks_said => {
                let must = "must be the first directive inside \"geo\" block";
                return Err(line.error(format!("the \"ranges\" directive {must}")));
            }
            (b"ranges", []) => self.ranges = Some(self.ranges.take().unwrap_or_default()),
            (b"proxy_recursive", []) if proxies => self.proxy_recursive = true,
            (b"volatile", []) => self.volatile = true,
            (b"proxy", [network]) if proxies => {
                self.proxies.networks.push(cidr(network, line, load)?)
            }
            (_, [argument]) if self.ranges.is_some() => self.range(argument, line, load)?,
            (_, [argument]) => self.network(argument, line, load)?,
            _ => return Err(line.error("invalid number of the geo parameters")),
        }
        Ok(())
    }

    fn network(&mut self, argument: &Word, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        self.networks_said = true;
        match &*line.name.text {
            b"default" => {
                let value = self.number(argument);
                for network in [Cidr::V4(0, 0), Cidr::V6(0, 0)] {
                    self.insert(network, value, line, load);
                }
            }
            b"delete" => {
                let (networks, key) = match cidr(argument, line, load)? {
                    Cidr::V4(first, bits) => (&mut self.v4, (first.into(), bits)),
                    Cidr::V6(first, bits) => (&mut self.v6, (first, bits)),
                };
                if !networks.remove(key) {
                    load.warn(line.error(format!("no network \"{argument}\" to delete")));
                }
            }
            _ => {
                let network = cidr(&line.name, line, load)?;
                let value = self.number(argument);
                self.insert(network, value, line, load);
            }
        }
        Ok(())
    }

    fn insert(&mut self, network: Cidr, value: u32, line: &Directive, load: &mut Load<'_>) {
        let old = match network {
            Cidr::V4(first, bits) => self.v4.insert((first.into(), bits), value),
            Cidr::V6(first, bits) => self.v6.insert((first, bits), value),
        };
        if let Some(old) = old {
            let values = self.shown(value, old);
            load.warn(line.error(format!("duplicate network \"{}\", {values}", line.name)));
        }
    }

    fn range(&mut self, argument: &Word, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        let word = match &*line.name.text {
            b"default" => {
                let value = self.number(argument);
                if let Some(old) = self.default.replace(value) {
                    let (new, old) = (self.text(value), self.text(old));
                    let message = "duplicate default geo range value";
                    load.warn(line.error(format!("{message}: \"{new}\", old value: \"{old}\"")));
                }
                return Ok(());
            }
            b"delete" => argument,
            _ => &line.name,
        };
        let invalid = || line.error_at(word, format!("invalid range \"{word}\""));
        let range = range(&word.text).ok_or_else(invalid)?;
        let value = self.number(argument);
        let ranges = self.ranges.get_or_insert_default();
        if &*line.name.text == b"delete" {
            if !ranges.remove(range) {
                load.warn(line.error(format!("no address range \"{word}\" to delete")));
            }
            return Ok(());
        }
        match ranges.insert(range, value) {
            Ok(None) => {}
            Ok(Some(old)) => {
                let values = self.shown(value, old);
                load.warn(line.error(format!("duplicate range \"{word}\", {values}")));
            }
            Err(other) => {
                return Err(line.error_at(word, format!("range \"{word}\" overlaps \"{other}\"")));
            }
        }
        Ok(())
    }

    /// The index of a value, which is added if it is new.
    fn number(&mut self, value: &Word) -> u32 {
        if let Some(number) = self.numbers.get(&value.text) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push(value.text.clone());
        self.numbers.insert(value.text.clone(), number);
        number
    }

    fn shown(&self, value: u32, old: u32) -> String {
        format!("value: \"{}\", old value: \"{}\"", self.text(value), self.text(old))
    }

    fn text(&self, value: u32) -> String {
        String::from_utf8_lossy(&self.values[value as usize]).into_owned()
    }

    pub(super) fn finish(self, source: Option<VariableId>) -> Geo {
        let (v4, v6) = match &self.ranges {
            None => (self.v4.stretches(NOTHING), self.v6.stretches(NOTHING)),
            Some(ranges) => {
                let default = self.default.unwrap_or(NOTHING);
                (ranges.stretches(default), Stretches::new(default, []))
            }
        };
        let Self { proxies, proxy_recursive, values, .. } = self;
        Geo { source, proxies, proxy_recursive, v4, v6, values }
    }
}

/// Parses a network. 255.255.255.255, which is INADDR_NONE in nginx, is accepted: it sets the value
/// for clients without an address.
fn cidr(word: &Word, line: &Directive, load: &mut Load<'_>) -> Result<Cidr> {
    if &*word.text == b"255.255.255.255" {
        return Ok(Cidr::V4(u32::MAX, 32));
    }
    match Cidr::parse(&word.text) {
        None => Err(line.error_at(word, format!("invalid network \"{word}\""))),
        Some((network, low_bits)) => {
            if low_bits {
                let message = format!("low address bits of {word} are meaningless");
                load.warn(line.error_at(word, message));
            }
            Ok(network)
        }
    }
}

fn range(text: &[u8]) -> Option<(u32, u32)> {
    let hyphen = memchr::memchr(b'-', text)?;
    let first = conf::address_v4(&text[..hyphen])?.to_bits();
    let last = conf::address_v4(&text[hyphen + 1..])?.to_bits();
    (first <= last).then_some((first, last))
}

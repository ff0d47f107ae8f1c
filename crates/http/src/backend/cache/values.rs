//! Values of directives that only caches have.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Value, add_words, units};
use wire::Method;
use zones::Zones;

use super::path::CacheStore;

/// `*_cache NAME`: the cache that a location uses.
#[derive(Clone, Debug)]
pub enum CacheName {
    Off,
    Named(Box<[u8]>),
    Computed(Template),
}

impl Value for CacheName {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        if &*from.arg(0).text == b"off" {
            return Ok(Self::Off);
        }
        let template = Template::compile(from.arg(0), from, load)?;
        match template.as_fixed() {
            Some(name) => {
                Zones::of(load).mention::<CacheStore>(name, None, from)?;
                Ok(Self::Named(name.into()))
            }
            None => Ok(Self::Computed(template)),
        }
    }
}

/// `*_cache_status`: the name of the cache in `Cache-Status`, as it is written there; `None`: the
/// field is not added.
#[derive(Clone, Debug)]
pub struct CacheStatusName(pub(super) Option<Arc<[u8]>>);

impl Value for CacheStatusName {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let text = &*word.text;
        if text == b"off" {
            return Ok(Self(None));
        }
        let is_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(byte);
        let begins = text.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'*');
        match begins && text.iter().all(is_token) {
            true => Ok(Self(Some(text.into()))),
            false => Err(from.error_at(word, format!("invalid name of a cache \"{word}\""))),
        }
    }
}

/// `*_cache_valid`: how long replies of a status are fresh, in the order of the lines.
#[derive(Clone, Debug)]
pub struct ValidTimes(Vec<(u16, u64)>);

/// Stands for every status.
const ANY: u16 = 0;
/// The statuses of a line without any.
const USUAL: [u16; 3] = [200, 301, 302];

impl Value for ValidTimes {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut times = Self(Vec::new());
        times.repeat(from, load)?;
        Ok(times)
    }
    fn repeat(&mut self, from: &Directive, _: &mut Load<'_>) -> Result<()> {
        let (time, statuses) = from.args.split_last().expect("there is an argument");
        let invalid = || from.error_at(time, format!("invalid time value \"{time}\""));
        let valid_s = units::seconds(&time.text).ok_or_else(invalid)?;
        if statuses.is_empty() {
            self.0.extend(USUAL.map(|status| (status, valid_s)));
        }
        for word in statuses {
            let status = match &*word.text {
                b"any" => Some(ANY),
                text => units::number(text).and_then(|number| u16::try_from(number).ok()),
            };
            match status {
                Some(status @ (ANY | 100..=599)) => self.0.push((status, valid_s)),
                _ => return Err(from.error_at(word, format!("invalid status \"{word}\""))),
            }
        }
        Ok(())
    }
}

impl ValidTimes {
    /// The seconds that a reply of a status is fresh; `None`: it is not stored.
    pub(super) fn of(&self, status: u16) -> Option<i64> {
        let found = self.0.iter().find(|(known, _)| [ANY, status].contains(known));
        let seconds = found.map(|(_, seconds)| i64::try_from(*seconds).unwrap_or(i64::MAX));
        seconds.filter(|seconds| *seconds > 0)
    }
}

/// `*_cache_methods`: the methods whose replies are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMethods(u16);

const METHODS: [(&str, u16); 3] = [("GET", 1), ("HEAD", 2), ("POST", 4)];

impl Value for CacheMethods {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut methods = Self(0);
        methods.repeat(from, load)?;
        Ok(methods)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        add_words(&mut self.0, from, &METHODS, load)
    }
}

impl CacheMethods {
    /// Those without a line.
    pub(super) const USUAL: Self = Self(METHODS[0].1 | METHODS[1].1);

    /// Whether replies to that method are stored: `GET` and `HEAD` always are.
    pub(super) fn has(self, method: Method) -> bool {
        match method {
            Method::Get | Method::Head => true,
            Method::Post => self.0 & METHODS[2].1 != 0,
            _ => false,
        }
    }
}

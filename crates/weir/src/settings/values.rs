//! The values of the core module's directives.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use conf::{Absent, Directive, Load, Result, Value, units};

/// A file, relative to the prefix.
#[derive(Clone)]
pub struct File(pub PathBuf);

impl Value for File {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Ok(Self(load.path(&from.arg(0).text)))
    }
}

/// The place of the pid file where none is named.
impl Absent for File {
    fn absent() -> Self {
        Self(crate::name::name().pid.into())
    }
}

/// `worker_processes`.
#[derive(Clone, Copy)]
pub struct Workers(pub usize);

impl Value for Workers {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let word = &from.arg(0).text;
        if &**word == b"auto" {
            return Ok(Self(net::process::processors()));
        }
        let number = units::number(word).and_then(|number| usize::try_from(number).ok());
        number.map(Self).ok_or_else(|| from.refuse("invalid value"))
    }
}

/// `worker_priority`.
#[derive(Clone, Copy)]
pub struct Priority(pub i32);

impl Value for Priority {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let word = &from.arg(0).text;
        let (sign, digits) = match word.split_first() {
            Some((b'-', digits)) => (-1, digits),
            Some((b'+', digits)) => (1, digits),
            _ => (1, &**word),
        };
        let number = units::number(digits).and_then(|number| i32::try_from(number).ok());
        number.map(|number| Self(sign * number)).ok_or_else(|| from.refuse("invalid number"))
    }
}

/// `user`: who the worker process becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: Box<[u8]>,
    /// The group's name.
    pub group: Box<[u8]>,
}

impl Value for User {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let group = from.args.last().expect("one or two");
        Ok(Self { name: from.arg(0).text.clone(), group: group.text.clone() })
    }
}

/// `env`: a variable kept, or set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Env {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its value; `None`: what the master process has.
    pub value: Option<Box<[u8]>>,
}

impl Value for Env {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let mut parts = from.arg(0).text.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default().into();
        Ok(Self { name, value: parts.next().map(Into::into) })
    }
}

/// `worker_cpu_affinity`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// Whether each worker gets one processor of the (last) mask.
    pub auto: bool,
    /// The processors of each mask.
    pub masks: Vec<Vec<usize>>,
}

/// The processors a mask can name.
const PROCESSORS_MAX: usize = 1024;

impl Value for Affinity {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let auto = &*from.arg(0).text == b"auto";
        if auto && from.args.len() > 2 {
            let message = format!("invalid number of arguments in \"{}\" directive", from.name);
            return Err(from.error(message));
        }
        let words = &from.args[usize::from(auto)..];
        let masks = words.iter().map(|word| mask(word, from)).collect::<Result<_>>()?;
        Ok(Self { auto, masks })
    }
}

fn mask(word: &conf::Word, from: &Directive) -> Result<Vec<usize>> {
    if word.text.len() > PROCESSORS_MAX {
        let message = format!("\"worker_cpu_affinity\" supports up to {PROCESSORS_MAX} CPUs only");
        return Err(from.error_at(word, message));
    }
    let mut processors = Vec::new();
    let bits = word.text.iter().rev().filter(|byte| **byte != b' ');
    for (number, bit) in bits.enumerate() {
        match bit {
            b'0' => {}
            b'1' => processors.push(number),
            other => {
                let other = char::from(*other);
                let message = format!("invalid character \"{other}\" in \"worker_cpu_affinity\"");
                return Err(from.error_at(word, message));
            }
        }
    }
    Ok(processors)
}

/// `load_module`: everything Weir has is built in.
pub fn load_module(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let word = from.arg(0);
    let message = format!("module \"{word}\" is not loaded: what this version has is built in");
    load.warnings.push(from.error_at(word, message).level(conf::Level::Notice));
    Ok(())
}

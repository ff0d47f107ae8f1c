//! The values of the core module's directives.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use conf::{Directive, Load, Result, Value, units};
use net::users::{self, ProcessIdentity};

/// A file, relative to the prefix.
#[derive(Clone)]
pub struct File(pub PathBuf);

impl Value for File {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Ok(Self(load.path(&from.arg(0).text)))
    }
}

/// `unix:` and a path.
#[derive(Clone)]
pub struct SocketFile(pub PathBuf);

impl Value for SocketFile {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        match word.text.strip_prefix(b"unix:").filter(|path| !path.is_empty()) {
            Some(path) => Ok(Self(load.path(path))),
            None => Err(from.error_at(word, format!("invalid socket \"{word}\", use unix:PATH"))),
        }
    }
}

#[derive(Clone, Copy)]
pub struct WorkerProcesses(pub usize);

impl Value for WorkerProcesses {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = &from.arg(0).text;
        if &**word == b"auto" {
            return Ok(Self(net::process::processors()));
        }
        let number = units::number(word).and_then(|number| usize::try_from(number).ok());
        let number = number.ok_or_else(|| from.refuse("invalid value"))?;
        if number > WORKERS_MAX {
            load.warn(from.error(format!("no more than {WORKERS_MAX} workers can be started")));
        }
        Ok(Self(number.min(WORKERS_MAX)))
    }
}

/// The most worker processes, as in nginx.
const WORKERS_MAX: usize = 1024;

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

/// `user`: the worker process's user; `None`: the program cannot change the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserLine(pub Option<ProcessIdentity>);

impl Value for UserLine {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        if !load.privileged && !load.checking {
            load.warn(from.error(
                "the \"user\" directive makes sense only if the master process runs \
                 with super-user privileges, ignored",
            ));
            return Ok(Self(None));
        }
        load.of_this_machine(identity(from)).map(Self)
    }
}

fn identity(from: &Directive) -> Result<ProcessIdentity> {
    let (name, group) = (from.arg(0), from.args.last().expect("one or two"));
    let failed =
        |call: &str, word: &conf::Word| from.error_at(word, format!("{call}(\"{word}\") failed"));
    let user = users::user(&name.text).ok().flatten();
    let (user, _) = user.ok_or_else(|| failed("getpwnam", name))?;
    let number = users::group(&group.text).ok().flatten();
    let group = number.ok_or_else(|| failed("getgrnam", group))?;
    Ok(ProcessIdentity { name: name.text.clone(), user, group })
}

/// A setting without effect; its first occurrence causes a message.
#[derive(Clone)]
pub struct NoEffect<T>(std::marker::PhantomData<T>);

impl<T: Value> Value for NoEffect<T> {
    const SYNTAX: &'static str = T::SYNTAX;
    const ARGS: RangeInclusive<usize> = T::ARGS;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        T::parse(from, load)?;
        load.warn(from.refuse("has no effect in this server, ignored"));
        Ok(Self(std::marker::PhantomData))
    }
}

/// A switch that only has the effect of `off`.
#[derive(Clone)]
pub struct OffOnly;

impl Value for OffOnly {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        if bool::parse(from, load)? {
            load.warn(from.refuse("has no effect in this server, ignored"));
        }
        Ok(Self)
    }
}

/// `env`: a variable kept, or set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Env {
    pub name: Box<[u8]>,
    /// Its value; `None` for that of the master process.
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

impl Affinity {
    /// The processors of a worker; `None`: any.
    pub fn of(&self, worker: usize) -> Option<Vec<usize>> {
        if !self.auto {
            return self.masks.get(worker).or(self.masks.last()).cloned();
        }
        let all: Vec<usize> = (0..net::process::processors()).collect();
        let among = self.masks.last().unwrap_or(&all);
        (!among.is_empty()).then(|| vec![among[worker % among.len()]])
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_name_processors_from_the_right_and_the_last_serves_the_rest() {
        let affinity = Affinity { auto: false, masks: vec![vec![0], vec![1, 3]] };
        assert_eq!(affinity.of(0), Some(vec![0]));
        assert_eq!(affinity.of(5), Some(vec![1, 3]));
        let auto = Affinity { auto: true, masks: vec![vec![2, 4]] };
        assert_eq!((auto.of(0), auto.of(3)), (Some(vec![2]), Some(vec![4])));
        let empty = Affinity { auto: true, masks: vec![vec![]] };
        assert_eq!(empty.of(0), None);
    }
}

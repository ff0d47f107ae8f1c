//! What is known while a configuration is being read: named things, and what to warn about.
//!
//! A subsystem keeps its own kinds of named things (zones, formats, upstreams) here by type, so
//! that this crate need not know them.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::known::{self, Standing};
use crate::{Directive, Error, Files, Level, Names, Result, Zones, suggest};

/// Everything a directive may use while it is being read.
pub struct Load<'a> {
    /// The only way to a file: the master process records what passes, the worker replays it.
    pub files: &'a mut dyn Files,
    /// Things named by declarations, by type.
    pub registry: Registry,
    /// Named state that outlives the configuration.
    pub zones: Zones,
    /// The variables that any template mentions.
    pub names: Names,
    /// Messages that do not stop the start, in nginx's words.
    pub warnings: Vec<Error>,
    /// The directory that `-p` names: logs, roots, temporary paths are relative to it.
    pub prefix: PathBuf,
    /// The main file's directory: includes, certificates, password and geo files.
    pub conf_prefix: PathBuf,
    /// Whether what this version does not have is a warning instead of an error.
    pub lenient: bool,
    /// Whether whoever opens the sockets has the rights of root: a server that says nothing of
    /// where it listens depends on it.
    pub privileged: bool,
}

impl<'a> Load<'a> {
    /// Nothing known yet.
    pub fn new(files: &'a mut dyn Files, prefix: &Path, conf_prefix: &Path) -> Self {
        Self {
            files,
            registry: Registry::default(),
            zones: Zones::default(),
            names: Names::default(),
            warnings: Vec::new(),
            prefix: prefix.to_owned(),
            conf_prefix: conf_prefix.to_owned(),
            lenient: false,
            privileged: false,
        }
    }

    /// Says something that does not stop the start.
    pub fn warn(&mut self, warning: Error) {
        self.warnings.push(warning.level(Level::Warn));
    }

    /// Deals with a directive that no feature has, in a block that nginx calls `context`: unknown,
    /// misplaced, or nginx's own but not here yet, which leniency passes over with its whole block.
    pub fn without_feature(&mut self, line: &Directive, context: &str) -> Result<()> {
        let known = known::find(&line.name.text);
        if known.is_empty() {
            return Err(unknown(line, context));
        }
        let Some(known) = known.iter().find(|known| known.allowed_in(context)) else {
            return Err(line.refuse("is not allowed here"));
        };
        let missing =
            format!("directive \"{}\" is not supported by this version of weir", line.name);
        if self.lenient {
            self.warn(line.error(missing));
            return Ok(());
        }
        match known.standing {
            Standing::Obsolete { .. } => self.warn(line.error(known.warning().unwrap_or_default())),
            _ => return Err(line.error(missing).help(LENIENT)),
        }
        Ok(())
    }

    /// The path a directive names, made absolute by the prefix.
    pub fn path(&self, text: &[u8]) -> PathBuf {
        self.prefix.join(bytes_path(text))
    }

    /// The path of a file that belongs to the configuration.
    pub fn conf_path(&self, text: &[u8]) -> PathBuf {
        self.conf_prefix.join(bytes_path(text))
    }
}

const LENIENT: &str = "with --lenient the server starts without it";

fn unknown(line: &Directive, context: &str) -> Error {
    let name = &line.name.text;
    let error = line.error(format!("unknown directive \"{}\"", line.name));
    if let Some(advice) = known::removed(name) {
        return error.help(advice);
    }
    let here = known::all().iter().filter(|known| known.allowed_in(context));
    match suggest::nearest(name, here.map(|known| known.name)) {
        Some(meant) => error.help(suggest::did_you_mean(meant)),
        None => error,
    }
}

/// A path from the bytes of a configuration.
pub fn bytes_path(text: &[u8]) -> &Path {
    Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(text))
}

/// Named things, one collection per type.
#[derive(Default)]
pub struct Registry {
    kinds: HashMap<TypeId, Box<dyn Any>>,
}

impl Registry {
    /// The collection of that type, empty at first use.
    pub fn of<T: Default + 'static>(&mut self) -> &mut T {
        self.kinds
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::<T>::default())
            .downcast_mut()
            .expect("a collection is stored under its own type")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    fn deal_with(line: &str, context: &str, lenient: bool) -> (Option<Error>, Vec<Error>) {
        let tree = crate::parser::parse_alone(line.as_bytes()).unwrap();
        let mut files = Memory::default();
        let mut load = Load::new(&mut files, Path::new("/"), Path::new("/"));
        load.lenient = lenient;
        (load.without_feature(&tree.root[0], context).err(), load.warnings)
    }

    fn message(line: &str, context: &str) -> (String, Option<String>) {
        let error = deal_with(line, context, false).0.unwrap();
        (error.message, error.help)
    }

    #[test]
    fn unknown_misplaced_and_missing_are_told_apart() {
        let (text, help) = message("lisen 80;", "server");
        assert_eq!(text, r#"unknown directive "lisen""#);
        assert_eq!(help.as_deref(), Some(r#"did you mean "listen"?"#));
        assert_eq!(message("listen 80;", "http").0, r#""listen" directive is not allowed here"#);
        let (text, help) = message("proxy_pass http://a;", "location");
        assert_eq!(text, r#"directive "proxy_pass" is not supported by this version of weir"#);
        assert!(help.is_some());
    }

    #[test]
    fn leniency_passes_over_what_is_missing_and_nothing_else() {
        let (error, warnings) = deal_with("proxy_pass http://a;", "location", true);
        assert!(error.is_none());
        assert_eq!(warnings[0].level, Level::Warn);
        assert!(deal_with("listen 80;", "http", true).0.is_some());
        assert!(deal_with("lisen 80;", "server", true).0.is_some());
    }

    #[test]
    fn what_nginx_ignores_is_ignored_in_its_words() {
        let (error, warnings) = deal_with("http2_push on;", "location", false);
        assert!(error.is_none());
        assert_eq!(warnings[0].message, r#"the "http2_push" directive is obsolete, ignored"#);
    }
}

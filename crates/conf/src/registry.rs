//! The state while a configuration is read: named declarations and warnings.
//!
//! A subsystem keeps its own kinds of named things (zones, formats, upstreams) here by type, so
//! that this crate does not depend on them.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::lacking::Lack;
use crate::subsystem::Namespace;
use crate::{Directive, Error, ErrorLevel, Files, Result, Sources, Subsystem, VariableNames};

/// Everything a directive may use while it is being read.
pub struct Load<'a> {
    /// The only access to files: the master process records the files that are read, and the worker
    /// replays them.
    pub files: &'a mut dyn Files,
    /// Things named by declarations, by type.
    pub registry: Registry,
    /// The subsystem whose lines are read or compiled now ([`Load::within`]). `own`, `names` and
    /// `forgotten` are those of this subsystem.
    pub subsystem: Subsystem,
    /// The things that the subsystem's declarations name, by type.
    pub own: Registry,
    /// The variables that the subsystem's templates mention.
    pub names: VariableNames,
    /// Messages that do not stop the start, in nginx's words.
    pub warnings: Vec<Error>,
    /// The directory that `-p` names: logs, roots, temporary paths are relative to it.
    pub prefix: PathBuf,
    /// The main file's directory: includes, certificates, password and geo files.
    pub conf_prefix: PathBuf,
    /// Whether unsupported features are warnings instead of errors.
    pub lenient: bool,
    /// Whether the program is called `nginx`: some messages must then be nginx's.
    pub as_nginx: bool,
    /// Whether the whole configuration is being checked: it is read to its end, and errors are
    /// collected in [`errors`](Self::errors).
    pub checking: bool,
    /// The errors, if the whole configuration is being checked.
    pub errors: Vec<Error>,
    /// Unsupported directives in the configuration.
    pub lacks: Vec<Lack>,
    /// Variables that only an ignored directive would have set, in lower case, with its line.
    pub forgotten: HashMap<Box<[u8]>, Directive>,
    /// The names of the other subsystems.
    pub(crate) namespaces: HashMap<Subsystem, Namespace>,
    /// The texts that the configuration was read from: places in messages at run time.
    pub sources: Sources,
    /// Whether the process that opens the sockets has root privileges; the default of `listen`
    /// depends on it.
    pub privileged: bool,
    /// Whether the defaults are being read: a directory in them is the installation's.
    pub reads_defaults: bool,
}

impl<'a> Load<'a> {
    /// The state before anything is read.
    pub fn new(files: &'a mut dyn Files, prefix: &Path, conf_prefix: &Path) -> Self {
        Self {
            files,
            registry: Registry::default(),
            subsystem: Subsystem::Main,
            own: Registry::default(),
            names: VariableNames::default(),
            warnings: Vec::new(),
            prefix: prefix.to_owned(),
            conf_prefix: conf_prefix.to_owned(),
            lenient: false,
            as_nginx: false,
            checking: false,
            errors: Vec::new(),
            lacks: Vec::new(),
            forgotten: HashMap::new(),
            namespaces: HashMap::new(),
            sources: Sources::default(),
            privileged: false,
            reads_defaults: false,
        }
    }

    /// Adds a warning, which does not stop the start.
    pub fn warn(&mut self, warning: Error) {
        self.warnings.push(warning.level(ErrorLevel::Warn));
    }

    /// Handles the result of a lookup on this machine: of a file, a user or a host name. While a
    /// whole configuration is checked, perhaps on another machine than the server, an error becomes
    /// a notice and the result is `None`.
    pub fn of_this_machine<T>(&mut self, found: Result<T>) -> Result<Option<T>> {
        match found {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.checking => {
                self.warnings.push(error.level(ErrorLevel::Notice));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The path named by a directive, made absolute with the prefix.
    pub fn path(&self, text: &[u8]) -> PathBuf {
        self.prefix.join(bytes_path(text))
    }

    /// The path of a file that belongs to the configuration.
    pub fn conf_path(&self, text: &[u8]) -> PathBuf {
        self.conf_prefix.join(bytes_path(text))
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

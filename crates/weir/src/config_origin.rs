//! The place of a configuration.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use conf::{Disk, Files, FilesBelow};

use crate::command_line::CommandLine;
use crate::defaults::Defaults;
use crate::name::name;
use crate::places::{self, StartingUser, UserFiles};
use crate::{embedded, lenient};

/// Where a configuration comes from, and what its relative names are relative to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigOrigin {
    /// The configuration file.
    pub conf: Box<[u8]>,
    /// Logs, roots and temporary files are relative to this.
    pub prefix: Box<[u8]>,
    /// Includes and other files of the configuration are relative to this.
    pub conf_prefix: Box<[u8]>,
    /// `-g`
    pub directives: Option<Box<[u8]>>,
    /// Default paths of files that it needs.
    pub defaults: Defaults,
    /// Set by `--lenient` or the environment; the configuration can set it too.
    pub lenient: bool,
    /// Whether the master has the rights of root.
    pub privileged: bool,
    /// The port of the built-in configuration; `None` for another configuration.
    pub port: Option<u16>,
    /// Whether it belongs to a trial. HUP ends the server of a trial, because its configuration is
    /// not edited, and worker processes end with the master.
    pub is_trial: bool,
}

impl ConfigOrigin {
    /// The origin that the command line selects.
    pub fn of(command: &CommandLine) -> Self {
        if embedded::is_meant(command) {
            let port = command.port.unwrap_or(embedded::PORT);
            return Self { lenient: lenient::is_requested(command), ..Self::embedded(port) };
        }
        let user = StartingUser::current();
        let UserFiles { conf, prefix, defaults } = UserFiles::of(command, name(), &user);
        let conf_prefix = conf.parent().unwrap_or(Path::new("")).to_owned();
        Self {
            conf: places::bytes(&conf),
            prefix: places::with_slash(prefix),
            conf_prefix: places::with_slash(conf_prefix),
            directives: command.directives.as_deref().map(|text| text.as_bytes().into()),
            defaults,
            lenient: lenient::is_requested(command),
            privileged: user.privileged,
            port: None,
            is_trial: false,
        }
    }

    /// The configuration to examine, and the files to read it from. A relative name is relative to
    /// the current directory, or to `root`, the root of a container or of another machine.
    pub fn examined(
        file: Option<&Path>,
        root: Option<&Path>,
    ) -> std::io::Result<(Self, Box<dyn Files>)> {
        let absolute = |file: &Path| match root {
            Some(_) => Ok(Path::new("/").join(file)),
            None => std::path::absolute(file),
        };
        let conf = file.map(absolute).transpose()?.map(PathBuf::into_os_string);
        let origin = Self::of(&CommandLine { conf, ..CommandLine::default() });
        let files = match root {
            Some(root) => Box::new(FilesBelow::new(root.as_os_str().as_bytes(), Disk)),
            None => origin.files(),
        };
        Ok((origin, files))
    }

    /// The built-in configuration.
    pub fn embedded(port: u16) -> Self {
        let home = embedded::home();
        Self {
            conf: embedded::NAME.as_bytes().into(),
            prefix: places::with_slash(home.clone()),
            conf_prefix: places::with_slash(home.clone()),
            defaults: Defaults {
                pid: home.join("weir.pid"),
                client_body_temp: home.join("client_body_temp"),
                proxy_temp: home.join("proxy_temp"),
                ..Defaults::default()
            },
            privileged: net::is_privileged(),
            port: Some(port),
            ..Self::default()
        }
    }

    /// The files to read it from.
    pub fn files(&self) -> Box<dyn Files> {
        match self.port {
            Some(port) => Box::new(embedded::files(port)),
            None => Box::new(Disk),
        }
    }
}

//! `state`: the file that keeps the servers of a group.
//!
//! It is read as a part of the configuration; the master process writes it. Everything is checked
//! as in `server` lines of the block, and an error names the line of the file.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use conf::{Directive, Error, Load, Result, Sources, Value, Word};

use super::ServerLine;
use crate::roster::ROSTER_LINES_MAX;

#[derive(Clone, Debug)]
pub struct StateFile {
    path: PathBuf,
    pub(super) from: Directive,
}

/// The servers of a state file.
pub(super) struct KeptServers {
    pub path: PathBuf,
    pub servers: Vec<ServerLine>,
}

impl Value for StateFile {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let name = from.arg(0);
        if name.text.is_empty() {
            return Err(from.error_at(name, "the name of the state file is empty"));
        }
        Ok(Self { path: load.path(&name.text), from: from.clone() })
    }
}

impl StateFile {
    /// Reads the file. One that does not exist has no servers.
    pub(super) fn read(&self, load: &mut Load<'_>) -> Result<KeptServers> {
        let mut servers = Vec::new();
        let path = self.path.as_os_str().as_bytes();
        match load.files.read(path) {
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                let error = self.from.error_at(self.from.arg(0), error.describe(path));
                load.of_this_machine::<()>(Err(error))?;
            }
            Ok(_) => servers = self.parse_lines(path, load)?,
        }
        Ok(KeptServers { path: self.path.clone(), servers })
    }

    fn parse_lines(&self, path: &[u8], load: &mut Load<'_>) -> Result<Vec<ServerLine>> {
        let parsed = conf::parse(path, b"/", None, load.files);
        let (sources, tree) = parsed.into_result();
        let of_file = |error: Error| self.in_file(&error, &sources);
        let lines = tree.map_err(of_file)?.root;
        if lines.len() > ROSTER_LINES_MAX {
            let message = format!("a state file may have {ROSTER_LINES_MAX} servers at most");
            return Err(self.from.error_at(self.from.arg(0), message));
        }
        let servers = lines.iter().map(|line| {
            if &*line.name.text != b"server" || line.block.is_some() || line.args.is_empty() {
                let name = &line.name;
                let message = format!("\"{name}\" is not a server of a state file");
                return Err(of_file(line.error_at(name, message)));
            }
            // What is found later about its name is an error of the block.
            let read = ServerLine::parse(line, load).map_err(of_file)?;
            Ok(ServerLine { from: self.standing_for(line), ..read })
        });
        servers.collect()
    }

    /// A line of the file with positions in the configuration.
    fn standing_for(&self, line: &Directive) -> Directive {
        let span = self.from.arg(0).span;
        let args = line.args.iter().map(|word| Word { span, ..word.clone() });
        Directive { args: args.collect(), ..self.from.clone() }
    }

    /// The error of a line of the file as an error of the directive.
    fn in_file(&self, error: &Error, sources: &Sources) -> Error {
        let place = error.span.map(|span| sources.place(span)).unwrap_or_default();
        self.from.error_at(self.from.arg(0), format!("{}{place}", error.message))
    }
}

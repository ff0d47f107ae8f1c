//! A copy of a configuration that can run beside the user's real server and touches nothing of
//! theirs.
//!
//! Each `listen` moves to a port of 127.0.0.1 or to a socket in the sandbox's folder, and addresses
//! of backends that are the configuration's own follow. All files that a server writes move into
//! the folder: logs, the pid file, temporary files, caches. Files that it reads stay where they
//! are: names relative to the configuration's folder become absolute, and those relative to the
//! prefix stay, because the prefix does.
//!
//! A copy is made of a tree that candidates have changed already: they know lines by the numbers
//! that these had when they were read.
//!
//! Not moved: what a server asks of others by name, such as backends and resolvers. The server
//! still logs errors to its built-in place until it has read the configuration; `-e` helps.

mod address;
mod files;
mod internal;
mod listens;
mod places;
mod target;
#[cfg(test)]
mod testing;
mod tree;
mod writing;

use std::collections::BTreeMap;
use std::net::SocketAddr;

pub use address::{ListenAddress, ListenPort};
pub use files::{NamedFile, named_files};
pub use listens::{MovedListen, addresses};
pub use places::{SandboxPlaces, TEMPORARY_FOLDERS};
pub use target::SandboxTarget;
pub use tree::{EditableDirective, EditableLine, EditableTree, LinePlace};

use files::SandboxFiles;
use listens::{SUBSYSTEMS, listens, move_listens, new_address};

/// A copy that is safe to run.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// The configuration.
    pub tree: EditableTree,
    /// Where it listens instead.
    pub moved: Vec<MovedListen>,
    /// How the copy differs from the real server, for the user.
    pub notes: Vec<String>,
}

impl Sandbox {
    /// Makes a copy that listens on those addresses. An error names the line that cannot be copied.
    pub fn new(
        tree: &EditableTree,
        places: SandboxPlaces<'_>,
        ports: &BTreeMap<ListenAddress, SocketAddr>,
    ) -> Result<Self, String> {
        let folder = tree.folder();
        let mut tree = listens::explicit(tree, places.default_port)?;
        let mut moved = listens(&tree, places.default_port)?;
        for (at, listen) in moved.iter_mut().enumerate() {
            listen.to = new_address(&listen.from, at, places.folder, ports)?;
        }
        let followed = internal::follow(&mut tree, &moved);
        // `proxy_redirect` expects of a server of the copy what `proxy_pass` says.
        let keeps_port =
            |listen: &MovedListen| places.keeps_ports && !followed.contains(&listen.from);
        move_listens(&mut tree, &moved, places.default_port, keeps_port);
        let mut files = SandboxFiles::new(places, folder);
        files.move_all(&mut tree);
        files.add_missing(&mut tree);
        Ok(Self { tree, moved, notes: files.into_notes() })
    }

    /// Where a URL of the real server leads in the copy.
    pub fn target(&self, url: &str) -> Result<SandboxTarget, String> {
        SandboxTarget::of(url, &self.moved)
    }
}

/// Refuses what a copy cannot have: other blocks may listen and write where the real server does,
/// and some directives write files that are not known here.
pub fn refuse_unknown(tree: &EditableTree) -> Result<(), String> {
    let is_known = |line: &EditableDirective| {
        line.block.is_none() || line.is("events") || SUBSYSTEMS.contains(&line.name())
    };
    let block = tree.root.iter().find(|line| !is_known(line));
    let lines = tree.lines();
    let writes = lines.iter().map(|line| line.directive).find(|line| {
        WRITES_ELSEWHERE.contains(&line.name())
            || line.arguments().any(|word| word.starts_with("state="))
    });
    match block.or(writes) {
        Some(line) => {
            Err(format!("{}: a copy of the server cannot have {}", line.place, line.name()))
        }
        None => Ok(()),
    }
}

/// Directives that write, or ask others, whatever a copy says.
pub const WRITES_ELSEWHERE: [&str; 6] =
    ["acme_issuer", "modsecurity", "otel_exporter", "pagespeed", "state", "zone_sync"];

#[cfg(test)]
mod tests;

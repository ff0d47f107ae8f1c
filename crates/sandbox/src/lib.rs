//! A copy of a configuration that can run beside the user's real server without touching its files,
//! ports or backends within the configuration.
//!
//! Each `listen` moves to a port of 127.0.0.1 or to a socket in the sandbox's folder, and backends
//! within the configuration follow. All files that a server writes move into the folder: logs, the
//! pid file, temporary files, caches. Files that it reads stay in place: names relative to the
//! configuration's folder become absolute, and names relative to the prefix are unchanged, because
//! the prefix is the same.
//!
//! A copy is made of a tree that may have been changed by candidates, which identify lines by their
//! numbers in the original.
//!
//! Not moved: external backends and resolvers. Until it has read the configuration, the server logs
//! errors to its built-in file; `-e` helps.

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
pub use tree::{DirectiveSpans, EditableDirective, EditableLine, EditableTree, LinePlace};

use files::SandboxFiles;
use listens::{SUBSYSTEMS, listens, move_listens, new_address};

/// A copy that is safe to run.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub tree: EditableTree,
    /// The new addresses of `listen` lines.
    pub moved: Vec<MovedListen>,
    /// How the copy differs from the real server, for the user.
    pub notes: Vec<String>,
}

impl Sandbox {
    /// Makes a copy that listens on the given addresses. An error names the line that cannot be
    /// copied.
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
        // `proxy_redirect` must find in a redirect of the copy's server the address in
        // `proxy_pass`.
        let keeps_port =
            |listen: &MovedListen| places.keeps_ports && !followed.contains(&listen.from);
        move_listens(&mut tree, &moved, places.default_port, keeps_port);
        let mut files = SandboxFiles::new(places, folder);
        files.move_all(&mut tree);
        files.add_missing(&mut tree);
        Ok(Self { tree, moved, notes: files.into_notes() })
    }

    /// The copy's URL for a URL of the real server.
    pub fn target(&self, url: &str) -> Result<SandboxTarget, String> {
        SandboxTarget::of(url, &self.moved)
    }
}

/// Refuses directives that a copy cannot contain: other blocks may listen and write like the real
/// server, and some directives write files that are not known here.
pub fn refuse_unknown(tree: &EditableTree) -> Result<(), String> {
    let is_known = |line: &EditableDirective| {
        line.block.is_none() || line.is("events") || SUBSYSTEMS.contains(&line.name())
    };
    let block = tree.root.iter().find(|line| !is_known(line));
    refuse(block)?;
    refuse_writers(tree, |_| true)
}

/// Refuses directives that write files, or contact other servers, if the server knows them:
/// otherwise it ignores them.
pub fn refuse_writers(tree: &EditableTree, is_known: impl Fn(&str) -> bool) -> Result<(), String> {
    let lines = tree.lines();
    refuse(lines.iter().map(|line| line.directive).find(|line| {
        let writes = WRITES_ELSEWHERE.contains(&line.name())
            || line.arguments().any(|word| word.starts_with("state=") || word.starts_with("sync="));
        writes && is_known(line.name())
    }))
}

fn refuse(line: Option<&EditableDirective>) -> Result<(), String> {
    match line {
        Some(line) => {
            Err(format!("{}: a copy of the server cannot have {}", line.place, line.name()))
        }
        None => Ok(()),
    }
}

/// Directives that write files, or contact other servers, even in a copy.
pub const WRITES_ELSEWHERE: [&str; 6] =
    ["acme_issuer", "modsecurity", "otel_exporter", "pagespeed", "state", "zone_sync"];

#[cfg(test)]
mod tests;

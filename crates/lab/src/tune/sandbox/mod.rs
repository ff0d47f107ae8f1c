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

mod files;
mod internal;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub use target::SandboxTarget;

use super::address::TunedAddress;
use super::tree::{TuneDirective, TuneTree};
use files::SandboxFiles;

/// The directives that name the folders of temporary files. Each has a default that is used, and
/// whose owner is changed, even by a server that never writes there.
pub const TEMPORARY_FOLDERS: [&str; 5] = [
    "client_body_temp_path",
    "proxy_temp_path",
    "fastcgi_temp_path",
    "uwsgi_temp_path",
    "scgi_temp_path",
];

/// Where a sandbox is, and what the server that it is for takes for granted.
#[derive(Clone, Copy, Debug)]
pub struct SandboxPlaces<'a> {
    /// The sandbox's folder. Nothing but this folder itself must be there.
    pub folder: &'a Path,
    /// The prefix that the server has; `None`: its built-in one, which is not known here.
    pub prefix: Option<&'a Path>,
    /// The port of a server of `http {}` without `listen`: 80, or 8000 for ordinary users.
    pub default_port: u16,
    /// Whether the server logs requests where the configuration does not say: nginx does, and
    /// Weir where root starts it.
    pub logs_by_default: bool,
    /// Which of [`TEMPORARY_FOLDERS`] the server knows.
    pub temporary_folders: &'a [&'a str],
}

/// A copy that is safe to run.
#[derive(Clone, Debug)]
pub struct TuneSandbox {
    /// The configuration.
    pub tree: TuneTree,
    /// Where it listens instead.
    pub moved: Vec<MovedListen>,
    /// What works otherwise than in the real server.
    pub notes: Vec<String>,
}

/// An address of the configuration, and where the copy listens instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedListen {
    /// The configuration's.
    pub from: TunedAddress,
    /// The copy's, as it stands in its `listen` lines: `127.0.0.1:PORT` or `unix:PATH`.
    pub to: String,
    /// Whether it is one of `http {}`.
    pub is_http: bool,
    /// Whether connections are encrypted.
    pub is_tls: bool,
    /// Whether connections begin with a header of the PROXY protocol.
    pub has_proxy_protocol: bool,
    /// The names of the servers that listen there.
    pub names: BTreeSet<String>,
}

/// The addresses that need a new port, each once.
pub fn addresses(tree: &TuneTree, default_port: u16) -> Result<Vec<TunedAddress>, String> {
    let mut tree = tree.clone();
    listen_explicitly(&mut tree, default_port);
    let moved = listens(&tree, default_port)?;
    let needs_port = |address: &TunedAddress| !matches!(address, TunedAddress::Unix(_));
    Ok(moved.into_iter().map(|listen| listen.from).filter(needs_port).collect())
}

impl TuneSandbox {
    /// Makes a copy that listens on those ports. An error names the line that cannot be copied.
    pub fn new(
        tree: &TuneTree,
        places: SandboxPlaces<'_>,
        ports: &BTreeMap<TunedAddress, u16>,
    ) -> Result<Self, String> {
        refuse_unknown(tree)?;
        let folder = tree.folder();
        let mut tree = tree.clone();
        listen_explicitly(&mut tree, places.default_port);
        let mut moved = listens(&tree, places.default_port)?;
        for (at, listen) in moved.iter_mut().enumerate() {
            listen.to = new_address(&listen.from, at, places.folder, ports)?;
        }
        move_listens(&mut tree, &moved, places.default_port);
        internal::follow(&mut tree, &moved);
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

/// Servers without `listen` have a default; the copy needs a line that can be changed.
fn listen_explicitly(tree: &mut TuneTree, default_port: u16) {
    tree.change(&mut |around, line| {
        if around == ["http"] && line.is("server") && line.own("listen").is_none() {
            let word = format!("*:{default_port}");
            let listen = TuneDirective::new(line.place.clone(), &["listen", &word]);
            line.block.get_or_insert_default().insert(0, listen);
        }
    });
}

/// The servers of these blocks listen.
/// What a copy cannot have: other blocks may listen and write where the real server does, and some
/// directives write files that are not known here.
fn refuse_unknown(tree: &TuneTree) -> Result<(), String> {
    let is_known = |line: &TuneDirective| {
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
const WRITES_ELSEWHERE: [&str; 6] =
    ["acme_issuer", "modsecurity", "otel_exporter", "pagespeed", "state", "zone_sync"];

const SUBSYSTEMS: [&str; 3] = ["http", "stream", "mail"];

/// The addresses of all servers; those of one address together, without the new address.
fn listens(tree: &TuneTree, default_port: u16) -> Result<Vec<MovedListen>, String> {
    let mut found: Vec<MovedListen> = Vec::new();
    for line in tree.lines() {
        let [subsystem, server] = line.around[..] else { continue };
        let listens = server.is("server") && line.directive.is("listen");
        if !listens || !SUBSYSTEMS.contains(&subsystem.name()) {
            continue;
        }
        let new = listen_of(line.directive, server, subsystem.is("http"), default_port)?;
        match found.iter_mut().find(|listen| listen.from == new.from) {
            Some(known) => known.add(new),
            None => found.push(new),
        }
    }
    Ok(found)
}

fn listen_of(
    listen: &TuneDirective,
    server: &TuneDirective,
    is_http: bool,
    default_port: u16,
) -> Result<MovedListen, String> {
    let has = |parameter: &str| listen.arguments().any(|word| word == parameter);
    let names = server.inner().iter().filter(|line| line.is("server_name"));
    Ok(MovedListen {
        from: TunedAddress::of(listen, default_port)?,
        to: String::new(),
        is_http,
        is_tls: has("ssl") || server.own("ssl").is_some_and(|ssl| ssl.argument() == "on"),
        has_proxy_protocol: has("proxy_protocol"),
        names: names.flat_map(TuneDirective::arguments).map(str::to_lowercase).collect(),
    })
}

impl MovedListen {
    /// Takes in another line of the same address.
    fn add(&mut self, other: Self) {
        self.is_tls |= other.is_tls;
        self.has_proxy_protocol |= other.has_proxy_protocol;
        self.names.extend(other.names);
    }
}

fn new_address(
    from: &TunedAddress,
    at: usize,
    folder: &Path,
    ports: &BTreeMap<TunedAddress, u16>,
) -> Result<String, String> {
    match from {
        // Short, because the kernel takes at most 107 bytes.
        TunedAddress::Unix(_) => Ok(format!("unix:{}/{at}.sock", folder.display())),
        address => match ports.get(address) {
            Some(port) => Ok(format!("127.0.0.1:{port}")),
            None => Err(format!("there is no port for {address}")),
        },
    }
}

fn move_listens(tree: &mut TuneTree, moved: &[MovedListen], default_port: u16) {
    tree.change(&mut |around, line| {
        let [subsystem, server] = around else { return };
        let is_listen = server == "server" && line.is("listen");
        if !is_listen || !SUBSYSTEMS.contains(&subsystem.as_str()) {
            return;
        }
        let Ok(from) = TunedAddress::of(line, default_port) else { return };
        if let Some(listen) = moved.iter().find(|listen| listen.from == from) {
            line.words[1] = listen.to.clone().into_bytes();
            // The new address is of IPv4.
            line.words.retain(|word| !word.starts_with(b"ipv6only="));
        }
    });
}

/// A path within a folder, as bytes.
fn within(folder: &Path, name: &[u8]) -> Vec<u8> {
    [folder.as_os_str().as_bytes(), b"/", name].concat()
}

#[cfg(test)]
mod tests;

//! The `listen` lines of a configuration, and their new addresses in a copy.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;

use crate::address::{self, ListenAddress};
use crate::tree::{EditableDirective, EditableTree};

/// The blocks whose servers listen.
pub(crate) const SUBSYSTEMS: [&str; 3] = ["http", "stream", "mail"];

/// An address of the configuration, and its new address in the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedListen {
    /// The address in the configuration.
    pub from: ListenAddress,
    /// The address in the copy's `listen` lines: `127.0.0.1:PORT`, `[::1]:PORT` or `unix:PATH`.
    pub to: String,
    /// Whether it belongs to `http {}`.
    pub is_http: bool,
    /// Whether connections are encrypted.
    pub is_tls: bool,
    /// Whether connections begin with a PROXY protocol header.
    pub has_proxy_protocol: bool,
    /// The names of the servers on this address.
    pub names: BTreeSet<String>,
}

/// The addresses that need a new port, each once.
pub fn addresses(tree: &EditableTree, default_port: u16) -> Result<Vec<ListenAddress>, String> {
    let moved = listens(&explicit(tree, default_port)?, default_port)?;
    let needs_port = |address: &ListenAddress| !matches!(address, ListenAddress::Unix(_));
    Ok(moved.into_iter().map(|listen| listen.from).filter(needs_port).collect())
}

/// A tree with a separate `listen` line for each address of a server.
pub(crate) fn explicit(tree: &EditableTree, default_port: u16) -> Result<EditableTree, String> {
    let mut tree = tree.clone();
    listen_explicitly(&mut tree, default_port);
    spread_ranges(&mut tree)?;
    Ok(tree)
}

/// Adds the default `listen` to servers without one.
fn listen_explicitly(tree: &mut EditableTree, default_port: u16) {
    tree.change(&mut |around, line| {
        if around == ["http"] && line.is("server") && line.own("listen").is_none() {
            let word = format!("*:{default_port}");
            let listen = EditableDirective::new(line.place.clone(), &["listen", &word]);
            line.block.get_or_insert_default().insert(0, listen);
        }
    });
}

/// Replaces a range of ports by a line for each port.
fn spread_ranges(tree: &mut EditableTree) -> Result<(), String> {
    let mut refused = None;
    tree.change(&mut |around, server| {
        let [subsystem] = around else { return };
        if !server.is("server") || !SUBSYSTEMS.contains(&subsystem.as_str()) {
            return;
        }
        let Some(block) = &mut server.block else { return };
        for at in (0..block.len()).rev() {
            match lines_of_range(&block[at]) {
                Ok(None) => {}
                Ok(Some(lines)) => drop(block.splice(at..=at, lines)),
                Err(why) => refused = Some(why),
            }
        }
    });
    refused.map_or(Ok(()), Err)
}

/// The lines that replace one with a range of ports; `None`: it has no range.
fn lines_of_range(line: &EditableDirective) -> Result<Option<Vec<EditableDirective>>, String> {
    let word = line.argument();
    let Some((host, ports)) = address::range(word).filter(|_| line.is("listen")) else {
        return Ok(None);
    };
    if ports.len() > RANGE_PORTS_MAX {
        let why = format!("a copy can have ranges of at most {RANGE_PORTS_MAX} ports");
        return Err(format!("{}: \"{}\": {why}", line.place, line.shown()));
    }
    let line_of = |port| {
        let mut line = line.clone();
        line.words[1] = format!("{host}{port}").into_bytes();
        line
    };
    Ok(Some(ports.map(line_of).collect()))
}

/// Maximum number of ports in a range.
const RANGE_PORTS_MAX: usize = 1000;

/// The addresses of all servers, each once, without the new address.
pub(crate) fn listens(tree: &EditableTree, default_port: u16) -> Result<Vec<MovedListen>, String> {
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
    listen: &EditableDirective,
    server: &EditableDirective,
    is_http: bool,
    default_port: u16,
) -> Result<MovedListen, String> {
    let has = |parameter: &str| listen.arguments().any(|word| word == parameter);
    let names = server.inner().iter().filter(|line| line.is("server_name"));
    Ok(MovedListen {
        from: ListenAddress::of(listen, default_port)?,
        to: String::new(),
        is_http,
        is_tls: has("ssl") || server.own("ssl").is_some_and(|ssl| ssl.argument() == "on"),
        has_proxy_protocol: has("proxy_protocol"),
        names: names.flat_map(EditableDirective::arguments).map(str::to_lowercase).collect(),
    })
}

impl MovedListen {
    /// Merges another line of the same address.
    fn add(&mut self, other: Self) {
        self.is_tls |= other.is_tls;
        self.has_proxy_protocol |= other.has_proxy_protocol;
        self.names.extend(other.names);
    }
}

pub(crate) fn new_address(
    from: &ListenAddress,
    at: usize,
    folder: &Path,
    ports: &BTreeMap<ListenAddress, SocketAddr>,
) -> Result<String, String> {
    match from {
        // Short, because the kernel accepts at most 107 bytes.
        ListenAddress::Unix(_) => Ok(format!("unix:{}/{at}.sock", folder.display())),
        address => match ports.get(address) {
            Some(new) => Ok(new.to_string()),
            None => Err(format!("there is no port for {address}")),
        },
    }
}

/// Changes all lines to their new addresses. Lines chosen by `keeps_port` also get the old port as
/// `server_port`.
pub(crate) fn move_listens(
    tree: &mut EditableTree,
    moved: &[MovedListen],
    default_port: u16,
    keeps_port: impl Fn(&MovedListen) -> bool,
) {
    tree.change(&mut |around, line| {
        let [subsystem, server] = around else { return };
        let is_listen = server == "server" && line.is("listen");
        if !is_listen || !SUBSYSTEMS.contains(&subsystem.as_str()) {
            return;
        }
        let Ok(from) = ListenAddress::of(line, default_port) else { return };
        if let Some(listen) = moved.iter().find(|listen| listen.from == from) {
            line.words[1] = listen.to.clone().into_bytes();
            // The new address is a single one.
            line.words.retain(|word| !word.starts_with(b"ipv6only="));
            if let Some(port) = from.port().filter(|_| keeps_port(listen)) {
                line.words.push(format!("server_port={port}").into_bytes());
            }
        }
    });
}

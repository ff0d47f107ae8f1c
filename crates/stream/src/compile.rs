//! Compiles the tree of `stream {}` to a site.
//!
//! In lenient mode, a server with an unsupported directive is left out with its sockets, because
//! doing only part of its work could do harm.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;

use ::session::listen::agree_on_server_port;
use ::session::server_names::ServerNames;
use ::session::status::StatusBook;
use ::session::store::StoreBook;
use ::session::variables::{self, VariableDoc};
use ::upstream::{Groups, NodeCount};
use conf::lacking::{Class, EnclosingBlock};
use conf::{
    Directive, Error, FeatureName, Info, Load, MAIN, Registry, Result, SERVER, Span, Subsystem,
};
use net::Address;
use zones::Zones;

use crate::builtin;
use crate::features::{self, Layers, Scope, acme, listen::StreamListenLine, resolver, upstream};
use crate::session::StreamSession;
use crate::site::{ServerBuilder, StreamListen, StreamServer, StreamServerId, StreamSite};

/// `stream {}` as it was read, not yet compiled.
pub struct StreamPlan {
    main: StreamBlock,
    servers: Vec<StreamBlock>,
}

/// The lines of a block.
struct StreamBlock {
    layers: Layers,
    from: Directive,
    /// Whether it has an unsupported directive, in lenient mode.
    is_left_out: bool,
}

pub const BLOCKS: &[Info] = conf::rows! {
    /// A server: what is done with the connections to its sockets.
    ///
    /// ```nginx
    /// server {
    ///     listen 127.0.0.1:9000;
    ///     return "$remote_addr\n";
    /// }
    /// ```
    server(0..=0) {} in MAIN;
    /// A group of servers that `proxy_pass` can name.
    ///
    /// Syntax: NAME
    ///
    /// ```nginx
    /// upstream backend {
    ///     server 127.0.0.1:5432;
    ///     server 127.0.0.1:5433 backup;
    /// }
    /// ```
    upstream(1..=1) {} in MAIN;
};

/// Every directive inside `stream {}`, without its blocks: its prefix, and its row.
pub fn directives() -> impl Iterator<Item = (&'static str, &'static Info)> {
    let tables = features::TABLES.iter();
    let rows = tables.flat_map(|(_, prefix, rows)| rows.iter().map(move |row| (*prefix, row)));
    rows.filter(|(_, row)| !upstream::is_of_http(row.name.as_bytes()))
}

pub fn variable_docs() -> impl Iterator<Item = VariableDoc> {
    builtin::VARIABLES.iter().chain(features::VARIABLES).flat_map(|table| table.docs())
}

pub fn read(stream: &Directive, load: &mut Load<'_>) -> Result<StreamPlan> {
    load.within(Subsystem::Stream, |load| {
        let built_in = load.registry.of::<variables::BuiltIns<StreamSession>>();
        built_in.add(builtin::VARIABLES);
        built_in.add(features::VARIABLES);
        let mut plan = StreamPlan { main: StreamBlock::new(stream), servers: Vec::new() };
        let around = around("stream", stream);
        for line in around.lines {
            let read = plan.line(line, around, load);
            load.tolerate(read)?;
        }
        Ok(plan)
    })
}

fn around<'a>(context: &'a str, block: &'a Directive) -> EnclosingBlock<'a> {
    EnclosingBlock { context, lines: block.block.as_deref().unwrap_or_default() }
}

impl StreamPlan {
    fn line(
        &mut self,
        line: &Directive,
        around: EnclosingBlock<'_>,
        load: &mut Load<'_>,
    ) -> Result<()> {
        if let Some(info) = BLOCKS.iter().find(|info| info.name.as_bytes() == &*line.name.text) {
            info.admit(line, MAIN)?;
        }
        match &*line.name.text {
            b"server" => self.servers.push(StreamBlock::read(line, load)?),
            b"upstream" => upstream::read(line, load)?,
            _ => self.main.line(MAIN, line, around, load)?,
        }
        Ok(())
    }

    pub fn compile(self, load: &mut Load<'_>) -> Result<StreamSite> {
        load.within(Subsystem::Stream, |load| self.compile_servers(load))
    }

    fn compile_servers(self, load: &mut Load<'_>) -> Result<StreamSite> {
        Zones::of(load).check()?;
        let counted = NodeCount::check(load);
        load.tolerate(counted)?;
        upstream::build(&self.main.layers, load)?;
        StoreBook::finish(&resolver::policy_of_main(&self.main.layers, load), load);
        acme::build(&self.main.layers, load)?;
        let all_left_out = self.main.is_left_out;
        let main = Scope::outermost(load).child(self.main.layers, false);
        let mut site = StreamSite::default();
        let (mut sockets, mut blocks) = (StreamSockets::default(), Vec::new());
        let certificates = self.servers.iter().map(|block| block.layers.tls());
        ::tls::read_ahead(certificates, load);
        for block in self.servers.into_iter().filter(|block| !block.is_left_out && !all_left_out) {
            let id = StreamServerId(site.servers.len() as u32);
            let scope = main.child(block.layers, false);
            let added = sockets.add(&scope, id, &block.from);
            let at = block.from.name.span;
            let server = added.and_then(|()| server(&scope, at, load));
            site.servers.extend(load.tolerate(server)?);
            blocks.push(at);
        }
        sockets.list.iter_mut().try_for_each(|listen| listen.names.check(&listen.address, load))?;
        check_tls(&sockets, &site, &blocks)?;
        ::acme::finish(load);
        site.listens = sockets.list;
        site.groups = load.own.of::<Groups>().all().into_values().collect();
        site.status = StatusBook::finish(&mut load.own, &site.groups);
        site.worker_slots = std::mem::take(load.own.of());
        site.variables = variables::resolve(load)?;
        Ok(site)
    }
}

/// Rejects sockets with TLS whose default server has no certificate. If the default server rejects
/// handshakes, the other servers need one. `blocks` are the positions of servers.
fn check_tls(sockets: &StreamSockets, site: &StreamSite, blocks: &[Span]) -> Result<()> {
    let lacks = |id: &StreamServerId| {
        let server = site.servers.get(id.0 as usize);
        server.is_some_and(|server| server.tls.tls.is_none() && !server.tls.rejects_handshakes)
    };
    let rejects = |id: StreamServerId| {
        let server = site.servers.get(id.0 as usize);
        server.is_some_and(|server| server.tls.tls.is_none() && server.tls.rejects_handshakes)
    };
    for listen in sockets.list.iter().filter(|listen| listen.ssl) {
        let default = listen.names.default;
        let lines = &sockets.by_address[&listen.address];
        let without = match rejects(default) {
            true => lines.servers.iter().find(|id| lacks(id)),
            false => Some(&default).filter(|id| lacks(id)),
        };
        if let Some(at) = without.and_then(|id| blocks.get(id.0 as usize)) {
            let message = "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive";
            return Err(Error::at(*at, message));
        }
    }
    Ok(())
}

fn server(scope: &Scope, at: Span, load: &mut Load<'_>) -> Result<StreamServer> {
    let mut place = ServerBuilder {
        load,
        server: StreamServer::default(),
        at,
        identity: identity(scope),
        names: scope.listen.names(),
        handed_on: Registry::default(),
        feature: FeatureName::default(),
    };
    scope.install(&mut place)?;
    Ok(place.server)
}

/// Identifies a server by its names and ports. Addresses are left out, because machines that share
/// a configuration may have different ones.
fn identity(scope: &Scope) -> Vec<Box<[u8]>> {
    let mut parts: Vec<Box<[u8]>> = vec![b"stream"[..].into()];
    parts.extend(scope.listen.names().into_iter().map(|name| name.text));
    for address in scope.listen.lines().iter().flat_map(|line| &line.addresses) {
        parts.push(match address {
            Address::Ip(address) | Address::Udp(address) => address.port().to_be_bytes()[..].into(),
            Address::Unix(path) => path.as_os_str().as_bytes().into(),
        });
    }
    parts
}

impl StreamBlock {
    fn new(from: &Directive) -> Self {
        let from = Directive { block: None, ..from.clone() };
        Self { layers: Layers::default(), from, is_left_out: false }
    }

    /// Reads a server.
    fn read(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut block = Self::new(from);
        let around = around("stream-server", from);
        for line in around.lines {
            let read = block.line(SERVER, line, around, load);
            load.tolerate(read)?;
        }
        Ok(block)
    }

    fn line(
        &mut self,
        level: conf::Levels,
        line: &Directive,
        around: EnclosingBlock<'_>,
        load: &mut Load<'_>,
    ) -> Result<()> {
        let before = load.lacks.len();
        let is_of_http = upstream::is_of_http(&line.name.text);
        if is_of_http || !self.layers.set(level, line, load)? {
            load.without_feature(line, around)?;
        }
        let lacks = &load.lacks[before..];
        self.is_left_out |= lacks.iter().any(|lack| lack.active && lack.class == Class::Block);
        Ok(())
    }
}

/// The listening sockets by address.
#[derive(Default)]
struct StreamSockets {
    list: Vec<StreamListen>,
    by_address: HashMap<Address, ListenOptions>,
}

/// The lines of a socket so far.
struct ListenOptions {
    at: usize,
    /// In the order in which they name the address.
    servers: Vec<StreamServerId>,
    last_line: Span,
    /// The lines with options of the socket, and with `default_server`.
    options_line: Option<Span>,
    default_line: Option<Span>,
}

impl StreamSockets {
    fn add(&mut self, scope: &Scope, server: StreamServerId, from: &Directive) -> Result<()> {
        let lines = scope.listen.lines();
        if lines.is_empty() {
            let message = "no \"listen\" is defined for server";
            return Err(Error::at(from.name.span, message).marked(from.name.span));
        }
        let names = scope.listen.names();
        for line in lines {
            for address in &line.addresses {
                let listen = self.socket(address, line, server)?;
                names.iter().for_each(|name| listen.names.add(name, server));
            }
        }
        Ok(())
    }

    /// Several servers may name an address; the default one is the first unless a line says
    /// otherwise.
    fn socket(
        &mut self,
        address: &Address,
        line: &StreamListenLine,
        server: StreamServerId,
    ) -> Result<&mut StreamListen> {
        let here = line.from.words();
        let Some(lines) = self.by_address.get_mut(address) else {
            let at = self.list.len();
            let options = line.options.clone().unwrap_or_default();
            let proxy_protocol = line.proxy_protocol;
            self.list.push(StreamListen {
                address: address.clone(),
                options,
                proxy_protocol,
                ssl: line.ssl,
                server_port: line.server_port,
                names: ServerNames::new(server),
            });
            let lines = ListenOptions {
                at,
                servers: vec![server],
                last_line: here,
                options_line: line.options.is_some().then_some(here),
                default_line: line.default_server.then_some(here),
            };
            self.by_address.insert(address.clone(), lines);
            return Ok(&mut self.list[at]);
        };
        let refuse = |what: &str, first: Span| {
            let error = line.from.error(format!("{what} {address}"));
            Err(error.elsewhere("the first one is", first))
        };
        if lines.servers.last() == Some(&server) {
            return refuse("a duplicate listen", lines.last_line);
        }
        if let Some(first) = lines.options_line.filter(|_| line.options.is_some()) {
            return refuse("duplicate listen options for", first);
        }
        if let Some(first) = lines.default_line.filter(|_| line.default_server) {
            return refuse("a duplicate default server for", first);
        }
        lines.servers.push(server);
        lines.last_line = here;
        let listen = &mut self.list[lines.at];
        agree_on_server_port(&mut listen.server_port, line.server_port, address, &line.from)?;
        listen.proxy_protocol |= line.proxy_protocol;
        listen.ssl |= line.ssl;
        if let Some(options) = &line.options {
            lines.options_line = Some(here);
            listen.options = options.clone();
        }
        if line.default_server {
            lines.default_line = Some(here);
            listen.names.default = server;
        }
        Ok(listen)
    }
}

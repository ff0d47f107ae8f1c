//! Compiles the tree of `http {}` to a site: blocks are read from the outside in, then compiled
//! from the inside out.
//!
//! All settings of the whole configuration are read before anything is compiled, so a zone or a
//! map may be used above the line that declares it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use ::upstream::{NodeCount, named};
use conf::lacking::EnclosingBlock;
use conf::{
    Directive, Error, IF_IN_LOCATION, IF_IN_SERVER, Info, LIMIT_EXCEPT, LOCATION, Levels, Load,
    MAIN, Result, SERVER, Span, Subsystem,
};
use net::Address;
use session::listen::agree_on_server_port;
use session::status::StatusBook;
use session::store::StoreBook;
use session::variables::VariableDoc;
use zones::Zones;

use crate::builtin;
use crate::exchange::BackgroundTasks;
use crate::features::{
    self, Layers, Scope, acme, otel, resolver, slow_log, ssl, status_zone, upstream,
};
use crate::files;
use crate::site::{
    BlockContext, Listen, ListenLine, Location, LocationBuilder, LocationId, Locations, Matcher,
    ParsedSoFar, ProtocolLines, Protocols, Server, ServerId, ServerName, ServerNames, Site,
    default_options,
};
use crate::variables::{self, BuiltIns};

/// `http {}` as it was read, not yet compiled.
pub struct HttpPlan {
    main: Layers,
    servers: Vec<Block>,
}

/// A block: its settings, and the blocks inside.
struct Block {
    kind: BlockKind,
    layers: Layers,
    /// The names of its lines, in order.
    lines: Vec<Box<[u8]>>,
    inner: Vec<Block>,
    from: Directive,
}

enum BlockKind {
    Server,
    Location(Matcher),
    If,
    LimitExcept(u32),
}

impl BlockKind {
    fn context(&self) -> BlockContext {
        match self {
            BlockKind::Location(Matcher::Exact(name) | Matcher::Prefix(name, _)) => {
                BlockContext::Prefix(name.clone())
            }
            BlockKind::Location(Matcher::Pattern(_)) => BlockContext::Pattern,
            BlockKind::Location(Matcher::Named(_)) => BlockContext::Named,
            BlockKind::Server => BlockContext::Server,
            BlockKind::If | BlockKind::LimitExcept(_) => BlockContext::Nameless,
        }
    }
}

/// The blocks that have settings.
pub const BLOCKS: &[Info] = conf::rows! {
    /// A virtual server: the settings for requests that reach one of its `listen` addresses and
    /// name one of its `server_name`s.
    ///
    /// ```nginx
    /// server {
    ///     listen 80;
    ///     server_name example.com www.example.com;
    ///     root /var/www/example;
    /// }
    /// ```
    server(0..=0) {} in MAIN;
    /// Settings for requests by their path:
    /// - `= PATH`: exactly this path
    /// - `PATH`: paths with this prefix; the longest prefix wins
    /// - `^~ PATH`: the same, but regular expressions are not tried if it is the longest prefix
    /// - `~ REGEX`, `~* REGEX`: paths that match, case-sensitive or not; the first match in the
    ///   file wins over prefixes
    /// - `@NAME`: no path; other directives such as `error_page` and `try_files` lead here
    ///
    /// Syntax: [= | ^~ | ~ | ~*] PATH
    /// Syntax: @NAME
    ///
    /// ```nginx
    /// location = /favicon.ico {
    ///     log_not_found off;
    /// }
    ///
    /// location /images/ {
    ///     expires 30d;
    /// }
    ///
    /// location ~ \.(js|css)$ {
    ///     expires 1h;
    /// }
    /// ```
    location(1..=2) {} in SERVER | LOCATION;
    /// Settings for requests with other methods than these. `GET` includes `HEAD`. Allowed inside:
    /// `allow`, `deny`, `auth_basic`, `proxy_pass`, `access_log`.
    ///
    /// Syntax: METHOD...
    ///
    /// ```nginx
    /// limit_except GET {
    ///     allow 10.0.0.0/8;
    ///     deny all;
    /// }
    /// ```
    limit_except(1..=usize::MAX) {} in LOCATION;
    /// A group of servers, to which `proxy_pass` refers like a host. Requests are distributed over
    /// its servers in turn, by their weights, unless the group sets another method.
    ///
    /// Syntax: NAME
    ///
    /// ```nginx
    /// upstream backend {
    ///     server 127.0.0.1:8001;
    ///     server 127.0.0.1:8002;
    /// }
    ///
    /// server {
    ///     location / {
    ///         proxy_pass http://backend;
    ///     }
    /// }
    /// ```
    upstream(1..=1) {} in MAIN;
};

pub fn variable_docs() -> impl Iterator<Item = VariableDoc> {
    builtin::VARIABLES.iter().chain(features::VARIABLES).flat_map(|table| table.docs())
}

pub fn read(http: &Directive, load: &mut Load<'_>) -> Result<HttpPlan> {
    load.within(Subsystem::Http, |load| read_lines(http, load))
}

fn read_lines(http: &Directive, load: &mut Load<'_>) -> Result<HttpPlan> {
    let built_ins: &mut BuiltIns = load.registry.of();
    built_ins.add(builtin::VARIABLES);
    built_ins.add(features::VARIABLES);
    let mut plan = HttpPlan { main: Layers::default(), servers: Vec::new() };
    let lines = http.block.as_deref().unwrap_or_default();
    let around = EnclosingBlock { context: context(MAIN), lines };
    for line in around.lines {
        let read = plan.line(line, around, load);
        load.tolerate(read)?;
    }
    Ok(plan)
}

impl HttpPlan {
    fn line(
        &mut self,
        line: &Directive,
        around: EnclosingBlock<'_>,
        load: &mut Load<'_>,
    ) -> Result<()> {
        admit(line, MAIN)?;
        match &*line.name.text {
            b"server" => self.servers.push(block(BlockKind::Server, SERVER, line, load)?),
            b"upstream" => upstream::read(line, load)?,
            _ if self.main.set_or_ignore(MAIN, line, load)? => {}
            _ => self.main.without_feature(line, around, load)?,
        }
        Ok(())
    }
}

fn block(kind: BlockKind, level: Levels, from: &Directive, load: &mut Load<'_>) -> Result<Block> {
    let outside = std::mem::replace(load.registry.of(), kind.context());
    let before = std::mem::take(load.registry.of::<ParsedSoFar>());
    let Some(lines) = &from.block else {
        return Err(Error::at(
            from.end,
            format!("directive \"{}\" has no opening \"{{\"", from.name),
        ));
    };
    let head = Directive { block: None, ..from.clone() };
    let names = lines.iter().map(|line| line.name.text.clone()).collect();
    let layers = Layers::default();
    let mut block = Block { kind, layers, lines: names, inner: Vec::new(), from: head };
    let around = EnclosingBlock { context: context(level), lines };
    for line in lines {
        let read = block.line(level, line, around, load);
        load.tolerate(read)?;
    }
    *load.registry.of() = outside;
    *load.registry.of() = before;
    Ok(block)
}

impl Block {
    fn line(
        &mut self,
        level: Levels,
        line: &Directive,
        around: EnclosingBlock<'_>,
        load: &mut Load<'_>,
    ) -> Result<()> {
        match inner_kind(level, &self.kind, line, load)? {
            Some((inner_kind, inside)) => {
                if matches!(inner_kind, BlockKind::If) {
                    self.layers.set(level, line, load)?;
                }
                if matches!(inner_kind, BlockKind::LimitExcept(_)) && self.has_limit_except() {
                    return Err(line.refuse("is duplicate"));
                }
                let mut block = block(inner_kind, inside, line, load)?;
                if matches!(block.kind, BlockKind::If) {
                    self.layers.merge_if_block(&mut block.layers);
                }
                self.inner.push(block);
            }
            None if self.layers.set_or_ignore(level, line, load)? => {}
            None => self.layers.without_feature(line, around, load)?,
        }
        Ok(())
    }

    fn has_limit_except(&self) -> bool {
        self.inner.iter().any(|inner| matches!(inner.kind, BlockKind::LimitExcept(_)))
    }
}

/// The kind and level of a block inside this one; `None` for other directives, which belong to
/// features.
fn inner_kind(
    level: Levels,
    outer: &BlockKind,
    line: &Directive,
    load: &mut Load<'_>,
) -> Result<Option<(BlockKind, Levels)>> {
    admit(line, level)?;
    match &*line.name.text {
        b"location" => {
            let matcher = Matcher::parse(line, load)?;
            if let BlockKind::Location(outer) = outer {
                matcher.check_inside(outer, line)?;
            }
            Ok(Some((BlockKind::Location(matcher), LOCATION)))
        }
        b"if" if level == SERVER => Ok(Some((BlockKind::If, IF_IN_SERVER))),
        b"if" if level == LOCATION => Ok(Some((BlockKind::If, IF_IN_LOCATION))),
        b"limit_except" if level == LOCATION => {
            Ok(Some((BlockKind::LimitExcept(methods(line)?), LIMIT_EXCEPT)))
        }
        _ => Ok(None),
    }
}

/// Rejects a block at a level where it is not allowed, or with a wrong number of arguments.
fn admit(line: &Directive, level: Levels) -> Result<()> {
    match BLOCKS.iter().find(|block| block.name.as_bytes() == &*line.name.text) {
        Some(block) => block.admit(line, level),
        None => Ok(()),
    }
}

/// The block's name in nginx's table of directives.
fn context(level: Levels) -> &'static str {
    match level {
        MAIN => "http",
        SERVER => "server",
        LOCATION => "location",
        IF_IN_SERVER => "if-in-server",
        IF_IN_LOCATION => "if-in-location",
        _ => "limit_except",
    }
}

fn methods(line: &Directive) -> Result<u32> {
    let mut allowed = 0;
    for word in &line.args {
        let method = wire::Method::of(&word.text.to_ascii_uppercase());
        if method == wire::Method::Other {
            return Err(line.error_at(word, format!("invalid method \"{word}\"")));
        }
        allowed |= method.bit();
    }
    if allowed & wire::Method::Get.bit() != 0 {
        allowed |= wire::Method::Head.bit();
    }
    Ok(allowed)
}

impl HttpPlan {
    pub fn compile(self, load: &mut Load<'_>) -> Result<Site> {
        load.within(Subsystem::Http, |load| self.compile_servers(load))
    }

    fn compile_servers(self, load: &mut Load<'_>) -> Result<Site> {
        Zones::of(load).check()?;
        let counted = NodeCount::check(load);
        load.tolerate(counted)?;
        upstream::build(&self.main, load)?;
        otel::build(&self.main, load)?;
        StoreBook::finish(&resolver::policy_of_main(&self.main, load), load);
        acme::build(&self.main, load)?;
        let outermost = Scope::outermost(load);
        let mut compiler = Compiler {
            locations: Vec::new(),
            server_names: Arc::default(),
            is_on_tcp: true,
            pool_numbers: PoolNumbers::default(),
            load,
        };
        let main = outermost.child(self.main, false);
        let mut site = Site::default();
        let mut sockets = Sockets::default();
        let certificates = self.servers.iter().map(|block| block.layers.tls());
        tls::read_ahead(certificates, compiler.load);
        let count = self.servers.len();
        for block in self.servers {
            let id = ServerId(site.servers.len() as u32);
            let scope = main.child(block.layers, false);
            let server = sockets
                .add(&scope, id, &block.from, compiler.load)
                .and_then(|()| compiler.server(scope, block.from.end, block.inner));
            site.servers.extend(compiler.load.tolerate(server)?);
        }
        site.locations = compiler.locations;
        ::acme::finish(load);
        sockets.list.iter_mut().try_for_each(|listen| listen.names.check(&listen.address, load))?;
        // In a check, servers with errors are left out, and those after them have other numbers.
        if site.servers.len() == count {
            sockets.check_tls(&site)?;
        }
        site.listens = sockets.list;
        site.groups = named::all(load)?.values().cloned().collect();
        let has_tls = |server: &&Server| server.tls.tls.is_some() || server.tls.rejects_handshakes;
        for server in site.servers.iter().filter(has_tls) {
            if let Some(zone) = status_zone::server_zone(site.location(server.outer)) {
                load.own.of::<StatusBook>().speaks_tls(zone);
            }
        }
        load.own.of::<StatusBook>().show_more(files::show_caches);
        site.status = StatusBook::finish(&mut load.own, &site.groups);
        site.worker_slots = std::mem::take(load.own.of());
        crate::backend::cache::keep_in_site(load);
        site.own = std::mem::take(load.own.of());
        site.worker_slots.declare::<BackgroundTasks>();
        site.variables = variables::resolve(load)?;
        if slow_log::shows_timing(&site.variables, load) {
            site.servers.iter_mut().for_each(|server| server.timed = true);
        }
        Ok(site)
    }
}

/// The listening sockets by address, with the servers behind each.
#[derive(Default)]
struct Sockets {
    list: Vec<Listen>,
    by_address: HashMap<Address, SocketLines>,
}

impl Sockets {
    fn add(
        &mut self,
        scope: &Scope,
        server: ServerId,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<()> {
        let implicit = [ListenLine::implicit(from, load.privileged)];
        let lines = match scope.server.listens() {
            [] => &implicit[..],
            lines => lines,
        };
        for line in lines {
            for address in &line.addresses {
                let listen = self.socket(address, line, (server, from.name.span), load)?;
                for name in &scope.server.names() {
                    listen.names.add(name, server);
                }
            }
        }
        Ok(())
    }

    /// Rejects sockets with TLS whose default server has no certificate. If the default server
    /// rejects handshakes, the other servers need one.
    fn check_tls(&self, site: &Site) -> Result<()> {
        let has_tls = |id: ServerId| site.server(id).tls.tls.is_some();
        let rejects = |id: ServerId| site.server(id).tls.rejects_handshakes;
        for listen in self.list.iter().filter(|listen| listen.protocols.has(Protocols::SSL)) {
            let default = listen.names.default;
            let socket = &self.by_address[&listen.address];
            let without = match (has_tls(default), rejects(default)) {
                (true, _) => None,
                (false, false) => socket.servers.iter().find(|(id, _)| *id == default),
                (false, true) => {
                    socket.servers.iter().find(|(id, _)| !has_tls(*id) && !rejects(*id))
                }
            };
            if let Some((_, at)) = without {
                let message = "no \"ssl_certificate\" is defined for";
                return Err(Error::at(*at, format!("{message} the \"listen ... ssl\" directive")));
            }
        }
        Ok(())
    }

    /// The socket of an address, created at its first line.
    fn socket(
        &mut self,
        address: &Address,
        line: &ListenLine,
        (server, block): (ServerId, Span),
        load: &mut Load<'_>,
    ) -> Result<&mut Listen> {
        let at = match self.by_address.get(address) {
            Some(socket) => {
                let refuse = |what: &str, first: Span| {
                    let error = line.from.error(format!("{what} {address}"));
                    Err(error.elsewhere("the first one is", first))
                };
                if socket.last_server == server {
                    return refuse("a duplicate listen", socket.last_line);
                }
                if let Some(first) = socket.options_line.filter(|_| line.options.is_some()) {
                    return refuse("duplicate listen options for", first);
                }
                if let Some(first) = socket.default_line.filter(|_| line.default_server) {
                    return refuse("a duplicate default server for", first);
                }
                socket.at
            }
            None => {
                let (names, options) = (ServerNames::new(server), default_options());
                let protocols = line.protocols;
                let (address, transport) = (address.clone(), None);
                let server_port = None;
                self.list.push(Listen {
                    address,
                    options,
                    protocols,
                    server_port,
                    transport,
                    names,
                });
                self.list.len() - 1
            }
        };
        let listen = &mut self.list[at];
        let here = line.from.words();
        let new = || SocketLines::new(here);
        let socket = self.by_address.entry(address.clone()).or_insert_with(new);
        listen.protocols = socket.name_protocols(line, address, load);
        agree_on_server_port(&mut listen.server_port, line.server_port, address, &line.from)?;
        (socket.at, socket.last_server, socket.last_line) = (at, server, here);
        socket.servers.push((server, block));
        if let Some(options) = &line.options {
            socket.options_line = Some(here);
            listen.options = options.clone();
        }
        if line.default_server {
            socket.default_line = Some(here);
            listen.names.default = server;
        }
        Ok(listen)
    }
}

/// The `listen` lines of a socket so far.
struct SocketLines {
    at: usize,
    last_server: ServerId,
    last_line: Span,
    /// The servers, and the positions of their blocks.
    servers: Vec<(ServerId, Span)>,
    /// The lines with options of the socket, and with `default_server`.
    options_line: Option<Span>,
    default_line: Option<Span>,
    protocols: Option<ProtocolLines>,
}

impl SocketLines {
    fn new(first: Span) -> Self {
        Self {
            at: 0,
            last_server: ServerId::default(),
            last_line: first,
            servers: Vec::new(),
            options_line: None,
            default_line: None,
            protocols: None,
        }
    }

    /// Adds a line. Returns the protocols of all lines so far.
    fn name_protocols(
        &mut self,
        line: &ListenLine,
        address: &Address,
        load: &mut Load<'_>,
    ) -> Protocols {
        let options = line.options.is_some();
        match &mut self.protocols {
            None => self.protocols = Some(ProtocolLines::new(line.protocols, options)),
            Some(lines) => {
                if lines.add(line.protocols, options) {
                    let message = format!("protocol options redefined for {address}");
                    load.warn(line.from.error(message));
                }
                return lines.all;
            }
        }
        line.protocols
    }
}

/// Identifies a server by its names and ports. Addresses are left out, because machines that share
/// a configuration may have different ones.
fn identity(scope: &Scope) -> Vec<Box<[u8]>> {
    let mut parts: Vec<Box<[u8]>> = vec![b"http"[..].into()];
    parts.extend(scope.server.names().into_iter().map(|name| name.text));
    for address in scope.server.listens().iter().flat_map(|line| &line.addresses) {
        parts.push(match address {
            Address::Ip(address) | Address::Udp(address) => address.port().to_be_bytes()[..].into(),
            Address::Unix(path) => path.as_os_str().as_bytes().into(),
        });
    }
    parts
}

/// Numbers locations by server and name, so that a reload that adds locations changes no number.
/// Blocks with the same server and name are counted.
#[derive(Default)]
struct PoolNumbers {
    /// The hash of the server that is being compiled.
    server: u64,
    counts: HashMap<u64, u32>,
}

impl PoolNumbers {
    fn next(&mut self, name: &[u8]) -> u64 {
        let number = hash(&(self.server, name));
        let count = self.counts.entry(number).or_default();
        *count += 1;
        hash(&(number, *count)).max(1)
    }
}

/// A hash that is the same in every process of this program.
fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Compiles servers and locations, and numbers the locations.
struct Compiler<'a, 'f> {
    locations: Vec<Location>,
    /// The names of the server that is being compiled.
    server_names: Arc<[ServerName]>,
    /// Whether clients reach that server over TCP.
    is_on_tcp: bool,
    pool_numbers: PoolNumbers,
    load: &'a mut Load<'f>,
}

impl Compiler<'_, '_> {
    fn server(&mut self, scope: Scope, at: Span, inner: Vec<Block>) -> Result<Server> {
        let reading = scope.server.reading();
        let (identity, names) = (identity(&scope), scope.resolver.policy());
        self.pool_numbers.server = hash(&identity);
        self.server_names = scope.server.names().into();
        let slot = acme::slot(&scope.acme, &self.server_names, self.load)?;
        let tls = ssl::policy(&scope.ssl, &scope.ssl_shared, identity, names, slot, self.load)?;
        let http2 = scope.http2.policy();
        self.is_on_tcp = scope.server.listens_on_tcp();
        let name = &self.server_names[0].text;
        let name = name.strip_prefix(b".").unwrap_or(name).into();
        let first = self.locations.len();
        let (outer, locations) = self.location(scope, at, Box::default(), Vec::new(), inner)?;
        let timed = self.locations[first..].iter().any(|location| location.core.timed);
        Ok(Server { name, outer, locations, reading, tls, http2, timed })
    }

    /// Compiles the inner blocks, then the block itself. `lines` has the names of its directives,
    /// and for an `if` or `limit_except` those of the enclosing location before them.
    fn location(
        &mut self,
        scope: Scope,
        at: Span,
        name: Box<[u8]>,
        lines: Vec<Box<[u8]>>,
        inner: Vec<Block>,
    ) -> Result<(LocationId, Locations)> {
        let (mut list, mut ifs, mut limit_except) = (Vec::new(), Vec::new(), None);
        for block in inner {
            let nameless = !matches!(block.kind, BlockKind::Location(_));
            let own_name = match &block.kind {
                BlockKind::Location(matcher) => matcher.name().into(),
                _ => name.clone(),
            };
            let own_lines =
                if nameless { [&lines[..], &block.lines].concat() } else { block.lines };
            let child = scope.child(block.layers, nameless);
            let (id, locations) =
                self.location(child, block.from.end, own_name, own_lines, block.inner)?;
            self.locations[id.0 as usize].inner = locations;
            match block.kind {
                BlockKind::Location(matcher) => list.push((matcher, id, block.from.end)),
                BlockKind::If => ifs.push(id),
                BlockKind::LimitExcept(methods) => limit_except = Some((methods, id)),
                BlockKind::Server => unreachable!("servers are not nested"),
            }
        }
        let pool_number = self.pool_numbers.next(&name);
        let mut location = LocationBuilder::new(self.load, at, name, self.server_names.clone());
        (location.ifs, location.lines) = (ifs, lines);
        scope.install(&mut location)?;
        if limit_except.is_none() && self.is_on_tcp {
            location.check_access_rules();
        }
        let location = location.finish(Locations::default(), limit_except, pool_number);
        self.locations.push(location);
        let id = LocationId(self.locations.len() as u32 - 1);
        let adds_slash = |id: LocationId| self.locations[id.0 as usize].adds_slash;
        Ok((id, Locations::build(list, adds_slash)?))
    }
}

//! `listen`: the address of a socket, how it is opened, and which servers are behind it.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::lacking::Class;
use conf::{Directive, Error, Inherited, Load, Result, Value, Word};
use net::accept::Transport;
use net::{Address, SocketOptions};
use session::listen;

use super::{Protocols, ServerNames};

/// Where a server listens whose `listen` names no port.
const DEFAULT_PORT: u16 = 80;

/// A listening socket and the servers behind it.
pub struct Listen {
    /// Where it listens.
    pub address: Address,
    /// How it is opened.
    pub options: SocketOptions,
    /// What is spoken there besides HTTP/1.
    pub protocols: Protocols,
    /// The port by which clients reach the socket, if `server_port=` names another one.
    pub server_port: Option<u16>,
    /// What secures its connections in tests. What `listen ... ssl` means is
    /// [`Protocols::SSL`].
    pub transport: Option<Arc<dyn Transport>>,
    /// Its servers.
    pub names: ServerNames,
}

/// One `listen` line.
#[derive(Clone)]
pub struct ListenLine {
    /// Where: one address, or those of a range of ports or a host name.
    pub addresses: Vec<Address>,
    /// Whether its server is the default of the socket.
    pub default_server: bool,
    /// How the socket is opened, where the line says anything about it.
    pub options: Option<SocketOptions>,
    /// What it names to be spoken there.
    pub protocols: Protocols,
    /// The port by which clients reach the addresses, if `server_port=` names another one.
    pub server_port: Option<u16>,
    /// The line, for messages about sockets.
    pub from: Directive,
}

impl Value for ListenLine {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut line = Self {
            addresses: listen::addresses(from.arg(0), Some(DEFAULT_PORT), from)?,
            default_server: false,
            options: None,
            protocols: Protocols::default(),
            server_port: None,
            from: from.clone(),
        };
        for word in &from.args[1..] {
            let read = line.parameter(word, from, load);
            load.tolerate(read)?;
        }
        Ok(line)
    }
}

/// How a socket is opened that no line says anything about.
///
/// `deferred` is on, unlike in nginx: in HTTP the client speaks first, so there is nothing to do
/// for a connection before its first bytes, and accepting it with them saves a wake-up and the
/// whole registration of short connections. One that stays silent is accepted after a second.
/// Called `nginx`, the program does as nginx: tools made for it count silent connections.
pub fn unsaid() -> SocketOptions {
    let deferred = crate::identity::identity().name != "nginx";
    SocketOptions { deferred, ..SocketOptions::default() }
}

impl ListenLine {
    /// What a server without a `listen` line has.
    pub fn implicit(from: &Directive, privileged: bool) -> Self {
        let port = if privileged { 80 } else { 8000 };
        let address = Address::Ip(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port));
        Self {
            addresses: vec![address],
            default_server: false,
            options: None,
            protocols: Protocols::default(),
            server_port: None,
            from: from.clone(),
        }
    }

    fn parameter(&mut self, word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let (name, value) = listen::parameter(word);
        match (name, value) {
            (b"default_server" | b"default", None) => {
                self.default_server = true;
                return Ok(());
            }
            (b"proxy_protocol", None) => {
                self.protocols = self.protocols | Protocols::PROXY_PROTOCOL;
                return Ok(());
            }
            (b"ssl", None) => {
                self.protocols = self.protocols | Protocols::SSL;
                return Ok(());
            }
            (b"http2", None) => {
                self.protocols = self.protocols | Protocols::HTTP2;
                let message = "the \"listen ... http2\" directive is deprecated, use the \"http2\" \
                               directive instead";
                load.warn(from.error(message));
                return Ok(());
            }
            (b"quic", None) => return Err(requires(from, "quic", "ngx_http_v3_module")),
            _ => {}
        }
        if let Some(port) = listen::server_port(word, from)? {
            self.server_port = Some(port);
            return Ok(());
        }
        let v6 = matches!(self.addresses.first(), Some(Address::Ip(SocketAddr::V6(_))));
        let options = self.options.get_or_insert_with(unsaid);
        if listen::set_option(options, word, v6, from)? {
            return Ok(());
        }
        let known = PARAMETERS.into_iter().chain(listen::SOCKET_PARAMETERS);
        Err(from.error_at(word, format!("invalid parameter \"{word}\"")).meant(name, known))
    }
}

/// What may follow the address, beside how the socket is opened.
const PARAMETERS: [&str; 6] =
    ["default_server", "proxy_protocol", "ssl", "http2", "quic", listen::SERVER_PORT];

fn requires(from: &Directive, parameter: &str, module: &str) -> Error {
    from.error(format!("the \"{parameter}\" parameter requires {module}"))
        .help("this version of weir does not support HTTP/3")
        .lacks(Class::Block)
}

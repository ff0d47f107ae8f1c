//! `listen`: the address of a socket, its options, and its servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::lacking::Class;
use conf::{Directive, Error, Inherited, Load, Result, Value, Word};
use net::accept::Transport;
use net::{Address, SocketOptions};
use session::listen;

use super::{Protocols, ServerNames};

/// The port of a `listen` line without one.
const DEFAULT_PORT: u16 = 80;

/// A listening socket and the servers behind it.
pub struct Listen {
    pub address: Address,
    /// The options to open it with.
    pub options: SocketOptions,
    /// The protocols besides HTTP/1.
    pub protocols: Protocols,
    /// The port by which clients reach the socket, if `server_port=` names another one.
    pub server_port: Option<u16>,
    /// A transport for tests. `listen ... ssl` is [`Protocols::SSL`].
    pub transport: Option<Arc<dyn Transport>>,
    pub names: ServerNames,
}

#[derive(Clone)]
pub struct ListenLine {
    /// One address, or several for a range of ports or a host name.
    pub addresses: Vec<Address>,
    /// Whether its server is the default of the socket.
    pub default_server: bool,
    /// The socket options, if the line has any.
    pub options: Option<SocketOptions>,
    /// The protocols that the line names.
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

/// The options of a socket whose lines have none.
///
/// Unlike in nginx, `deferred` is on: an HTTP client sends first, so a connection can be accepted
/// together with its first bytes, which saves a wake-up, and the whole registration of short
/// connections. A silent connection is accepted after a second. If the program's name is `nginx`,
/// `deferred` is off, because tools made for nginx count silent connections.
pub fn default_options() -> SocketOptions {
    let deferred = crate::identity::identity().name != "nginx";
    SocketOptions { deferred, ..SocketOptions::default() }
}

impl ListenLine {
    /// The `listen` line of a server that has none.
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
        let options = self.options.get_or_insert_with(default_options);
        if listen::set_option(options, word, v6, from)? {
            return Ok(());
        }
        let known = PARAMETERS.into_iter().chain(listen::SOCKET_PARAMETERS);
        Err(from.error_at(word, format!("invalid parameter \"{word}\"")).meant(name, known))
    }
}

/// Parameters after the address, other than socket options.
const PARAMETERS: [&str; 6] =
    ["default_server", "proxy_protocol", "ssl", "http2", "quic", listen::SERVER_PORT];

fn requires(from: &Directive, parameter: &str, module: &str) -> Error {
    from.error(format!("the \"{parameter}\" parameter requires {module}"))
        .help("this version of weir does not support HTTP/3")
        .lacks(Class::Block)
}

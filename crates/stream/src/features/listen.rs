//! `listen` and `server_name`: the sockets and the names of a server.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::listen;
use ::session::server_names::{ServerName, ServerNameLine};
use conf::lacking::{Class, LinePart};
use conf::{Directive, Inherited, Load, Result, Value, Word};
use net::{Address, SocketOptions};

use crate::session::StreamSession;
use crate::site::ServerBuilder;

conf::directives! {
    also {
        /// Where the server listens: an address with a port or a range of ports, a port, or the
        /// path of a Unix socket. With `udp` it receives datagrams. Of several servers on one
        /// address, the `default_server`, else the first, handles connections that match no
        /// `server_name`. With `ssl` connections are encrypted; the server needs an
        /// `ssl_certificate`. With `proxy_protocol` each connection begins with a PROXY protocol
        /// header. `server_port` is the port that `$server_port` has, where clients reach the
        /// address by another one. `bind` and `reuseport` are accepted and change nothing: every
        /// address has a socket of its own for each worker.
        ///
        /// With `udp`, the datagrams of a client, which is an address and port, belong to one
        /// session, until it is over by `proxy_responses`, `proxy_requests` or `proxy_timeout`. A
        /// worker has at most `worker_connections` sessions and connections together; datagrams of
        /// other clients are dropped then. `backlog`, `fastopen`, `deferred`, `multipath`, `ssl`,
        /// `so_keepalive` and `proxy_protocol` cannot be combined with `udp`.
        ///
        /// Syntax: ADDRESS:PORT | PORT | unix:PATH [default_server] [udp] [ssl] [proxy_protocol]
        /// [bind] [reuseport] [backlog=NUMBER] [rcvbuf=SIZE] [sndbuf=SIZE] [deferred]
        /// [fastopen=NUMBER] [multipath] [server_port=NUMBER] [ipv6only=on|off]
        /// [so_keepalive=on|off|[IDLE]:[INTERVAL]:[COUNT]]
        /// Differs: `udp` is not supported on Unix sockets. nginx does not have `server_port`.
        ///
        /// ```nginx
        /// server {
        ///     listen 127.0.0.1:9000 so_keepalive=on;
        ///     listen unix:/run/weir.sock;
        ///     return "hello\n";
        /// }
        /// ```
        listen(1..=usize::MAX) in SERVER => lines;
        /// The names of the server: exact names, `*.example.com`, `www.*`, `.example.com` (with and
        /// without a prefix), or a regular expression after `~`. On encrypted sockets, a client
        /// that names one of them in its handshake (SNI) is served by this server. Exact names win,
        /// then the longest wildcards, then the first regular expression.
        ///
        /// Syntax: NAME...
        /// Default: ""
        ///
        /// ```nginx
        /// server {
        ///     listen 127.0.0.1:9443 ssl;
        ///     server_name example.com *.example.com;
        ///     ssl_reject_handshake on;
        ///     return "hello\n";
        /// }
        /// ```
        server_name(1..=usize::MAX) in SERVER => names;
    }
    slots {
        /// The names.
        names: Option<ServerNameLine<StreamSession>>,
        /// The `listen` lines.
        lines: Vec<StreamListenLine>,
    }

    in SERVER;
}

/// Sets the name of the server. The sockets are built from the lines of all servers.
pub fn install(_: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    let name = &place.names[0].text;
    place.server.name = name.strip_prefix(b".").unwrap_or(name).into();
    Ok(())
}

impl Conf {
    pub fn lines(&self) -> &[StreamListenLine] {
        &self.lines
    }

    /// The names, of which there is at least one.
    pub fn names(&self) -> Vec<ServerName<StreamSession>> {
        self.names.clone().unwrap_or_default().0
    }
}

#[derive(Clone)]
pub struct StreamListenLine {
    /// One address, or several for a range of ports or a host name.
    pub addresses: Vec<Address>,
    /// Whether its server is the default of the socket.
    pub default_server: bool,
    /// Whether a PROXY header comes first.
    pub proxy_protocol: bool,
    pub ssl: bool,
    /// The port by which clients reach the addresses, if `server_port=` names another one.
    pub server_port: Option<u16>,
    /// The socket options, if the line has any.
    pub options: Option<SocketOptions>,
    /// The line, for messages about sockets.
    pub from: Directive,
}

impl Value for StreamListenLine {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut line = Self {
            addresses: listen::addresses(from.arg(0), None, from)?,
            default_server: false,
            proxy_protocol: false,
            ssl: false,
            server_port: None,
            options: None,
            from: from.clone(),
        };
        for word in &from.args[1..] {
            let read = line.parameter(word, from, load);
            load.tolerate(read)?;
        }
        line.check_udp(from)?;
        Ok(line)
    }
}

/// Parameters after the address, other than socket options.
const PARAMETERS: [&str; 5] =
    ["default_server", "proxy_protocol", "ssl", "udp", listen::SERVER_PORT];

impl StreamListenLine {
    fn parameter(&mut self, word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        match &*word.text {
            b"default_server" => self.default_server = true,
            b"proxy_protocol" => self.proxy_protocol = true,
            b"ssl" => self.ssl = true,
            b"udp" => self.become_udp(word, from, load)?,
            _ if let Some(port) = listen::server_port(word, from)? => {
                self.server_port = Some(port);
            }
            _ => {
                let v6 = matches!(
                    self.addresses.first(),
                    Some(Address::Ip(SocketAddr::V6(_)) | Address::Udp(SocketAddr::V6(_)))
                );
                let options = self.options.get_or_insert_default();
                if !listen::set_option(options, word, v6, from)? {
                    let known = PARAMETERS.into_iter().chain(listen::SOCKET_PARAMETERS);
                    let error = from.error_at(word, format!("invalid parameter \"{word}\""));
                    return Err(error.meant(&word.text, known));
                }
            }
        }
        Ok(())
    }
}

/// Parameters for TCP only: names, or names with a value.
const TCP_PARAMETERS: [&str; 7] =
    ["fastopen=", "backlog=", "deferred", "multipath", "ssl", "so_keepalive=", "proxy_protocol"];

impl StreamListenLine {
    fn become_udp(&mut self, word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        for address in &mut self.addresses {
            match address {
                Address::Ip(ip) => *address = Address::Udp(*ip),
                Address::Udp(_) => {}
                Address::Unix(_) => {
                    let what = "listen unix: ... udp";
                    return lacks(what, "ngx_stream_module", word, from, load);
                }
            }
        }
        Ok(())
    }

    /// Rejects parameters for TCP, in nginx's order.
    fn check_udp(&self, from: &Directive) -> Result<()> {
        if !self.addresses.first().is_some_and(Address::is_udp) {
            return Ok(());
        }
        let is_set = |parameter: &&str| match parameter.strip_suffix('=') {
            Some(_) => {
                from.args[1..].iter().any(|word| word.text.starts_with(parameter.as_bytes()))
            }
            None => from.args[1..].iter().any(|word| *word.text == *parameter.as_bytes()),
        };
        let refused = TCP_PARAMETERS.iter().find(|name| is_set(name));
        let Some(name) = refused.map(|name| name.trim_end_matches('=')) else { return Ok(()) };
        let message =
            format!("\"listen\" directive \"{name}\" parameter is incompatible with \"udp\"");
        Err(from.error(message))
    }
}

fn lacks(
    what: &'static str,
    module: &'static str,
    word: &Word,
    from: &Directive,
    load: &mut Load<'_>,
) -> Result<()> {
    let message =
        format!("the \"{word}\" parameter of \"listen\" is not supported by this version of weir");
    let part = LinePart { what: what.into(), module, class: Class::Block };
    load.without_part(from, part, from.error_at(word, message))
}

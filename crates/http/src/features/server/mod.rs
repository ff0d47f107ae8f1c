//! A virtual server: its sockets, its names, and the limits of reading requests.

use std::sync::Arc;

use conf::{Buffers, Milliseconds, Number, Result, Size};
use net::Address;
use session::server_names::ServerNameLine;
use wire::request::HeadLimits;

use crate::exchange::Exchange;
use crate::site::{ListenLine, LocationBuilder, ReadingPolicy, ServerName};

conf::directives! {
    also {
        /// An address and port, a port, or a Unix socket on which the server accepts connections.
        /// The first server of an address, or the one with `default_server`, handles requests that
        /// match no `server_name`.
        /// - `default_server`: handles requests for unknown names
        /// - `ssl`: connections are encrypted; the server needs an `ssl_certificate`
        /// - `proxy_protocol`: connections start with a PROXY protocol header
        /// - `http2`: HTTP/2, whatever `http2` says; deprecated
        /// - `deferred`, `deferred=off`: whether a connection is accepted only once its client has
        ///   sent something
        /// - `backlog=NUMBER`: maximum number of connections waiting to be accepted; 511
        /// - `reuseport`, `bind`: no effect; every worker always has its own socket
        /// - `server_port=NUMBER`: the port by which clients reach this address where a container
        ///   or firewall maps another port to it; `$server_port` and redirects have it
        /// - `ipv6only=on|off`, `so_keepalive=on|off|IDLE:INTERVAL:COUNT`, `rcvbuf=SIZE`,
        ///   `sndbuf=SIZE`, `fastopen=NUMBER`, `multipath`: options of the socket
        ///
        /// Syntax: ADDRESS[:PORT] | PORT | unix:PATH [default_server] [ssl] [http2]
        /// [proxy_protocol] [deferred[=off]] [backlog=NUMBER] [server_port=NUMBER] [reuseport]
        /// [OPTION...]
        /// Default: *:80, or *:8000 where the user may not bind port 80
        /// Differs: `deferred` is the default when the program is called `weir`; `deferred=off`
        /// turns it off. A client that connects and stays silent is then accepted a second later.
        /// nginx does not have `server_port`. `quic` is rejected.
        ///
        /// ```nginx
        /// server {
        ///     listen 8080 default_server;
        ///     listen [::]:8080;
        ///     listen unix:/run/weir.sock deferred=off;
        ///     listen 8081 server_port=80;
        /// }
        /// ```
        listen(1..=usize::MAX) in SERVER => listens;
        /// The names of the server: exact names, `*.example.com`, `www.*`, `.example.com` (with and
        /// without a prefix), or a regular expression after `~`. Exact names win, then the longest
        /// wildcards, then the first regular expression.
        ///
        /// Syntax: NAME...
        /// Default: ""
        ///
        /// ```nginx
        /// server_name example.com *.example.com ~^(?<user>\w+)\.example\.net$;
        /// ```
        server_name(1..=usize::MAX) in SERVER => names;
    }
    slots {
        /// The sockets.
        listens: Vec<ListenLine>,
        /// The names.
        names: Option<ServerNameLine<Exchange>>,
    }

    in MAIN | SERVER;

    /// How long a client may take to send the whole request header; after that the answer is 408.
    ///
    /// ```nginx
    /// client_header_timeout 10s;
    /// ```
    client_header_timeout: Milliseconds = "60s",
    /// The size of the buffer for reading a request header. A larger header moves to
    /// `large_client_header_buffers`.
    ///
    /// ```nginx
    /// client_header_buffer_size 2k;
    /// ```
    client_header_buffer_size: Size = "1k",
    /// The number and size of the buffers for large request headers. A request line larger than one
    /// buffer is answered with 414, a header line with 400.
    ///
    /// ```nginx
    /// large_client_header_buffers 8 16k;
    /// ```
    large_client_header_buffers: Buffers = "4 8k",
    /// The largest number of header fields in a request.
    max_headers: Number = "1000",
    /// Whether header fields with invalid names are ignored. With `off`, the request is rejected.
    ///
    /// ```nginx
    /// ignore_invalid_headers off;
    /// ```
    ignore_invalid_headers: bool = "on",
    /// Whether underscores are valid in names of header fields.
    ///
    /// ```nginx
    /// underscores_in_headers on;
    /// ```
    underscores_in_headers: bool = "off",
    /// Whether several slashes in a row in a path count as one.
    ///
    /// ```nginx
    /// merge_slashes off;
    /// ```
    merge_slashes: bool = "on",
}

pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

impl Conf {
    pub fn listens(&self) -> &[ListenLine] {
        &self.listens
    }

    /// Whether clients reach it over TCP.
    pub fn listens_on_tcp(&self) -> bool {
        let is_unix = |address: &Address| matches!(address, Address::Unix(_));
        let mut addresses = self.listens.iter().flat_map(|line| &line.addresses);
        self.listens.is_empty() || addresses.any(|address| !is_unix(address))
    }

    /// The names, of which there is at least one.
    pub fn names(&self) -> Vec<ServerName> {
        self.names.clone().unwrap_or_default().0
    }

    pub fn reading(&self) -> ReadingPolicy {
        let Buffers { number, size } = self.large_client_header_buffers;
        let head = HeadLimits {
            client_header_buffer_size: self.client_header_buffer_size.0 as usize,
            large_client_header_buffers: (number as usize, size as usize),
            max_headers: self.max_headers.0 as usize,
            ignore_invalid_headers: self.ignore_invalid_headers,
            underscores_in_headers: self.underscores_in_headers,
            ..HeadLimits::default()
        };
        ReadingPolicy {
            client_header_timeout_ms: self.client_header_timeout.0,
            head,
            merge_slashes: self.merge_slashes,
        }
    }
}

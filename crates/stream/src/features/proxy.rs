//! `proxy_pass`: passes sessions to servers. The settings are here; `crate::proxy` does the work.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::backend::Bind;
use ::tls::backend::{PROTOCOL_MAX, SecuredBackend};
use ::tls::client;
use ::upstream::address;
use ::upstream::named::{self, GroupHost};
use conf::{
    Directive, Inherited, Load, Milliseconds, Number, Result, Size, SizeTemplate, Template, Value,
};

use super::backend_tls;
use crate::proxy::{
    self, BackendSocket, DatagramCounts, NextServer, ProxyPlan, SentHeader, SessionTarget,
};
use crate::site::ServerBuilder;

conf::directives! {
    also {
        /// Passes connections on to a server, or to the servers of an `upstream`. With variables,
        /// each connection may have its own.
        ///
        /// Syntax: ADDRESS
        ///
        /// ```nginx
        /// upstream database {
        ///     server 127.0.0.1:5432;
        ///     server 127.0.0.1:5433 backup;
        /// }
        /// server {
        ///     listen 127.0.0.1:9000;
        ///     proxy_pass database;
        /// }
        /// ```
        pass(1..=1) in SERVER => target;
    }
    slots {
        /// Where to.
        target: Option<PassTarget>,
    }

    in MAIN | SERVER;

    /// The local address for connections to backends. `transparent` allows an address that does not
    /// belong to this machine, such as the client's; this requires root.
    ///
    /// Syntax: ADDRESS [transparent]
    /// Syntax: off
    ///
    /// ```nginx
    /// proxy_bind 127.0.0.2;
    /// ```
    bind: Option<Bind>,
    /// Whether the kernel sends TCP keepalive probes on connections to backends.
    ///
    /// ```nginx
    /// proxy_socket_keepalive on;
    /// ```
    socket_keepalive: bool = "off",
    /// The size of the receive buffer of connections to backends. 0 means the system's default.
    socket_rcvbuf: Size = "0",
    /// The size of the send buffer of connections to backends. 0 means the system's default.
    socket_sndbuf: Size = "0",
    /// How long connecting to a backend may take. It is also how long a connection waits in the
    /// queue of a group whose limit names no time.
    ///
    /// ```nginx
    /// proxy_connect_timeout 5s;
    /// ```
    connect_timeout: Milliseconds = "60s",
    /// How long a connection or a session over UDP may be idle in both directions before it ends.
    ///
    /// ```nginx
    /// proxy_timeout 1h;
    /// ```
    timeout: Milliseconds = "10m",
    /// The largest number of bytes that are read at a time, from the client and from the backend.
    /// A connection holds no more than that in either direction, and nothing while it is idle.
    /// Over UDP it has no effect: every datagram fits.
    ///
    /// Differs: at most 16k are read at a time. With 16k or more, a connection that transfers a lot
    /// goes through a pipe of the kernel, which holds up to 64k in each direction, unless a rate is
    /// limited or TLS is used.
    ///
    /// ```nginx
    /// proxy_buffer_size 8k;
    /// ```
    buffer_size: Size = "16k",
    /// Limits how many bytes per second are read from the client. 0 means no limit.
    ///
    /// ```nginx
    /// proxy_upload_rate 1m;
    /// ```
    upload_rate: SizeTemplate = "0",
    /// Limits how many bytes per second are read from the backend. 0 means no limit.
    ///
    /// ```nginx
    /// map $remote_addr $rate {
    ///     default 1m;
    ///     127.0.0.1 0;
    /// }
    /// proxy_download_rate $rate;
    /// ```
    download_rate: SizeTemplate = "0",
    /// Whether another backend is tried when one does not accept the connection.
    ///
    /// ```nginx
    /// proxy_next_upstream off;
    /// ```
    next_upstream: bool = "on",
    /// The largest number of backends that are tried for one connection. 0 means no limit.
    ///
    /// ```nginx
    /// proxy_next_upstream_tries 2;
    /// ```
    next_upstream_tries: Number = "0",
    /// For how long after the first attempt another backend may be tried. 0 means no limit.
    ///
    /// ```nginx
    /// proxy_next_upstream_timeout 10s;
    /// ```
    next_upstream_timeout: Milliseconds = "0",
    /// Whether a backend is sent a PROXY protocol header with the client's address before anything
    /// else: `on` sends version 1, `v2` version 2.
    ///
    /// Syntax: on | off | v2
    /// Differs: of the values about a client's TLS, `v2` does not send the algorithms of the
    /// server's certificate (`sig_alg`, `key_alg`).
    ///
    /// ```nginx
    /// proxy_protocol on;
    /// ```
    protocol: SentHeader = "off",
    /// Whether each direction is closed on its own: when one side ends, the other may still send.
    /// With `off`, a connection is closed as soon as one side has ended and its data is delivered.
    ///
    /// ```nginx
    /// proxy_half_close on;
    /// ```
    half_close: bool = "off",
    /// How many datagrams of a client belong to one session over UDP; the next one begins another.
    /// 0 means any number.
    ///
    /// ```nginx
    /// server {
    ///     listen 127.0.0.1:5353 udp;
    ///     proxy_pass 127.0.0.1:53;
    ///     proxy_requests 1;
    ///     proxy_responses 1;
    /// }
    /// ```
    requests: Number = "0",
    /// How many datagrams the server sends for each of the client, over UDP. A session is over when
    /// all of them have come, and with `proxy_requests`, when the client has sent its number too.
    /// With 0 none is waited for. Without this directive any number may come, and the session is
    /// over after `proxy_timeout`. If fewer have come by then, the server has failed.
    ///
    /// ```nginx
    /// proxy_responses 1;
    /// ```
    responses: Number = "2147483647",
    /// Whether connections to backends are encrypted with TLS. With `proxy_protocol`, the header
    /// precedes the handshake unencrypted.
    ///
    /// ```nginx
    /// server {
    ///     listen 127.0.0.1:9000;
    ///     proxy_pass 127.0.0.1:9443;
    ///     proxy_ssl on;
    /// }
    /// ```
    ssl: bool = "off",
    /// The application protocols that backends are offered (ALPN), best first. Values that are
    /// empty for a connection are left out.
    ///
    /// Syntax: PROTOCOL...
    ///
    /// ```nginx
    /// proxy_ssl_alpn h2 http/1.1;
    /// ```
    ssl_alpn: Option<OfferedProtocols>,
}

/// A server or a group, as the line names it.
#[derive(Clone)]
pub enum PassTarget {
    Fixed(GroupHost),
    /// A template that renders to a name or address.
    Computed(Template),
}

impl Value for PassTarget {
    const ARGS: RangeInclusive<usize> = 1..=1;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let template = Template::compile(word, from, load)?;
        if template.as_fixed().is_none() {
            return Ok(Self::Computed(template));
        }
        let host = GroupHost::parse(&word.text).map_err(|why| {
            let error = from.error_at(word, format!("{why} in upstream \"{word}\""));
            error.guess(address::meant(&word.text))
        })?;
        host.declare(from, word, load);
        Ok(Self::Fixed(host))
    }
}

impl PassTarget {
    /// The named group, or the groups that variables may name.
    fn compile(&self, load: &mut Load<'_>) -> Result<SessionTarget> {
        let groups = named::all(load)?;
        Ok(match self {
            Self::Fixed(host) => {
                let group = host.find(&groups).expect("every line declares its host");
                SessionTarget::Fixed(group.clone())
            }
            Self::Computed(template) => SessionTarget::Computed(template.clone(), groups),
        })
    }
}

/// Names of application protocols.
#[derive(Clone)]
pub struct OfferedProtocols(Vec<Template>);

impl Value for OfferedProtocols {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut protocols = Vec::with_capacity(from.args.len());
        for word in &from.args {
            let template = Template::compile(word, from, load)?;
            if template.as_fixed().is_some_and(|name| name.len() > PROTOCOL_MAX) {
                return Err(from.error_at(word, "protocol too long"));
            }
            protocols.push(template);
        }
        Ok(Self(protocols))
    }
}

/// The most bytes to read at a time: the size of a lent buffer.
const PIECE_MAX: usize = net::buffers::BUFFER_SIZE;

/// nginx's value for no limit.
const RESPONSES_UNSET: u64 = i32::MAX as u64;

/// Sets the server's content handler.
pub fn install(
    conf: &Arc<Conf>,
    tls: &Arc<backend_tls::Conf>,
    place: &mut ServerBuilder<'_, '_>,
) -> Result<()> {
    let Some(target) = &conf.target else { return Ok(()) };
    let target = target.compile(place.load)?;
    let size = |size: Size| usize::try_from(size.0).ok().filter(|bytes| *bytes > 0);
    let plan = Arc::new(ProxyPlan {
        tls: secured(conf, tls, &target, place)?,
        target,
        names: place.server.names.clone(),
        bind: conf.bind.clone(),
        socket: BackendSocket {
            keepalive: conf.socket_keepalive,
            nodelay: place.server.tcp_nodelay,
            rcvbuf: size(conf.socket_rcvbuf),
            sndbuf: size(conf.socket_sndbuf),
        },
        connect_timeout_ms: conf.connect_timeout.0,
        timeout_ms: conf.timeout.0,
        buffer_size: size(conf.buffer_size).unwrap_or(PIECE_MAX).min(PIECE_MAX),
        upload_rate: conf.upload_rate.clone(),
        download_rate: conf.download_rate.clone(),
        next: NextServer {
            enabled: conf.next_upstream,
            tries_max: conf.next_upstream_tries.0,
            timeout_ms: conf.next_upstream_timeout.0,
        },
        header: conf.protocol,
        half_close: conf.half_close,
        datagrams: DatagramCounts {
            requests: conf.requests.0,
            responses: Some(conf.responses.0).filter(|count| *count < RESPONSES_UNSET),
        },
    });
    place.handed_on.of::<Option<Arc<ProxyPlan>>>().replace(plan.clone());
    place.server.datagrams_max = conf.requests.0;
    let for_datagrams = plan.clone();
    place.server.datagram_content = Some(place.hook(Box::new(move |x, flow| {
        let plan = for_datagrams.clone();
        Box::pin(async move { proxy::proxy_datagrams(&plan, x, flow).await })
    })));
    place.server.content = Some(place.hook(Box::new(move |x, stream| {
        let plan = plan.clone();
        Box::pin(async move { proxy::proxy(&plan, x, stream).await })
    })));
    Ok(())
}

/// TLS with backends; `None` for none.
fn secured(
    conf: &Conf,
    tls: &Arc<backend_tls::Conf>,
    target: &SessionTarget,
    place: &mut ServerBuilder<'_, '_>,
) -> Result<Option<SecuredBackend>> {
    if !conf.ssl {
        return Ok(None);
    }
    let tls = client::backend_tls(tls, "proxy_ssl_", place.at, place.load)?;
    let group = match target {
        SessionTarget::Fixed(group) => Some(&**group),
        SessionTarget::Computed(..) => None,
    };
    let protocols = conf.ssl_alpn.clone().map_or_else(Vec::new, |names| names.0);
    Ok(Some(SecuredBackend::new(tls, group).offering(protocols)))
}

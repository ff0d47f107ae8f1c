//! `grpc_pass`: passes requests to gRPC servers, over HTTP/2.
//!
//! Only what gRPC has of its own is here: directives, and the head of a request. Streams,
//! connections and replies are `backend`'s. As in nginx, neither direction is buffered, and fields
//! after the reply's body are always passed on: they carry the status of a call.

mod check;
mod request;
#[cfg(test)]
mod tests;
mod variables;

use net::LentFuture;
use std::ops::RangeInclusive;
use std::sync::Arc;

use ::tls::backend::SecuredBackend;
use conf::{Directive, Inherited, Load, Milliseconds, Number, Result, Size, Text, Value};
use wire::reply::ReplyName;

use crate::backend::address::{AddressSchemes, PassTo, TargetGroup};
use crate::backend::request_fields::{Compiled, SetHeader};
use crate::backend::{
    self, BackendRequestBody, Bind, BodyPolicy, Conf as Family, Connections, HeaderFilter,
    IgnoredFields, NextUpstream, PassPlan, ReplyFields, StreamSettings,
};
use crate::exchange::{Exchange, Flow, LocationBackend};
use crate::features::backend_tls;
use crate::files::TempPath;
use crate::health::Checkable;
use crate::site::LocationBuilder;
pub(crate) use variables::VARIABLES;

conf::directives! {
    also {
        /// Passes requests on to a gRPC server or to the servers of an `upstream`, over HTTP/2.
        /// Many calls share one connection. `grpcs://` is gRPC over TLS. See docs/grpc.md.
        ///
        /// Syntax: [grpc://]ADDRESS
        /// Syntax: grpcs://ADDRESS
        ///
        /// ```nginx
        /// server {
        ///     listen 50051;
        ///     http2 on;
        ///     location / {
        ///         grpc_pass 127.0.0.1:50052;
        ///     }
        /// }
        /// ```
        pass(1..=1) in LOCATION | IF_IN_LOCATION => target;
    }
    slots {
        /// The backend.
        target: Option<GrpcPass>,
    }

    in MAIN | SERVER | LOCATION;

    /// The local address for connections to servers, as `proxy_bind`.
    ///
    /// Syntax: ADDRESS [transparent]
    /// Syntax: off
    bind: Option<Bind>,
    /// Whether the kernel sends TCP keepalive probes on connections to servers.
    socket_keepalive: bool = "off",
    /// The size of the receive buffer of connections to servers. 0 means the system's default.
    socket_rcvbuf: Size = "0",
    /// The size of the send buffer of connections to servers. 0 means the system's default.
    socket_sndbuf: Size = "0",
    /// How long connecting to a server may take.
    connect_timeout: Milliseconds = "60s",
    /// The longest time between two writes of a request. It does not apply while the client sends
    /// nothing.
    send_timeout: Milliseconds = "60s",
    /// The longest time between two reads of a response. A stream on which a server is silent for
    /// longer needs a larger value.
    ///
    /// ```nginx
    /// location /chat.Chat/ {
    ///     grpc_pass 127.0.0.1:50052;
    ///     grpc_read_timeout 1h;
    /// }
    /// ```
    read_timeout: Milliseconds = "60s",
    /// The largest response header, and the largest trailers. A larger header is answered with
    /// 502; larger trailers reset the stream.
    ///
    /// ```nginx
    /// grpc_buffer_size 16k;
    /// ```
    buffer_size: Size = "4k",
    /// Whether responses with a status of 300 or above are handled by `error_page` instead of being
    /// passed on. The status is HTTP's: failed calls have the status 200.
    intercept_errors: bool = "off",
    /// When a request is sent to another server, as `proxy_next_upstream`. A request whose body
    /// has been sent in part cannot be sent again.
    ///
    /// Syntax: error | timeout | invalid_header | http_500 | http_502 | http_503 | http_504 |
    /// http_403 | http_404 | http_429 | non_idempotent | off ...
    ///
    /// ```nginx
    /// grpc_next_upstream error timeout http_503;
    /// ```
    next_upstream: NextUpstream = "error timeout",
    /// The largest number of servers that are tried for one request. 0 means no limit.
    next_upstream_tries: Number = "0",
    /// How long after its first try a request may be sent to another server. 0 means no limit.
    next_upstream_timeout: Milliseconds = "0",
    /// Sets a field of the request to the server; with an empty value the field is omitted. One
    /// such line in a block hides all lines of the enclosing blocks. `Host` is sent as
    /// `:authority`; without a value, that is the address in `grpc_pass`.
    ///
    /// Syntax: FIELD STRING
    ///
    /// ```nginx
    /// grpc_set_header Host $host;
    /// grpc_set_header X-Real-IP $remote_addr;
    /// ```
    set_header: Vec<SetHeader>,
    /// Passes on a field of the response that is hidden by default: `Date`, `Server` or
    /// `X-Accel-...`.
    ///
    /// ```nginx
    /// grpc_pass_header Server;
    /// ```
    pass_header: Vec<Text>,
    /// Does not pass on this field of the response or of its trailers.
    ///
    /// ```nginx
    /// grpc_hide_header X-Internal;
    /// ```
    hide_header: Vec<Text>,
    /// Ignores these fields of the response, as `proxy_ignore_headers`.
    ///
    /// Syntax: FIELD...
    ///
    /// ```nginx
    /// grpc_ignore_headers X-Accel-Redirect;
    /// ```
    ignore_headers: Option<IgnoredFields>,
    /// Whether calls of gRPC (`Content-Type: application/grpc`) that this server answers with an
    /// error get the error in gRPC's form: the status 200, `grpc-status` and `grpc-message`,
    /// without a body. The status of gRPC follows from that of HTTP as in gRPC's own table: 14
    /// (unavailable) for 429, 502, 503 and 504, for example. A page of `error_page` comes first.
    ///
    /// Differs: not in nginx, which answers with the status of HTTP and a page. See docs/grpc.md.
    ///
    /// ```nginx
    /// location / {
    ///     grpc_pass 127.0.0.1:50052;
    ///     grpc_errors on;
    /// }
    /// ```
    errors: bool = "off",
}

/// An address, perhaps after `grpc://` or `grpcs://`.
#[derive(Clone, Debug)]
pub struct GrpcPass(PassTo);

const SCHEMES: AddressSchemes = AddressSchemes { plain: "grpc://", tls: "grpcs://" };

impl Value for GrpcPass {
    const ARGS: RangeInclusive<usize> = 1..=1;
    const INHERITED: Inherited = Inherited::Nameless;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        PassTo::of(from.arg(0), SCHEMES, from, load).map(Self)
    }
}

/// The compiled settings of a location.
struct Grpc {
    family: Family,
    fields: Compiled,
    /// Whether the client's `TE: trailers` is passed on.
    passes_te: bool,
    filter: Arc<HeaderFilter>,
    policy: Arc<BodyPolicy>,
    target: TargetGroup,
    /// The TLS settings; `None`: connections are plain.
    tls: Option<SecuredBackend>,
}

/// The fields of replies that are hidden by default.
const REPLY_FIELDS: ReplyFields = ReplyFields {
    hidden: &[
        ReplyName::Date,
        ReplyName::Server,
        ReplyName::XAccelExpires,
        ReplyName::XAccelRedirect,
        ReplyName::XAccelLimitRate,
        ReplyName::XAccelBuffering,
        ReplyName::XAccelCharset,
    ],
    own_are_optional: false,
};

/// Has the servers answer all requests of the location.
pub fn install(
    conf: &Arc<Conf>,
    tls: &Arc<backend_tls::Conf>,
    place: &mut LocationBuilder<'_, '_>,
) -> Result<()> {
    place.core.error_pages.of_grpc = conf.errors;
    let Some(GrpcPass(pass)) = &conf.target else { return Ok(()) };
    let family = conf.family(place.load);
    let filter = Arc::new(HeaderFilter::new(&family, &REPLY_FIELDS));
    let target = pass.compile(place.load)?;
    let tls = match pass.is_never_tls() {
        true => None,
        false => {
            let tls = backend_tls::compile(tls, "grpc_ssl_", place)?;
            Some(SecuredBackend::new(tls, target.fixed().map(|group| &**group)))
        }
    };
    let grpc = Arc::new(Grpc {
        fields: Compiled::new(&conf.set_header),
        passes_te: !conf.set_header.iter().any(|one| one.is_named(b"TE")),
        policy: Arc::new(BodyPolicy::new(&family, &TempPath::none(), Some(filter.clone()))),
        filter,
        target,
        tls,
        family,
    });
    place.handed_on.of::<Option<Arc<dyn Checkable>>>().replace(grpc.clone());
    place.backend("grpc_pass", grpc);
    Ok(())
}

impl Conf {
    /// The settings common to all families of backends, without buffers.
    fn family(&self, load: &mut Load<'_>) -> Family {
        let connections = Connections {
            bind: self.bind.clone(),
            socket_keepalive: self.socket_keepalive,
            connect_timeout: self.connect_timeout,
            send_timeout: self.send_timeout,
            read_timeout: self.read_timeout,
            buffer_size: self.buffer_size,
            next_upstream: self.next_upstream,
            next_upstream_tries: self.next_upstream_tries,
            next_upstream_timeout: self.next_upstream_timeout,
        };
        let streams = StreamSettings {
            socket_rcvbuf: self.socket_rcvbuf,
            socket_sndbuf: self.socket_sndbuf,
            intercept_errors: self.intercept_errors,
            pass_header: self.pass_header.clone(),
            hide_header: self.hide_header.clone(),
            ignore_headers: self.ignore_headers,
        };
        Family::of_streams(connections, streams, load)
    }
}

impl LocationBackend for Grpc {
    fn answer<'x>(&'x self, x: &'x mut Exchange) -> LentFuture<'x, Flow> {
        LentFuture::new(self.pass(x))
    }
}

impl Grpc {
    async fn pass(&self, x: &mut Exchange) -> Flow {
        self.family.decide_client_abort(x);
        x.backends.begin_unnamed_request(SCHEMES.plain);
        let target = match self.target.evaluate(x, SCHEMES) {
            Ok(target) => target,
            Err(flow) => return flow,
        };
        let body = match BackendRequestBody::of_client(x, &self.family, true).await {
            Ok(body) => body,
            Err(flow) => return flow,
        };
        let mut head = std::mem::take(&mut x.backends.request);
        head.clear();
        let length = x.request.body.length_left();
        let Some(request) = self.write_head(x, &target, length, &mut head) else {
            return Flow::Status(500);
        };
        let is_tls = target.is_tls;
        let group = match target.group(x).await {
            Ok(group) => group,
            Err(flow) => return flow,
        };
        let mut plan = PassPlan {
            conf: &self.family,
            filter: &self.filter,
            policy: &self.policy,
            rewriter: &(),
            group: &group,
            tls: self.tls.as_ref().filter(|_| is_tls).map(|tls| tls.connections(&group, x)),
            head,
            body,
            cache: None,
            start: request,
        };
        backend::pass(x, &mut plan).await
    }
}

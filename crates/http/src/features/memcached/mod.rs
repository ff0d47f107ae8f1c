//! `memcached_pass`: answers with values of a memcached server.

#[cfg(test)]
mod tests;

use net::LentFuture;
use std::ops::RangeInclusive;
use std::sync::Arc;

use ::upstream::Group;
use conf::{
    Directive, Inherited, Load, Milliseconds, Number, Result, Size, Template, Value, add_words,
};
use observe::Level;
use wire::Method;

use crate::backend::address::{AddressSchemes, PassTo, TargetGroup};
use crate::backend::check::CheckRequest;
use crate::backend::protocol::Start;
use crate::backend::protocol::memcached::MemcachedRequest;
use crate::backend::{
    self, BackendRequestBody, Bind, BodyPolicy, Conf as Family, Connections, HeaderFilter,
    NextUpstream, PassPlan, ReplyFields,
};
use crate::exchange::{Exchange, Flow, LocationBackend};
use crate::files::TempPath;
use crate::health::Checkable;
use crate::site::LocationBuilder;

conf::directives! {
    also {
        /// Answers with the value that a memcached server has for the key `$memcached_key`, which
        /// the configuration sets. A key that is not there is answered with 404, so that
        /// `error_page` can pass the request on.
        ///
        /// Syntax: ADDRESS
        ///
        /// ```nginx
        /// location / {
        ///     set $memcached_key $uri?$args;
        ///     memcached_pass 127.0.0.1:11211;
        ///     error_page 404 502 504 = @fallback;
        /// }
        /// location @fallback {
        ///     proxy_pass http://127.0.0.1:3000;
        /// }
        /// ```
        pass(1..=1) in LOCATION | IF_IN_LOCATION => target;
    }
    slots {
        /// The server.
        target: Option<MemcachedLine>,
    }

    in MAIN | SERVER | LOCATION;

    /// The local address that connections are made from, as `proxy_bind`.
    ///
    /// Syntax: ADDRESS [transparent]
    /// Syntax: off
    bind: Option<Bind>,
    /// Whether the kernel sends TCP keepalive probes on connections.
    socket_keepalive: bool = "off",
    /// How long a connection may take to be made.
    connect_timeout: Milliseconds = "60s",
    /// The longest time between two writes of a request.
    send_timeout: Milliseconds = "60s",
    /// The longest first line of an answer, and how much of a value is read at once.
    buffer_size: Size = "4k",
    /// The longest time between two reads of an answer.
    read_timeout: Milliseconds = "60s",
    /// When another server is asked: after an error, a timeout, an answer that is none, or where
    /// the key is not there.
    ///
    /// Syntax: error | timeout | invalid_response | not_found | off ...
    ///
    /// ```nginx
    /// memcached_next_upstream error timeout not_found;
    /// ```
    next_upstream: Reasons = "error timeout",
    /// The largest number of servers that are tried for one request. 0 is no limit.
    next_upstream_tries: Number = "0",
    /// How long after its first try a request may be sent to another server. 0 is no limit.
    next_upstream_timeout: Milliseconds = "0",
    /// The bit of a value's flags that says that it is compressed by gzip. It is passed on with
    /// `Content-Encoding: gzip` then, which `gunzip` can undo.
    ///
    /// ```nginx
    /// memcached_gzip_flag 2;
    /// ```
    gzip_flag: Number = "0",
}

/// A server, and the variable with the key.
#[derive(Clone)]
pub struct MemcachedLine {
    to: PassTo,
    key: Template,
}

impl Value for MemcachedLine {
    const ARGS: RangeInclusive<usize> = 1..=1;
    const INHERITED: Inherited = Inherited::Nameless;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let key = load.names.number(b"memcached_key", Some(from.words()));
        Ok(Self { to: PassTo::parse(from, load)?, key: Template::variable(key) })
    }
}

/// When another server is tried.
#[derive(Clone, Copy)]
pub struct Reasons(u16);

const REASONS: [(&str, u16); 5] = [
    ("error", NextUpstream::ERROR),
    ("timeout", NextUpstream::TIMEOUT),
    ("invalid_response", NextUpstream::INVALID_HEADER),
    ("not_found", NextUpstream::NOT_FOUND),
    ("off", NextUpstream::OFF),
];

impl Value for Reasons {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut reasons = Self(0);
        reasons.repeat(from, load)?;
        Ok(reasons)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        add_words(&mut self.0, from, &REASONS, load)
    }
}

/// The compiled settings of a location.
struct MemcachedPass {
    family: Family,
    filter: HeaderFilter,
    policy: Arc<BodyPolicy>,
    target: TargetGroup,
    key: Template,
    gzip_flag: u64,
}

/// Installs the backend of a location that has a server.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let Some(pass) = &conf.target else { return Ok(()) };
    let family = Family::of_connections(conf.connections(), location.load);
    let fields = ReplyFields { hidden: &[], own_are_optional: false };
    let cache = Arc::new(MemcachedPass {
        filter: HeaderFilter::new(&family, &fields),
        policy: Arc::new(BodyPolicy::new(&family, &TempPath::none(), None)),
        target: pass.to.compile(location.load)?,
        key: pass.key.clone(),
        gzip_flag: conf.gzip_flag.0,
        family,
    });
    location.handed_on.of::<Option<Arc<dyn Checkable>>>().replace(cache.clone());
    location.backend("memcached_pass", cache);
    Ok(())
}

impl Conf {
    fn connections(&self) -> Connections {
        Connections {
            bind: self.bind.clone(),
            socket_keepalive: self.socket_keepalive,
            connect_timeout: self.connect_timeout,
            send_timeout: self.send_timeout,
            read_timeout: self.read_timeout,
            buffer_size: self.buffer_size,
            next_upstream: NextUpstream::of(self.next_upstream.0),
            next_upstream_tries: self.next_upstream_tries,
            next_upstream_timeout: self.next_upstream_timeout,
        }
    }
}

impl LocationBackend for MemcachedPass {
    fn answer<'x>(&'x self, x: &'x mut Exchange) -> LentFuture<'x, Flow> {
        LentFuture::new(self.pass(x))
    }
}

impl MemcachedPass {
    async fn pass(&self, x: &mut Exchange) -> Flow {
        if !matches!(x.request.head.method, Method::Get | Method::Head) {
            return Flow::Status(405);
        }
        if let Some(refused) = x.discard_body() {
            return refused;
        }
        x.backends.begin_unnamed_request(MemcachedRequest::SCHEMA);
        let group = match self.target.evaluate(x, AddressSchemes::default()) {
            Ok(target) => target.group(x).await,
            Err(flow) => Err(flow),
        };
        let group = match group {
            Ok(group) => group,
            Err(flow) => return flow,
        };
        let mut head = std::mem::take(&mut x.backends.request);
        head.clear();
        let Some(request) = self.ask(x, &mut head) else { return Flow::Status(500) };
        x.set_content_type_of_uri();
        let mut plan = PassPlan {
            conf: &self.family,
            filter: &self.filter,
            policy: &self.policy,
            rewriter: &(),
            group: &group,
            tls: None,
            head,
            body: BackendRequestBody::None,
            cache: None,
            start: request,
        };
        match backend::pass(x, &mut plan).await {
            // A missing value is an error that `error_page` may handle.
            Flow::Done if x.reply.status == 404 => Flow::Status(404),
            flow => flow,
        }
    }

    /// Writes the request. `None`, after logging why, if the key is empty.
    fn ask(&self, x: &mut Exchange, out: &mut Vec<u8>) -> Option<MemcachedRequest> {
        let key = x.render(&self.key);
        if key.is_empty() {
            x.log(Level::Error, format_args!("the \"$memcached_key\" variable is not set"));
            return None;
        }
        let key = wire::memcached::get(&key, out).of(out).into();
        let to_head = x.request.head.method == Method::Head;
        Some(MemcachedRequest { key, to_head, gzip_flag: self.gzip_flag })
    }
}

impl Checkable for MemcachedPass {
    fn group(&self) -> Option<&Arc<Group>> {
        self.target.fixed()
    }

    fn family(&self) -> &Family {
        &self.family
    }

    fn request(&self, x: &mut Exchange, _uri: &Arc<[u8]>) -> Option<CheckRequest> {
        x.backends.begin_unnamed_request(MemcachedRequest::SCHEMA);
        let mut head = Vec::new();
        let request = self.ask(x, &mut head)?;
        Some(CheckRequest::new(head, BackendRequestBody::None, request))
    }
}

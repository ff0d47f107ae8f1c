//! `proxy_pass`: passes requests on to HTTP servers.
//!
//! `crate::backend` has the parts that all families of backends share. This module has those of
//! HTTP: the request's line and fields, and the fields of a reply that contain the backend's own
//! addresses.

mod cache;
mod check;
mod cookie;
mod pass;
mod redirect;
mod request;
mod rules;
#[cfg(test)]
mod tests;
mod variables;
mod version;

use net::LentFuture;
use std::sync::Arc;

use ::tls::backend::SecuredBackend;
use ::upstream::named::ByName;
use conf::{Bounded, Error, Result, Size, Template};

use crate::backend::Conf as Family;
use crate::backend::cache::{self as caching, CacheAttempt, ReplyRules};
use crate::backend::protocol::http1;
use crate::backend::request_fields::{Compiled, SetHeader};
use crate::backend::{
    self, BackendRequestBody, BodyPolicy, HeaderFilter, PassPlan, ReplyFields, ReplyRewriter,
    StreamRequest,
};
use crate::exchange::{Exchange, Flow, LocationBackend};
use crate::features::backend_tls;
use crate::files::TempPath;
use crate::health::Checkable;
use crate::site::LocationBuilder;
use cache::ProxyCache;
use cookie::{CookieFlags, Cookies, Domain, Path};
use pass::{ComputedTarget, ProxyBackend, ProxyPass, ProxyTarget};
use redirect::{RedirectRule, Redirects};
use rules::RuleLines;
pub(crate) use variables::VARIABLES;
use version::ProxyHttpVersion;
use wire::Slice;
use wire::reply::ReplyName;

conf::directives! {
    also {
        /// Passes requests on to an HTTP server or to the servers of an `upstream`. A URL with a
        /// path replaces the part of the request's path that the location matched; without a path,
        /// the request's path is passed on unchanged. With variables, the URL is used as evaluated.
        ///
        /// Syntax: URL
        /// Differs: a host that cannot be resolved at start is a warning (see
        /// `upstream_host_not_found`).
        ///
        /// ```nginx
        /// location /api/ {
        ///     proxy_pass http://127.0.0.1:3000/;
        ///     proxy_set_header Host $host;
        ///     proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        /// }
        /// ```
        pass(1..=1) in LOCATION | IF_IN_LOCATION | LIMIT_EXCEPT => target;
    }
    slots {
        /// The backend.
        target: Option<ProxyPass>,
    }

    in MAIN | SERVER | LOCATION;

    /// Sets a field of the request to the backend; with an empty value the field is omitted. One
    /// such line in a block hides all lines of the enclosing blocks.
    ///
    /// Syntax: FIELD STRING
    /// Default: Host $proxy_host
    ///
    /// ```nginx
    /// proxy_set_header Host $host;
    /// proxy_set_header X-Real-IP $remote_addr;
    /// proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    /// proxy_set_header X-Forwarded-Proto $scheme;
    /// ```
    set_header: Vec<SetHeader>,
    /// Sends this instead of the client's request body.
    set_body: Option<Template>,
    /// Sends requests with this method instead of the client's.
    ///
    /// ```nginx
    /// proxy_method GET;
    /// ```
    method: Option<Template>,
    /// Changes the beginning of the URL in the response's `Location` and `Refresh`. `default`
    /// replaces the URL of `proxy_pass` by the location's path; `off` changes nothing.
    ///
    /// Syntax: default
    /// Syntax: off
    /// Syntax: FROM TO
    /// Default: default
    /// Differs: each `proxy_pass` implies its own `default`, even inside a location with another
    /// one.
    ///
    /// ```nginx
    /// proxy_redirect http://backend.internal:8080/ /;
    /// ```
    redirect: Option<RuleLines<RedirectRule>>,
    /// Changes the attribute `domain` of cookies in responses.
    ///
    /// Syntax: FROM TO
    /// Syntax: off
    ///
    /// ```nginx
    /// proxy_cookie_domain backend.internal example.com;
    /// ```
    cookie_domain: Option<RuleLines<Domain>>,
    /// Changes the attribute `path` of cookies in responses.
    ///
    /// Syntax: FROM TO
    /// Syntax: off
    ///
    /// ```nginx
    /// proxy_cookie_path /app/ /;
    /// ```
    cookie_path: Option<RuleLines<Path>>,
    /// Adds attributes to cookies of this name, or removes them: `secure`, `httponly`,
    /// `samesite=strict|lax|none`, `nosecure`, `nohttponly`, `nosamesite`. A name that begins with
    /// `~` is a regular expression.
    ///
    /// Syntax: COOKIE FLAG...
    /// Syntax: off
    ///
    /// ```nginx
    /// proxy_cookie_flags ~ secure samesite=lax;
    /// ```
    cookie_flags: Option<RuleLines<CookieFlags>>,
    /// The version of HTTP spoken with backends.
    ///
    /// With `2`, many requests at once travel on one connection to a backend, as streams. Over
    /// TLS, `h2` is offered by ALPN; without, the backend must expect HTTP/2 from the first byte.
    ///
    /// ```nginx
    /// proxy_http_version 2;
    /// ```
    http_version: ProxyHttpVersion = "1.1",
    /// Whether fields after the response body are passed on to the client.
    ///
    /// **Differs from nginx:** fields after the body of a client's HTTP/2 request are passed on to
    /// a server of `proxy_http_version 2`, except those that belong into a header, such as
    /// `Authorization`; nginx drops all.
    pass_trailers: bool = "off",
    /// The directory of temporary files for responses, and how many characters the names of its
    /// subdirectories have. The default is in the installation's directory for temporary files or,
    /// if the user is not root, in a directory of the user.
    ///
    /// Syntax: DIRECTORY [LEVEL1 [LEVEL2 [LEVEL3]]]
    ///
    /// ```nginx
    /// proxy_temp_path /var/lib/weir/proxy 1 2;
    /// ```
    temp_path: TempPath = "proxy_temp 1 2",
    /// No effect on Linux, as in nginx.
    send_lowat: Size = "0",
    /// The largest size of nginx's table of header fields.
    ///
    /// Differs: no effect; no table is built.
    headers_hash_max_size: Bounded<1, { u32::MAX as u64 }> = "512",
    /// The size of a bucket in nginx's table of header fields.
    ///
    /// Differs: no effect; no table is built.
    headers_hash_bucket_size: Bounded<1, { u32::MAX as u64 }> = "64",
    /// Whether a HEAD request is sent to the backend as GET, so that the response can be cached.
    /// With `off`, the key should contain `$request_method`.
    ///
    /// ```nginx
    /// proxy_cache_convert_head off;
    /// proxy_cache_key $scheme$request_method$proxy_host$request_uri;
    /// ```
    cache_convert_head: bool = "on",
}

/// A location's backend.
struct Proxy {
    family: Arc<Family>,
    conf: Arc<Conf>,
    fields: Compiled,
    cache: Option<ProxyCache>,
    filter: Arc<HeaderFilter>,
    policy: Arc<BodyPolicy>,
    redirects: Redirects,
    cookies: Option<Cookies>,
    backend: ProxyBackend,
    /// The TLS settings; `None`: connections are plain.
    tls: Option<SecuredBackend>,
    location: Box<[u8]>,
}

/// The fields of replies that are hidden by default.
const REPLY_FIELDS: ReplyFields = ReplyFields {
    hidden: &[
        ReplyName::Date,
        ReplyName::Server,
        ReplyName::XPad,
        ReplyName::XAccelExpires,
        ReplyName::XAccelRedirect,
        ReplyName::XAccelLimitRate,
        ReplyName::XAccelBuffering,
        ReplyName::XAccelCharset,
    ],
    own_are_optional: true,
};

/// Has the backend answer all requests of the location.
pub fn install(
    conf: &Arc<Conf>,
    family: &Arc<Family>,
    tls: &Arc<backend_tls::Conf>,
    caching: &Arc<caching::Conf>,
    place: &mut LocationBuilder<'_, '_>,
) -> Result<()> {
    family.check("proxy_").map_err(|message| Error::at(place.at, message))?;
    let Some(pass) = &conf.target else { return Ok(()) };
    conf.temp_path.need(place.load);
    let tags = caching.hidden_fields(place.load);
    let filter = Arc::new(HeaderFilter::new(family, &REPLY_FIELDS).hiding(tags, family));
    let trailers = conf.pass_trailers.then(|| filter.clone());
    let backend = ProxyBackend::compile(pass, place.load)?;
    let tls = match backend.is_never_tls() {
        true => None,
        false => {
            let tls = backend_tls::compile(tls, "proxy_ssl_", place)?;
            Some(SecuredBackend::new(tls, backend.fixed_group().map(|group| &**group)))
        }
    };
    let converts_head = conf.cache_convert_head;
    let cache = ProxyCache::compile(caching, family, converts_head, &conf.set_header, place)?;
    let proxy = Arc::new(Proxy {
        cache,
        fields: Compiled::new(&conf.set_header),
        policy: Arc::new(BodyPolicy::new(family, &conf.temp_path, trailers)),
        filter,
        redirects: Redirects::new(conf.redirect.as_ref(), pass, &place.name),
        cookies: Cookies::new(
            conf.cookie_domain.as_ref(),
            conf.cookie_path.as_ref(),
            conf.cookie_flags.as_ref(),
        ),
        backend,
        tls,
        location: place.name.clone(),
        conf: conf.clone(),
        family: family.clone(),
    });
    place.handed_on.of::<Option<Arc<dyn Checkable>>>().replace(proxy.clone());
    place.backend("proxy_pass", proxy);
    Ok(())
}

impl LocationBackend for Proxy {
    fn answer<'x>(&'x self, x: &'x mut Exchange) -> LentFuture<'x, Flow> {
        LentFuture::new(self.pass(x))
    }
}

/// The properties of the same request as a stream of HTTP/2.
fn by_stream(request: &http1::Http1Start, is_secured: bool) -> StreamRequest {
    StreamRequest { to_head: request.to_head, is_secured, trailers_max: request.trailers_max }
}

impl Proxy {
    async fn pass(&self, x: &mut Exchange) -> Flow {
        self.family.decide_client_abort(x);
        x.backends.begin_request();
        let computed;
        let (target, body) = match &self.backend {
            ProxyBackend::Fixed(target) => {
                x.backends.request_to.name(&target.host, &target.port);
                let can_stream = self.can_stream_body(x);
                match BackendRequestBody::of_client(x, &self.family, can_stream).await {
                    Ok(body) => (target, body),
                    Err(flow) => return flow,
                }
            }
            // Boxed, as HTTP/2 is: most requests do not need that much memory.
            ProxyBackend::Computed(template, groups) => {
                match Box::pin(self.compute(x, template, groups)).await {
                    Ok((target, body)) => {
                        computed = target;
                        (&*computed, body)
                    }
                    Err(flow) => return flow,
                }
            }
        };
        let cache = match &self.cache {
            None => None,
            Some(cache) => {
                let Self { family, filter, .. } = self;
                let rules = ReplyRules { conf: family, filter, rewriter: self };
                let key = |x: &mut Exchange, out: &mut Vec<u8>| self.write_key(x, target, out);
                match Box::pin(cache.look_up(x, rules, key)).await {
                    Ok(cache) => cache,
                    Err(flow) => return flow,
                }
            }
        };
        if self.conf.http_version == ProxyHttpVersion::Http2 {
            return Box::pin(self.pass_by_stream(x, target, body, cache)).await;
        }
        let plan = self.plan(x, target, body, cache, |start, _| start);
        let Some(mut plan) = plan else { return Flow::Status(500) };
        backend::pass(x, &mut plan).await
    }

    /// Evaluates the server's variables, and reads the client's body. As in nginx, the variables
    /// are evaluated before the body is read, and the name is resolved afterwards.
    async fn compute(
        &self,
        x: &mut Exchange,
        template: &Template,
        groups: &ByName,
    ) -> std::result::Result<(Box<ProxyTarget>, BackendRequestBody), Flow> {
        let url = x.render(template);
        let computed = pass::evaluate(&url, groups, x).ok_or(Flow::Status(500))?;
        let (host, port) = computed.host_field();
        x.backends.request_to.name(&host, &port);
        let can_stream = self.can_stream_body(x);
        let body = BackendRequestBody::of_client(x, &self.family, can_stream).await?;
        let target = match computed {
            ComputedTarget::Target(target) => target,
            ComputedTarget::Unresolved(unresolved) => unresolved.resolve(x).await?,
        };
        Ok((Box::new(target), body))
    }

    async fn pass_by_stream(
        &self,
        x: &mut Exchange,
        target: &ProxyTarget,
        body: BackendRequestBody,
        cache: Option<Box<CacheAttempt>>,
    ) -> Flow {
        let plan = self.plan(x, target, body, cache, |start, is_tls| by_stream(&start, is_tls));
        let Some(mut plan) = plan else { return Flow::Status(500) };
        backend::pass(x, &mut plan).await
    }

    /// The plan of a request; `None`, with a line in the log: the request would be invalid.
    fn plan<'a, S>(
        &'a self,
        x: &mut Exchange,
        target: &'a ProxyTarget,
        body: BackendRequestBody,
        cache: Option<Box<CacheAttempt>>,
        start: impl FnOnce(http1::Http1Start, bool) -> S,
    ) -> Option<PassPlan<'a, S>> {
        let body = self.made_body(x).unwrap_or(body);
        let mut head = std::mem::take(&mut x.backends.request);
        head.clear();
        let begun = self.write_head(x, target, &body, cache.as_deref(), &mut head)?;
        let tls = self.tls.as_ref().filter(|_| target.is_tls);
        let tls = tls.map(|tls| tls.connections(&target.group, x));
        Some(PassPlan {
            conf: &self.family,
            filter: &self.filter,
            policy: &self.policy,
            rewriter: self,
            group: &target.group,
            tls,
            head,
            body,
            cache,
            start: start(begun, target.is_tls),
        })
    }

    /// Whether protocol and configuration allow streaming the body.
    fn can_stream_body(&self, x: &Exchange) -> bool {
        let needs_length = self.conf.http_version == ProxyHttpVersion::Http10;
        self.conf.set_body.is_none() && (!needs_length || x.request.body.length().is_some())
    }

    /// The body that replaces the client's.
    fn made_body(&self, x: &mut Exchange) -> Option<BackendRequestBody> {
        let template = self.conf.set_body.as_ref()?;
        Some(BackendRequestBody::made(x.render(template)))
    }
}

impl ReplyRewriter for Proxy {
    fn location(&self, x: &mut Exchange, value: Slice) -> Option<Vec<u8>> {
        if self.redirects.is_empty() {
            return None;
        }
        with_value(x, value, |x, value| self.redirects.rewritten(x, value, 0))
    }

    fn refresh(&self, x: &mut Exchange, value: Slice) -> Option<Vec<u8>> {
        if self.redirects.is_empty() {
            return None;
        }
        with_value(x, value, |x, value| {
            self.redirects.rewritten(x, value, redirect::url_in(value)?)
        })
    }

    fn cookie(&self, x: &mut Exchange, value: Slice) -> Option<Vec<u8>> {
        let cookies = self.cookies.as_ref()?;
        with_value(x, value, |x, value| cookies.rewritten(x, value))
    }
}

/// Copies the value, because the replacement may depend on all fields of the reply.
fn with_value(
    x: &mut Exchange,
    value: Slice,
    rewrite: impl FnOnce(&mut Exchange, &[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut text = x.scratch();
    text.extend_from_slice(value.of(&x.backends.head_text));
    let rewritten = rewrite(x, &text);
    x.give_scratch(text);
    rewritten
}

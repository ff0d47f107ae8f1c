//! Passing requests to an application with FastCGI, SCGI or uwsgi: a request is a list of variables
//! and a body.
//!
//! The encoding is a protocol's own ([`Dialect`]); `backend` handles servers, replies and limits.
//! Deliberately absent: directives, which the features declare.

pub(crate) mod params;

use net::LentFuture;
use std::sync::Arc;

use ::tls::backend::SecuredBackend;
use ::tls::client::BackendTls;
use ::upstream::Group;
use conf::{Directive, Error, Load, Result, Value};
use wire::Method;
use wire::reply::ReplyName;

use crate::backend::address::{AddressSchemes, PassTo, TargetGroup};
use crate::backend::cache::{
    self, CacheAttempt, CacheLookup, CacheTerms, LocationCache, ReplyRules,
};
use crate::backend::check::CheckRequest;
use crate::backend::protocol::Start;
use crate::backend::protocol::stored::StoredForm;
use crate::backend::{
    self, BackendRequestBody, BodyPolicy, Conf as Family, HeaderFilter, PassPlan, ReplyFields,
};
use crate::exchange::{Exchange, Flow, LocationBackend};
use crate::files::TempPath;
use crate::health::Checkable;
use crate::site::LocationBuilder;
use params::{Param, Params};

/// One of the protocols, with a location's settings.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// The protocol's state of a request.
    type Request: Start;

    /// The prefix of the family's directives: `fastcgi_`.
    const FAMILY: &'static str;
    /// How a cache stores heads of replies.
    const FORM: &'static StoredForm;
    /// The schemes that may precede an address with variables.
    const SCHEMES: AddressSchemes = AddressSchemes { plain: "", tls: "" };
    /// Whether a body of unknown length can be streamed.
    const STREAMS_WITHOUT_LENGTH: bool = false;
    /// Fields of replies that are only passed on by the configuration.
    const HIDDEN: &'static [ReplyName] = &[
        ReplyName::Status,
        ReplyName::XAccelExpires,
        ReplyName::XAccelRedirect,
        ReplyName::XAccelLimitRate,
        ReplyName::XAccelBuffering,
        ReplyName::XAccelCharset,
    ];

    /// Writes the bytes before the body. `None`, after logging why, if that is impossible.
    fn write_head(&self, x: &mut Exchange, params: &Params, out: &mut Vec<u8>) -> Option<()>;

    /// The protocol's state of a request; `to_head` for a HEAD request.
    fn request(&self, to_head: bool) -> Self::Request;
}

/// The settings of a location, for any of the protocols.
pub(crate) struct GatewaySettings<'a> {
    pub(crate) family: &'a Arc<Family>,
    pub(crate) caching: &'a Arc<cache::Conf>,
    /// TLS with backends; `None` for none.
    pub(crate) tls: Option<Arc<BackendTls>>,
    pub(crate) pass: Option<&'a PassTo>,
    pub(crate) params: &'a [Param],
    pub(crate) temp_path: &'a TempPath,
}

/// A location's connection to its application.
struct Gateway<D> {
    dialect: D,
    family: Arc<Family>,
    tls: Option<SecuredBackend>,
    filter: HeaderFilter,
    policy: Arc<BodyPolicy>,
    params: Params,
    cache: Option<GatewayCache>,
    target: TargetGroup,
}

/// Installs the backend of a location that has an application.
pub(crate) fn install<D: Dialect>(
    settings: &GatewaySettings<'_>,
    location: &mut LocationBuilder<'_, '_>,
    dialect: impl FnOnce() -> D,
) -> Result<()> {
    let family = settings.family;
    family.check(D::FAMILY).map_err(|message| Error::at(location.at, message))?;
    let Some(pass) = settings.pass else { return Ok(()) };
    settings.temp_path.need(location.load);
    let cache = GatewayCache::compile::<D>(settings, location)?;
    let gateway = Arc::new(Gateway::new(dialect(), pass, cache, settings, location.load)?);
    location.handed_on.of::<Option<Arc<dyn Checkable>>>().replace(gateway.clone());
    location.backend(&format!("{}pass", D::FAMILY), gateway);
    Ok(())
}

/// The cache of a location.
struct GatewayCache {
    cache: Arc<LocationCache>,
    /// The variables of requests whose replies are stored.
    params: Params,
}

/// Variables of requests whose replies are stored, which ask for the whole reply. A line of the
/// configuration replaces its own.
const CACHED: [&str; 6] = [
    "HTTP_IF_MODIFIED_SINCE $upstream_cache_last_modified if_not_empty",
    "HTTP_IF_UNMODIFIED_SINCE \"\"",
    "HTTP_IF_NONE_MATCH $upstream_cache_etag if_not_empty",
    "HTTP_IF_MATCH \"\"",
    "HTTP_RANGE \"\"",
    "HTTP_IF_RANGE \"\"",
];

impl GatewayCache {
    fn compile<D: Dialect>(
        settings: &GatewaySettings<'_>,
        location: &mut LocationBuilder<'_, '_>,
    ) -> Result<Option<Self>> {
        let (family, caching, prefix) = (settings.family, settings.caching, D::FAMILY);
        let terms = CacheTerms { form: D::FORM, converts_head: false };
        let cache = LocationCache::compile(caching, family, prefix, terms, location)?;
        let Some(cache) = cache else { return Ok(None) };
        if !caching.has_key() {
            let message = format!("no \"{prefix}cache_key\" for \"{prefix}cache\"");
            location.load.warn(Error::at(location.at, message));
        }
        let mut params = settings.params.to_vec();
        for text in CACHED {
            let line = Directive::sample("param", text);
            let param = Param::parse(&line, location.load)?;
            if !params.iter().any(|own| own.is_named_like(&param)) {
                params.push(param);
            }
        }
        let params = Params::new(&params, family.passes_fields());
        Ok(Some(Self { cache, params }))
    }

    /// Looks a request up; `Err`: how it goes on without the backend.
    async fn look_up<D: Dialect>(
        &self,
        gateway: &Gateway<D>,
        x: &mut Exchange,
    ) -> std::result::Result<Option<Box<CacheAttempt>>, Flow> {
        let Gateway { family, filter, .. } = gateway;
        let rules = ReplyRules { conf: family, filter, rewriter: &() };
        // Without a key, all requests have the same, as in nginx.
        match self.cache.look_up(x, rules, |_, _| {}).await {
            CacheLookup::Answered(flow) => Err(flow),
            CacheLookup::Ask(attempt) => Ok(attempt),
        }
    }
}

impl<D: Dialect> LocationBackend for Gateway<D> {
    fn answer<'x>(&'x self, x: &'x mut Exchange) -> LentFuture<'x, Flow> {
        LentFuture::new(self.pass(x))
    }
}

impl<D: Dialect> Gateway<D> {
    fn new(
        dialect: D,
        pass: &PassTo,
        cache: Option<GatewayCache>,
        settings: &GatewaySettings<'_>,
        load: &mut Load<'_>,
    ) -> Result<Self> {
        let family = settings.family;
        let fields = ReplyFields { hidden: D::HIDDEN, own_are_optional: false };
        let target = pass.compile(load)?;
        let tls = settings
            .tls
            .as_ref()
            .map(|tls| SecuredBackend::new(tls.clone(), target.fixed().map(|group| &**group)));
        Ok(Self {
            dialect,
            filter: HeaderFilter::new(family, &fields)
                .hiding(settings.caching.hidden_fields(load), family),
            policy: Arc::new(BodyPolicy::new(family, settings.temp_path, None)),
            params: Params::new(settings.params, family.passes_fields()),
            cache,
            target,
            family: family.clone(),
            tls,
        })
    }

    async fn pass(&self, x: &mut Exchange) -> Flow {
        self.family.decide_client_abort(x);
        x.backends.begin_unnamed_request(D::Request::SCHEMA);
        let target = match self.target.evaluate(x, D::SCHEMES) {
            Ok(target) => target,
            Err(flow) => return flow,
        };
        let can_stream = D::STREAMS_WITHOUT_LENGTH || x.request.body.length().is_some();
        let body = match BackendRequestBody::of_client(x, &self.family, can_stream).await {
            Ok(body) => body,
            Err(flow) => return flow,
        };
        let is_tls = target.is_tls;
        let group = match target.group(x).await {
            Ok(group) => group,
            Err(flow) => return flow,
        };
        let cache = match &self.cache {
            None => None,
            Some(cache) => match Box::pin(cache.look_up(self, x)).await {
                Ok(cache) => cache,
                Err(flow) => return flow,
            },
        };
        let params = match (&self.cache, &cache) {
            (Some(own), Some(attempt)) if attempt.is_cacheable() => &own.params,
            _ => &self.params,
        };
        let mut head = std::mem::take(&mut x.backends.request);
        head.clear();
        if self.dialect.write_head(x, params, &mut head).is_none() {
            return Flow::Status(500);
        }
        let mut plan = PassPlan {
            conf: &self.family,
            filter: &self.filter,
            policy: &self.policy,
            rewriter: &(),
            group: &group,
            tls: self.tls.as_ref().filter(|_| is_tls).map(|tls| tls.connections(&group, x)),
            head,
            body,
            cache,
            start: self.start(x),
        };
        backend::pass(x, &mut plan).await
    }

    fn start(&self, x: &Exchange) -> D::Request {
        self.dialect.request(x.request.head.method == Method::Head)
    }
}

impl<D: Dialect> Checkable for Gateway<D> {
    fn group(&self) -> Option<&Arc<Group>> {
        self.target.fixed()
    }

    fn family(&self) -> &Family {
        &self.family
    }

    fn tls(&self) -> Option<&SecuredBackend> {
        self.tls.as_ref()
    }

    fn request(&self, x: &mut Exchange, _uri: &Arc<[u8]>) -> Option<CheckRequest> {
        x.backends.begin_unnamed_request(D::Request::SCHEMA);
        let mut head = Vec::new();
        self.dialect.write_head(x, &self.params, &mut head)?;
        Some(CheckRequest::new(head, BackendRequestBody::None, self.start(x)))
    }
}

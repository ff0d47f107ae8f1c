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
use conf::{Error, Load, Result};
use wire::Method;
use wire::reply::ReplyName;

use crate::backend::address::{AddressSchemes, PassTo, TargetGroup};
use crate::backend::check::CheckRequest;
use crate::backend::protocol::Start;
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
    let gateway = Arc::new(Gateway::new(dialect(), pass, settings, location.load)?);
    location.handed_on.of::<Option<Arc<dyn Checkable>>>().replace(gateway.clone());
    location.backend(&format!("{}pass", D::FAMILY), gateway);
    Ok(())
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
            filter: HeaderFilter::new(family, &fields),
            policy: Arc::new(BodyPolicy::new(family, settings.temp_path, None)),
            params: Params::new(settings.params, family.passes_fields()),
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
        let mut head = std::mem::take(&mut x.backends.request);
        head.clear();
        if self.dialect.write_head(x, &self.params, &mut head).is_none() {
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

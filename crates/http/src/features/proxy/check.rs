//! The requests of health checks of a proxied group, made with the location's settings.

use std::sync::Arc;

use ::tls::backend::SecuredBackend;
use ::upstream::Group;

use super::version::ProxyHttpVersion;
use super::{Proxy, ProxyBackend, ProxyTarget, by_stream};
use crate::backend::check::CheckRequest;
use crate::backend::protocol::{Start, http1};
use crate::backend::{BackendRequestBody, Conf as Family};
use crate::exchange::Exchange;
use crate::health::Checkable;

impl Checkable for Proxy {
    fn group(&self) -> Option<&Arc<Group>> {
        match &self.backend {
            ProxyBackend::Fixed(target) => Some(&target.group),
            ProxyBackend::Computed(..) => None,
        }
    }

    fn family(&self) -> &Family {
        &self.family
    }

    fn tls(&self) -> Option<&SecuredBackend> {
        self.tls.as_ref()
    }

    fn request(&self, x: &mut Exchange, uri: &Arc<[u8]>) -> Option<CheckRequest> {
        let ProxyBackend::Fixed(target) = &self.backend else { return None };
        let (group, host, port) = (target.group.clone(), target.host.clone(), target.port.clone());
        let is_tls = target.is_tls;
        let target =
            ProxyTarget { group, host, port, uri: Some(uri.clone()), uri_is_whole: true, is_tls };
        x.backends.begin_request();
        type Start1 = http1::Http1Start;
        let schema = if is_tls { Start1::SECURE_SCHEMA } else { Start1::SCHEMA };
        x.backends.set_schema(schema);
        x.backends.request_to.name(&target.host, &target.port);
        let body = self.made_body(x).unwrap_or(BackendRequestBody::None);
        let mut head = Vec::new();
        let request = self.write_head(x, &target, &body, None, &mut head)?;
        Some(match self.conf.http_version {
            ProxyHttpVersion::Http2 => CheckRequest::new(head, body, by_stream(&request, is_tls)),
            ProxyHttpVersion::Http10 | ProxyHttpVersion::Http11 => {
                CheckRequest::new(head, body, request)
            }
        })
    }
}

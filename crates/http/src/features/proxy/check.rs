//! What health checks of a proxied group send: a request as the location's settings make it.

use std::sync::Arc;

use ::upstream::Group;

use super::{Backend, Proxy, Target};
use crate::backend::Conf as Family;
use crate::exchange::Exchange;
use crate::health::{Asked, Checkable};

impl Checkable for Proxy {
    fn group(&self) -> Option<&Arc<Group>> {
        match &self.backend {
            Backend::Fixed(target) => Some(&target.group),
            Backend::Computed(..) => None,
        }
    }

    fn family(&self) -> &Family {
        &self.family
    }

    fn ask(&self, x: &mut Exchange, uri: &Arc<[u8]>) -> Option<Asked> {
        let Backend::Fixed(target) = &self.backend else { return None };
        let (group, host, port) = (target.group.clone(), target.host.clone(), target.port.clone());
        let target = Target { group, host, port, uri: Some(uri.clone()), uri_is_whole: true };
        x.backends.schema = "http://";
        x.backends.begin_request();
        x.backends.request_to.name(&target.host, &target.port);
        let body = self.conf.set_body.as_ref().map(|template| x.render(template));
        let length = body.as_ref().map(|body| body.len() as u64);
        let mut request = Vec::new();
        let written = self.write_head(x, &target, length, false, &mut request)?;
        request.extend(body.unwrap_or_default());
        Some(Asked { request, to_head: written.to_head })
    }
}

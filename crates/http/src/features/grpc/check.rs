//! The requests of health checks of a group of gRPC servers.

use std::sync::Arc;

use ::tls::backend::SecuredBackend;
use ::upstream::Group;
use wire::grpc::{HEALTH_CHECK, write_health_request};

use super::{Grpc, SCHEMES};
use crate::backend::check::CheckRequest;
use crate::backend::{BackendRequestBody, Conf as Family};
use crate::exchange::Exchange;
use crate::health::Checkable;

impl Checkable for Grpc {
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
        x.backends.begin_unnamed_request(SCHEMES.plain);
        let target = self.target.evaluate(x, SCHEMES).ok()?;
        let mut head = Vec::new();
        let request = self.write_head(x, &target, None, &mut head)?;
        Some(CheckRequest::new(head, BackendRequestBody::None, request))
    }

    fn speaks_grpc(&self) -> bool {
        true
    }

    fn health_call(&self, x: &mut Exchange, service: &[u8]) -> Option<CheckRequest> {
        x.backends.begin_unnamed_request(SCHEMES.plain);
        let target = self.target.evaluate(x, SCHEMES).ok()?;
        let mut message = Vec::new();
        write_health_request(service, &mut message);
        let mut head = Vec::new();
        let request = self.write_call(x, &target, HEALTH_CHECK, message.len(), &mut head)?;
        Some(CheckRequest::new(head, BackendRequestBody::made(message), request))
    }
}

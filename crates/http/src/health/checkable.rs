//! Backends that can be checked.

use std::sync::Arc;

use ::tls::backend::SecuredBackend;
use ::upstream::Group;

use crate::backend::Conf as Family;
use crate::backend::check::CheckRequest;
use crate::exchange::Exchange;

/// A backend that health checks can probe.
pub(crate) trait Checkable: Send + Sync {
    /// The group of servers; `None` if it depends on the request.
    fn group(&self) -> Option<&Arc<Group>>;
    /// The settings that all families of backends share.
    fn family(&self) -> &Family;
    /// TLS with the servers; `None` for none.
    fn tls(&self) -> Option<&SecuredBackend> {
        None
    }
    /// Makes a request. `None`, after logging why, if that is impossible.
    fn request(&self, x: &mut Exchange, uri: &Arc<[u8]>) -> Option<CheckRequest>;
    /// Whether it makes calls of gRPC.
    fn speaks_grpc(&self) -> bool {
        false
    }
    /// Makes the call that asks for the health of a service. `None`, after logging why, if that is
    /// impossible.
    fn health_call(&self, _x: &mut Exchange, _service: &[u8]) -> Option<CheckRequest> {
        None
    }
}

//! What a check needs of a backend.

use std::sync::Arc;

use ::session::backend::SecuredBackend;
use ::upstream::Group;

use crate::backend::Conf as Family;
use crate::backend::check::CheckRequest;
use crate::exchange::Exchange;

/// A backend that can be asked by health checks.
pub(crate) trait Checkable: Send + Sync {
    /// The group of servers; `None`: it depends on the request.
    fn group(&self) -> Option<&Arc<Group>>;
    /// What all families of backends are told.
    fn family(&self) -> &Family;
    /// How connections are secured; `None`: they are not.
    fn tls(&self) -> Option<&SecuredBackend> {
        None
    }
    /// Makes a request; `None`, with a line in the log: it is none.
    fn request(&self, x: &mut Exchange, uri: &Arc<[u8]>) -> Option<CheckRequest>;
}

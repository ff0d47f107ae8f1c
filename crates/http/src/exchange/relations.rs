//! Whether an exchange is a subrequest, and properties of its main request.

use wire::Method;

use super::{Exchange, Role};
use crate::site::LocationId;

impl Exchange {
    pub fn is_subrequest(&self) -> bool {
        matches!(self.role, Role::Sub(_))
    }

    /// The method of the main request: `$request_method`.
    pub fn main_method(&self) -> Method {
        match self.role {
            Role::Sub(origin) => origin.method,
            Role::Main | Role::PostAction => self.request.head.method,
        }
    }

    /// The location of the main request when it started the subrequest; otherwise its own location.
    pub(crate) fn main_location(&self) -> LocationId {
        match self.role {
            Role::Sub(origin) => origin.location,
            Role::Main | Role::PostAction => self.location,
        }
    }
}

//! An exchange and its subrequests: whose it is, and which run beside it.

use wire::Method;

use super::{Exchange, Role};
use crate::site::LocationId;

impl Exchange {
    /// Whether it is a subrequest.
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

    /// The location where the main request is, or was when it asked.
    pub(crate) fn main_location(&self) -> LocationId {
        match self.role {
            Role::Sub(origin) => origin.location,
            Role::Main | Role::PostAction => self.location,
        }
    }

    /// Whether subrequests run beside it.
    pub(crate) fn has_background(&self) -> bool {
        self.subrequests.as_ref().is_some_and(|own| !own.background.is_empty())
    }

    /// Waits for them; whether the connection may be used on.
    pub(crate) async fn background_ended(&mut self) -> bool {
        match &mut self.subrequests {
            Some(own) => own.background.ended().await,
            None => true,
        }
    }

    /// Ends them where they stand.
    pub(crate) fn stop_background(&mut self) {
        if let Some(own) = &mut self.subrequests {
            own.background.stop();
        }
    }
}

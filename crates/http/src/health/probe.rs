//! The two kinds of checks.

use super::{location, server};

/// How a server is asked.
#[derive(Clone)]
pub(super) enum HealthProbe {
    /// As a location passes requests on.
    Location(location::LocationProbe),
    /// As an `upstream` block says.
    Server(server::ServerProbe),
}

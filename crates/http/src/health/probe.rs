//! The two kinds of checks.

use super::{location, server};

/// How a server is asked.
#[derive(Clone)]
pub(super) enum Probe {
    /// As a location passes requests on.
    Location(location::Probe),
    /// As an `upstream` block says.
    Server(server::Probe),
}

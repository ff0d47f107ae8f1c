//! Why a name has no addresses, in nginx's words.

use std::fmt;

use wire::dns::Rcode;

/// The system's error number for a timeout, which nginx shows.
const ETIMEDOUT: u16 = 110;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupFailure {
    /// The code of a name server; [`Rcode::NXDOMAIN`] also if a name has no records of the type.
    Said(Rcode),
    /// No name server answered in time.
    TimedOut,
}

impl From<Rcode> for LookupFailure {
    fn from(rcode: Rcode) -> Self {
        Self::Said(rcode)
    }
}

/// `3: Host not found`, `110: Operation timed out`.
impl fmt::Display for LookupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(rcode) => write!(f, "{}: {rcode}", rcode.0),
            Self::TimedOut => write!(f, "{ETIMEDOUT}: Operation timed out"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError {
    /// The name, or `service http of example.net`.
    pub subject: String,
    pub failure: LookupFailure,
    /// Until when the failure is valid, on the worker's clock.
    pub valid_until_ms: u64,
}

impl ResolveError {
    /// Whether the name does not exist, as opposed to unknown.
    pub fn is_not_found(&self) -> bool {
        self.failure == LookupFailure::Said(Rcode::NXDOMAIN)
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} could not be resolved ({})", self.subject, self.failure)
    }
}

impl std::error::Error for ResolveError {}

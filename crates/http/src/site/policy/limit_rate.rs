//! Settings for the rate of replies.

use conf::SizeTemplate;

/// `limit_rate` and `limit_rate_after` of a location.
#[derive(Clone, Debug, Default)]
pub struct LimitRate {
    /// Bytes a second.
    pub(crate) rate: Option<SizeTemplate>,
    /// Bytes that are sent without a limit first.
    pub(crate) after: Option<SizeTemplate>,
}

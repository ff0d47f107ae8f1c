//! How fast replies are sent.

use conf::SizeTemplate;

/// `limit_rate` and `limit_rate_after` of a location.
#[derive(Clone, Debug, Default)]
pub struct LimitRate {
    /// Bytes a second.
    pub(crate) rate: Option<SizeTemplate>,
    /// Bytes at the beginning that are not limited.
    pub(crate) after: Option<SizeTemplate>,
}

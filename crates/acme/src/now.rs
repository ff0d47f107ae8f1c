//! The time of the system.

use net::clock;

/// Seconds since 1970.
pub(crate) fn now_s() -> i64 {
    i64::try_from(clock::unix_ms() / 1000).unwrap_or(i64::MAX)
}

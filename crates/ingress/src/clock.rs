//! Times as Kubernetes writes them.

use std::time::{SystemTime, UNIX_EPOCH};

/// RFC 3339, to the second.
pub(crate) fn time() -> String {
    format!("{}Z", seconds(unix().0))
}

/// RFC 3339, to the microsecond.
pub(crate) fn micro_time() -> String {
    let (seconds_now, micros) = unix();
    format!("{}.{micros:06}Z", seconds(seconds_now))
}

fn seconds(unix: i64) -> String {
    String::from_utf8_lossy(&wire::date::iso8601(unix, 0)[..19]).into_owned()
}

/// Seconds and microseconds.
fn unix() -> (i64, u32) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs() as i64, since.subsec_micros())
}

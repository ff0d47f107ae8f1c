//! Dates for people.

use wire::date::Civil;

/// Seconds since 1970 as a date and time: `2026-11-23 17:12 UTC`.
pub(super) fn utc(unix_s: u64) -> String {
    let Civil { year, month, day, hour, minute, .. } = Civil::of(unix_s.cast_signed());
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

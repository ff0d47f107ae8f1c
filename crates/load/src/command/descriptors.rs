//! Descriptors of a run.

/// Descriptors of threads and their alarms, and some in reserve.
const RESERVE: u64 = 4096;

/// Makes room for those of a run. May fail; it is not necessary.
pub(super) fn reserve(connections: u64) {
    let _ = net::process::reserve_descriptors(connections + RESERVE);
}

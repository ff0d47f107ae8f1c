//! Times of files, as purges compare them.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// When a file was modified, in nanoseconds since 1970.
pub fn modified_ns(metadata: &Metadata) -> u64 {
    let seconds = u64::try_from(metadata.mtime()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec() as u64)
}

//! Settings for request bodies: their limits, and where they are kept.

use wire::Version;

use crate::files::{TempFileEnd, TempPath};

conf::words! {
    /// Whether every body goes to a file.
    #[derive(Default)]
    pub enum InFileOnly {
        /// Only large bodies do.
        #[default]
        Off = "off",
        /// Every body does, and the file is kept.
        On = "on",
        /// Every body does, and the file is deleted after the request.
        Clean = "clean",
    }
}

/// A location's settings for request bodies.
#[derive(Clone, Debug, Default)]
pub struct ClientBody {
    /// `client_max_body_size`; 0: no limit.
    pub size_max: u64,
    /// `client_body_timeout`
    pub timeout_ms: u64,
    /// `client_body_in_file_only`
    pub(crate) in_file_only: InFileOnly,
    /// `client_body_buffer_size`
    pub(crate) buffer_size: usize,
    /// `client_body_temp_path`
    pub(crate) temp_path: Option<TempPath>,
}

impl ClientBody {
    /// When the file of a body is deleted.
    pub(crate) fn fate(&self) -> TempFileEnd {
        match self.in_file_only {
            InFileOnly::Off => TempFileEnd::Nameless,
            InFileOnly::On => TempFileEnd::Kept,
            InFileOnly::Clean => TempFileEnd::Deleted,
        }
    }

    /// How much of a body is read into memory before it goes to a file. As in nginx, a body of
    /// HTTP/1 with a length may exceed `client_body_buffer_size` by a quarter; over HTTP/2 it may
    /// not.
    pub(crate) fn memory_max(&self, version: Version, length: Option<u64>) -> usize {
        let size = self.buffer_size.max(1);
        match length {
            Some(length) if length <= size as u64 => length as usize,
            Some(length) if version < Version::HTTP_2 && length < (size + size / 4) as u64 => {
                length as usize
            }
            _ => size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_1_may_exceed_the_buffer() {
        let rules = ClientBody { buffer_size: 512, ..ClientBody::default() };
        for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
            let grace = if version == Version::HTTP_2 { 512 } else { 639 };
            assert_eq!(rules.memory_max(version, Some(100)), 100);
            assert_eq!(rules.memory_max(version, Some(512)), 512);
            assert_eq!(rules.memory_max(version, Some(639)), grace);
            assert_eq!(rules.memory_max(version, Some(640)), 512);
            assert_eq!(rules.memory_max(version, None), 512);
        }
    }
}

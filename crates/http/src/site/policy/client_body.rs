//! The body that a client sends: how long it may be, and where it is kept.

use crate::files::{TempFileEnd, TempPath};

conf::words! {
    /// Whether every body goes to a file.
    #[derive(Default)]
    pub enum InFileOnly {
        /// Large ones only.
        #[default]
        Off = "off",
        /// Every one, and it stays.
        On = "on",
        /// Every one, and it is deleted after the request.
        Clean = "clean",
    }
}

/// How a location takes bodies.
#[derive(Clone, Debug, Default)]
pub struct ClientBody {
    /// `client_max_body_size`; 0: any.
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
    /// What becomes of its file.
    pub(crate) fn fate(&self) -> TempFileEnd {
        match self.in_file_only {
            InFileOnly::Off => TempFileEnd::Nameless,
            InFileOnly::On => TempFileEnd::Kept,
            InFileOnly::Clean => TempFileEnd::Deleted,
        }
    }

    /// What is kept in memory of a body: all of it where little more than the buffer would be
    /// needed, as in nginx, else one buffer at a time.
    pub(crate) fn memory_max(&self, length: Option<u64>) -> usize {
        let size = self.buffer_size.max(1);
        match length {
            Some(length) if length < (size + size / 4) as u64 => length as usize,
            _ => size,
        }
    }
}

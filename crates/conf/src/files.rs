//! The files a configuration is made of, behind one trait.
//!
//! The loader and every feature that reads a file while the configuration is loaded (certificates,
//! passwords, geo data) read through [`Files`], so that the master process can record what it read
//! and hand the recording to the worker process, which has neither the rights to read it again nor
//! the certainty to find the same. Files opened while serving are not its business.

mod disk;
mod glob;
mod memory;
mod recording;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;

pub use disk::Disk;
pub use glob::has_magic;
pub use memory::MemoryFiles;
pub use recording::{Recorder, Replay};

/// Whole files and file names, read while the configuration is loaded.
pub trait Files {
    /// The bytes of a file.
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError>;

    /// The files whose names match, sorted by bytes, like glob(3). There may be none.
    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError>;
}

impl Files for Box<dyn Files> {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        (**self).read(path)
    }

    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        (**self).glob(pattern)
    }
}

/// Why a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The call that failed.
    pub call: Call,
    /// The system's number for the reason.
    pub errno: i32,
}

/// The call that failed, for nginx's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Opening.
    Open,
    /// Reading what had been opened.
    Read,
    /// Looking for names.
    Glob,
    /// Looking it up in a recording: it was not read when the recording was made.
    Replay,
}

impl FileError {
    /// Whether there is no such file, as opposed to one that cannot be read.
    pub fn is_not_found(self) -> bool {
        self.call == Call::Open && self.errno == ENOENT
    }

    /// The message nginx has for it: `open() "/etc/x" failed (2: No such file or directory)`.
    pub fn describe(self, path: &[u8]) -> String {
        format!("{} \"{}\" failed ({self})", self.call, String::from_utf8_lossy(path))
    }

    fn new(call: Call, error: &io::Error) -> Self {
        Self { call, errno: error.raw_os_error().unwrap_or(EINVAL) }
    }
}

/// The reason alone: `2: No such file or directory`.
impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { errno, .. } = self;
        let text = io::Error::from_raw_os_error(*errno).to_string();
        let words = text.strip_suffix(&format!(" (os error {errno})")).unwrap_or(&text);
        write!(f, "{errno}: {words}")
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open()",
            Self::Read => "pread()",
            Self::Glob => "glob()",
            Self::Replay => "replay of",
        })
    }
}

/// Linux's numbers for the reasons we give ourselves.
const ENOENT: i32 = 2;
const E2BIG: i32 = 7;
const EINVAL: i32 = 22;
const EFBIG: i32 = 27;

/// A file name as nginx completes it: put after `prefix` unless it begins with a slash.
pub fn full_name(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    if name.starts_with(b"/") { name.to_vec() } else { [prefix, name].concat() }
}

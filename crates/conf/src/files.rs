//! The files of a configuration, behind one trait.
//!
//! The loader and every feature that reads a file while the configuration is loaded (certificates,
//! passwords, geo data) read through [`Files`], so that the master process can record the files and
//! pass the recording to the worker process. A worker has no rights to read the files again, and
//! they may have changed. Deliberately absent: files opened while serving.

mod below;
mod disk;
mod glob;
mod memory;
mod recording;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;

pub use below::FilesBelow;
pub use disk::Disk;
pub use glob::has_magic;
pub use memory::MemoryFiles;
pub use recording::{Recorder, Replay};

/// Whole files and file names, read while the configuration is loaded.
pub trait Files {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError>;

    /// The files whose names match, sorted by bytes, like glob(3). The list may be empty.
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
    pub call: Call,
    /// The system's number for the error.
    pub errno: i32,
}

/// The call that failed, for nginx's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Open,
    Read,
    Glob,
    /// Looking a file up in a recording: it was not read when the recording was made.
    Replay,
}

impl FileError {
    /// Whether the file does not exist, as opposed to a file that cannot be read.
    pub fn is_not_found(self) -> bool {
        self.call == Call::Open && self.errno == ENOENT
    }

    /// nginx's message: `open() "/etc/x" failed (2: No such file or directory)`.
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

/// Linux's numbers for the errors that this crate creates itself.
const ENOENT: i32 = 2;
const E2BIG: i32 = 7;
const EINVAL: i32 = 22;
const EFBIG: i32 = 27;

/// A file name completed as in nginx: `prefix` is put before it unless it begins with a slash.
pub fn full_name(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    if name.starts_with(b"/") { name.to_vec() } else { [prefix, name].concat() }
}

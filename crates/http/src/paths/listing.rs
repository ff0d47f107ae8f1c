//! Reads a directory.

use std::fs::{self, DirEntry};
use std::os::unix::ffi::OsStrExt as _;

use conf::bytes_path;

use super::{log_failed, verdict};
use crate::exchange::Exchange;
use crate::files::PathError;

/// Calls `each` with every entry that is not hidden, in no particular order. Errors are logged in
/// nginx's words; `Err` is the status.
pub fn list(
    x: &Exchange,
    directory: &[u8],
    mut each: impl FnMut(&DirEntry) -> Result<(), u16>,
) -> Result<(), u16> {
    let failed = |call| move |error| refuse(x, directory, &PathError { call, error });
    for entry in fs::read_dir(bytes_path(directory)).map_err(failed("opendir()"))? {
        let entry = entry.map_err(failed("readdir()"))?;
        if !entry.file_name().as_bytes().starts_with(b".") {
            each(&entry)?;
        }
    }
    Ok(())
}

fn refuse(x: &Exchange, directory: &[u8], failed: &PathError) -> u16 {
    let (status, level) = verdict(failed);
    log_failed(x, level, directory, failed);
    status
}

/// The path of a directory without the slash at its end.
pub fn without_slash(path: &[u8]) -> &[u8] {
    match path {
        [directory @ .., b'/'] if !directory.is_empty() => directory,
        path => path,
    }
}

//! The file with the master's number: there while it runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use observe::{Errno, Level};

use crate::Told;
use crate::log::{alert, emerg};

/// What the name ends in while a new binary's master runs beside the old one.
const OLD: &str = ".oldbin";

/// Writes this process's number.
pub fn write(path: &Path) -> Result<(), Told> {
    let number = format!("{}\n", net::process::id());
    let mut file = create(path, true)?;
    file.write_all(number.as_bytes()).map_err(|error| {
        emerg!("write() \"{}\" failed{}", path.display(), Errno(&error));
        Told
    })
}

/// Sees whether it could be written, as `-t` does.
pub fn try_out(path: &Path) -> Result<(), Told> {
    create(path, false).map(drop)
}

fn create(path: &Path, truncate: bool) -> Result<File, Told> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(truncate).mode(0o644);
    options.open(path).map_err(|error| {
        emerg!("open() \"{}\" failed{}", path.display(), Errno(&error));
        Told
    })
}

/// Takes the file away.
pub fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        alert!("unlink() \"{}\" failed{}", path.display(), Errno(&error));
    }
}

/// The name of the file while a new binary takes over.
pub fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(OLD);
    name.into()
}

/// The number in the file.
pub fn read(path: &Path) -> Result<i32, Told> {
    let failed = |error: io::Error| {
        let call = if error.kind() == io::ErrorKind::IsADirectory { "read()" } else { "open()" };
        let text = format_args!("{call} \"{}\" failed{}", path.display(), Errno(&error));
        observe::log(Level::Error, text);
        Told
    };
    let text = std::fs::read(path).map_err(failed)?;
    let number = text.trim_ascii_end();
    let parsed = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    parsed.filter(|number| *number > 0).ok_or_else(|| {
        let (number, path) = (String::from_utf8_lossy(number), path.display());
        observe::log(Level::Error, format_args!("invalid PID number \"{number}\" in \"{path}\""));
        Told
    })
}

//! The pid file of the master, which exists while it runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use observe::{Errno, Level, tell};

use crate::defaults::Defaults;
use crate::log::{alert, emerg};
use crate::messages::Reported;
use crate::{hints, ready};

/// The suffix of the old master's file while a new binary's master runs beside it.
const OLD: &str = ".oldbin";

pub fn write(path: &Path, defaults: &Defaults) -> Result<(), Reported> {
    ready::make_home_of(path, defaults)?;
    let number = format!("{}\n", net::process::id());
    let mut file = create(path).map_err(|error| refuse(path, &error))?;
    file.write_all(number.as_bytes()).map_err(|error| {
        emerg!("write() \"{}\" failed{}", path.display(), Errno(&error));
        Reported
    })
}

/// Checks whether it could be written. nginx creates the file for that.
pub fn try_out(path: &Path, defaults: &Defaults) -> Result<(), Reported> {
    let tried = match path.try_exists() {
        Ok(true) if path.is_dir() => OpenOptions::new().write(true).open(path).map(drop),
        Ok(true) => net::file::may_write(path),
        _ => ready::may_make(path, defaults.is_at_home(path)),
    };
    tried.map_err(|error| refuse(path, &error))
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o644).open(path)
}

fn refuse(path: &Path, error: &io::Error) -> Reported {
    emerg!("open() \"{}\" failed{}", path.display(), Errno(error));
    advise(hints::pid(path, error));
    Reported
}

/// Prints a hint below nginx's message.
fn advise(hint: Option<String>) {
    if let Some(hint) = hint.filter(|_| observe::copies_to_stderr()) {
        tell(format_args!("      {hint}\n"));
    }
}

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

/// The process ID in the file.
pub fn read(path: &Path, defaults: &Defaults) -> Result<i32, Reported> {
    ready::check_home_of(path, defaults)?;
    let failed = |error: io::Error| {
        let call = if error.kind() == io::ErrorKind::IsADirectory { "read()" } else { "open()" };
        let text = format_args!("{call} \"{}\" failed{}", path.display(), Errno(&error));
        observe::log(Level::Error, text);
        advise(hints::no_pid(&error));
        Reported
    };
    let text = std::fs::read(path).map_err(failed)?;
    let number = text.trim_ascii_end();
    let parsed = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    parsed.filter(|number| *number > 0).ok_or_else(|| {
        let (number, path) = (String::from_utf8_lossy(number), path.display());
        observe::log(Level::Error, format_args!("invalid PID number \"{number}\" in \"{path}\""));
        Reported
    })
}

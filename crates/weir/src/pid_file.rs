//! The file with the master's number: there while it runs.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::Told;
use crate::log::{Log, failed, reason};

/// Writes this process's number.
pub fn write(path: &Path, log: &mut Log) -> Result<(), Told> {
    let number = format!("{}\n", net::process::id());
    let mut file = create(path, true, log)?;
    file.write_all(number.as_bytes()).map_err(|error| {
        log.emerg(failed("write()", path, &error));
        Told
    })
}

/// Sees whether it could be written, as `-t` does.
pub fn try_out(path: &Path, log: &mut Log) -> Result<(), Told> {
    create(path, false, log).map(drop)
}

fn create(path: &Path, truncate: bool, log: &mut Log) -> Result<File, Told> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(truncate).mode(0o644);
    options.open(path).map_err(|error| {
        log.emerg(failed("open()", path, &error));
        Told
    })
}

/// Takes the file away.
pub fn remove(path: &Path, log: &mut Log) {
    if let Err(error) = std::fs::remove_file(path) {
        log.alert(failed("unlink()", path, &error));
    }
}

/// The number in the file.
pub fn read(path: &Path, log: &mut Log) -> Result<i32, Told> {
    let text = std::fs::read(path).map_err(|error| {
        let call = if reason(&error).starts_with("21:") { "read()" } else { "open()" };
        log.error(failed(call, path, &error));
        Told
    })?;
    let number = text.trim_ascii_end();
    let parsed = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    parsed.filter(|number| *number > 0).ok_or_else(|| {
        let number = String::from_utf8_lossy(number);
        log.error(format!("invalid PID number \"{number}\" in \"{}\"", path.display()));
        Told
    })
}

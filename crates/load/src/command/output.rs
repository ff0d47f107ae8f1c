//! Standard output and results files.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::results::{Results, hlog, json};
use crate::settings::LoadSettings;
use crate::tell;

/// Checks that a results file can be written, before a long run.
pub(super) fn try_file(path: &Path) -> Result<(), String> {
    // The reader of a pipe would take closing it for the end.
    let is_pipe = path.metadata().is_ok_and(|file| file.file_type().is_fifo());
    if is_output(path) || is_pipe {
        return Ok(());
    }
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map(|_| ()).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes the results files that `place` selects: all runs so far, and the latencies of the last.
pub(super) fn save(
    settings: &LoadSettings,
    kept: &[Results],
    place: fn(&Path) -> bool,
) -> Result<(), String> {
    let Some(last) = kept.last() else { return Ok(()) };
    if let Some(path) = settings.json.as_deref().filter(|path| place(path)) {
        write(path, &json::write(kept))?;
    }
    if let Some(path) = settings.hlog.as_deref().filter(|path| place(path)) {
        write(path, &hlog(last)?)?;
    }
    Ok(())
}

/// Whether a results file is standard output, which is written once.
pub(super) fn is_output(path: &Path) -> bool {
    path == Path::new("-")
}

pub(super) fn is_file(path: &Path) -> bool {
    !is_output(path)
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    if is_output(path) {
        return print(text);
    }
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Prints to standard error if programs read standard output, unless `--quiet` is set.
pub(super) fn show(settings: &LoadSettings, text: &str) -> Result<(), String> {
    match (settings.files().any(is_output), settings.quiet) {
        (false, _) => print(text)?,
        (true, false) => tell(text),
        (true, true) => {}
    }
    Ok(())
}

/// Prints to standard output. A closed pipe ends the program.
pub(super) fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
}

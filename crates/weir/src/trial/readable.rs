//! Reads the configuration with the rights of the user who starts the trial.
//!
//! Keys and whole folders belong to root on most servers. All unreadable files are found at once:
//! an unreadable file counts as empty, and reading continues.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{Disk, FileError, Files};
use sandbox::EditableTree;

use crate::config_origin::ConfigOrigin;
use crate::messages::Reported;
use crate::messages::complain;

/// Reads a configuration, and reports all unreadable files. The inner error is one of the
/// configuration itself.
pub(super) fn read(origin: &ConfigOrigin) -> Result<Result<EditableTree, String>, Reported> {
    let path = conf::bytes_path(&origin.conf);
    let mut files = ReadableFiles::default();
    let tree = EditableTree::read_without_lua(path, &mut files);
    let mut denied: Vec<DeniedFile> =
        files.denied.into_iter().map(|path| DeniedFile { path, named: String::new() }).collect();
    for file in tree.iter().flat_map(sandbox::named_files) {
        let is_known = denied.iter().any(|known| known.path == file.path);
        if !is_known && is_denied(File::open(&file.path)) {
            let named = format!(" ({} in {})", file.directive, file.place);
            denied.push(DeniedFile { path: file.path, named });
        }
    }
    match denied.is_empty() {
        true => Ok(tree),
        false => Err(report(path, &denied)),
    }
}

/// A file that the user may not read.
struct DeniedFile {
    path: PathBuf,
    /// The position that names it, if known.
    named: String,
}

fn is_denied<T>(tried: std::io::Result<T>) -> bool {
    tried.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

fn report(conf: &Path, denied: &[DeniedFile]) -> Reported {
    let mut lines = Vec::new();
    for DeniedFile { path, named } in denied {
        let _ = writeln!(lines, "      {}{named}", path.display());
    }
    let lines = String::from_utf8_lossy(&lines);
    let reported = complain(format_args!(
        "trial: this user may not read these files of the configuration:\n{}",
        lines.trim_end()
    ));
    observe::tell(format_args!("      run \"{}\"\n", as_root(conf)));
    reported
}

/// The folders in which sudo finds programs.
const FOLDERS_OF_SUDO: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The command that runs the trial as root.
pub(super) fn as_root(conf: &Path) -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let is_found = program.parent().is_some_and(|folder| {
        let mut folders = FOLDERS_OF_SUDO.iter();
        program.file_name().is_some_and(|name| name == "weir")
            && folders.any(|known| folder == Path::new(known))
    });
    let program = if is_found { "weir".into() } else { program.display().to_string() };
    format!("sudo {program} trial -c {}", conf.display())
}

/// The disk, with unreadable files as empty ones.
#[derive(Default)]
struct ReadableFiles {
    denied: Vec<PathBuf>,
}

impl ReadableFiles {
    fn deny(&mut self, path: &Path) {
        if !self.denied.iter().any(|known| known == path) {
            self.denied.push(path.to_owned());
        }
    }
}

impl Files for ReadableFiles {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        let read = Disk.read(path);
        if read.is_err() && is_denied(File::open(conf::bytes_path(path))) {
            self.deny(conf::bytes_path(path));
            return Ok(Arc::new([]));
        }
        read
    }

    /// glob(3) silently skips unreadable folders, and nginx would serve less.
    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        let path = conf::bytes_path(pattern);
        let is_plain = |folder: &&Path| !conf::has_magic(folder.as_os_str().as_bytes());
        if let Some(folder) = path.ancestors().skip(1).find(is_plain)
            && is_denied(fs::read_dir(folder))
        {
            self.deny(folder);
        }
        Disk.glob(pattern)
    }
}

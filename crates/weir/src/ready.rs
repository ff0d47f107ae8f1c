//! What every process that serves does to what it stands on: directories, logs, its own limits.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use net::users::Identity;
use observe::{Errno, ErrorLog, Level, LogFiles};

use crate::Told;
use crate::load::Loaded;
use crate::log::{alert, emerg};
use crate::name::name;
use crate::settings::Settings;

/// Makes the directories and opens the logs that a configuration names.
pub fn make_ready(loaded: &Loaded) -> Result<(), Told> {
    let identity = loaded.settings.user.as_ref();
    for folder in &loaded.folders {
        name().make_home_of(folder);
        make_folder(folder, identity)?;
    }
    loaded.log_files.iter().for_each(|file| name().make_home_of(file.path()));
    loaded.log_files.open().map_err(|error| {
        emerg!("{error}");
        Told
    })
}

/// Makes a directory that workers write to, and that is theirs alone.
///
/// As nginx it insists; under its own name Weir also runs without being installed, and says what
/// will not work.
fn make_folder(path: &Path, identity: Option<&Identity>) -> Result<(), Told> {
    let failed = |call: &str, error: &io::Error| {
        emerg!("{call} \"{}\" failed{}", path.display(), Errno(error));
        Told
    };
    let insists = name().word == "nginx";
    match DirBuilder::new().mode(0o700).recursive(!insists).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if insists => return Err(failed("mkdir()", &error)),
        Err(error) => {
            let text = format_args!(
                "mkdir() \"{}\" failed{}; requests and replies that do not fit in memory will \
                 fail: let \"client_body_temp_path\" and \"proxy_temp_path\" name a directory that \
                 can be written to",
                path.display(),
                Errno(&error)
            );
            observe::log(Level::Warn, text);
            return Ok(());
        }
    }
    let Some(identity) = identity else { return Ok(()) };
    give_to(path, identity).map_err(|error| failed("chown()", &error))
}

fn give_to(path: &Path, identity: &Identity) -> io::Result<()> {
    if std::fs::metadata(path)?.uid() == identity.user {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(identity.user), None)
}

/// The main log, and standard error with it unless that is a log itself.
pub fn use_log(log: Arc<ErrorLog>) {
    let file = log.file().and_then(|file| file.current());
    if let Some(file) = file.filter(|_| !log.has_stderr())
        && let Err(error) = net::process::redirect_stderr(&file)
    {
        alert!("dup2(STDERR) failed{}", Errno(&error));
    }
    observe::set_main_log(log);
}

/// Opens the logs anew, and gives them to whom the workers run as.
pub fn reopen(log_files: &LogFiles, identity: Option<&Identity>) {
    for error in log_files.reopen() {
        emerg!("{error}");
    }
    for file in log_files.iter() {
        if let Some(identity) = identity
            && let Err(error) = give_to(file.path(), identity)
        {
            let (path, user) = (file.path().display(), identity.user);
            emerg!("chown(\"{path}\", {user}) failed{}", Errno(&error));
        }
    }
    use_log(observe::main_log());
}

/// Limits that a process sets to itself before it serves: it may have to be root.
pub fn set_limits(settings: &Settings) {
    let workers = settings.worker_processes.max(1) as u64;
    let failed = |what: String, error: std::io::Error| alert!("{what} failed{}", Errno(&error));
    if settings.worker_priority != 0
        && let Err(error) = net::process::set_priority(settings.worker_priority)
    {
        failed(format!("setpriority({})", settings.worker_priority), error);
    }
    if let Err(error) = set_open_files_limit(settings.worker_rlimit_nofile, workers) {
        let files = settings.worker_rlimit_nofile.unwrap_or_default();
        failed(format!("setrlimit(RLIMIT_NOFILE, {files})"), error);
    }
    let connections = workers.saturating_mul(settings.worker_connections as u64);
    // Where there is no room, the table grows as it must.
    let _ = net::process::reserve_descriptors(connections.min(DESCRIPTORS_RESERVED_MAX));
    if let Some(bytes) = settings.worker_rlimit_core
        && let Err(error) = net::process::set_core_limit(bytes)
    {
        failed(format!("setrlimit(RLIMIT_CORE, {bytes})"), error);
    }
}

/// Descriptors there is room for from the start, half a megabyte of the kernel's. Growing later
/// makes every worker wait for milliseconds.
const DESCRIPTORS_RESERVED_MAX: u64 = 65_536;

/// The limit counts for each worker, and they are one process: it gets as many as it may have. Only
/// one that nginx's worker would not get either is an error.
fn set_open_files_limit(each: Option<u64>, workers: u64) -> io::Result<()> {
    let Some(each) = each else { return net::process::raise_open_files_limit() };
    match net::process::set_open_files_limit(each.saturating_mul(workers)) {
        Err(_) if net::process::open_files_limit().1.is_some_and(|hard| each <= hard) => {
            net::process::raise_open_files_limit()
        }
        done => done,
    }
}

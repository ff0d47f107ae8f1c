//! Preparations of every serving process: directories, logs, resource limits.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use conf::{Error, Span};
use net::users::ProcessIdentity;
use observe::{Errno, ErrorLog, LogFiles};

use crate::config_origin::ConfigOrigin;
use crate::defaults::Defaults;
use crate::hints;
use crate::load::{self, LoadedConfig, WrittenFolder};
use crate::log::{alert, emerg};
use crate::messages::Reported;
use crate::name::name;
use crate::settings::ProgramSettings;

/// Creates the directories and opens the logs that a configuration names.
pub fn make_ready(loaded: &LoadedConfig, origin: &ConfigOrigin) -> Result<(), Reported> {
    let identity = loaded.settings.user.as_ref();
    for folder in &loaded.folders {
        make_home_of(&folder.path, &origin.defaults)?;
        if let Err(what) = make_folder(&folder.path, identity) {
            do_without(loaded, folder, what)?;
        }
    }
    for file in loaded.log_files.iter() {
        make_home_of(file.path(), &origin.defaults)?;
    }
    loaded.log_files.open().map_err(|error| {
        refuse(loaded, error.named, error.to_string(), hints::log(&error, &origin.defaults))
    })
}

/// Checks whether [`make_ready`] would succeed, without creating anything. Returns the number of
/// warnings.
pub fn try_out(loaded: &LoadedConfig, origin: &ConfigOrigin) -> Result<usize, Reported> {
    let mut warnings = 0;
    let may_make = |path: &Path| may_make(path, origin.defaults.is_at_home(path));
    for folder in loaded.folders.iter().filter(|folder| !folder.path.is_dir()) {
        let parents = !name().is_nginx() || origin.defaults.is_at_home(&folder.path);
        if let Err(error) = self::may_make(&folder.path, parents) {
            let what = format!("mkdir() \"{}\" failed{}", folder.path.display(), Errno(&error));
            do_without(loaded, folder, what)?;
            warnings += 1;
        }
    }
    let opened = loaded.log_files.try_out(may_make).map_err(|error| {
        refuse(loaded, error.named, error.to_string(), hints::log(&error, &origin.defaults))
    });
    opened.map(|()| warnings)
}

/// Whether a file or directory could be created; with its parents, if `with_parents`.
pub fn may_make(path: &Path, with_parents: bool) -> io::Result<()> {
    let parents = path.ancestors().skip(1);
    let parent = match with_parents {
        true => parents.into_iter().find(|parent| parent.exists()),
        false => path.parent(),
    };
    net::file::may_make_files_in(parent.unwrap_or(Path::new("/")))
}

/// Handles an unavailable directory. Called nginx, the program refuses to start; under its own name
/// it starts and reports what will fail.
fn do_without(loaded: &LoadedConfig, folder: &WrittenFolder, what: String) -> Result<(), Reported> {
    if name().is_nginx() {
        return Err(refuse(loaded, folder.named, what, Some(hints::TEMP.into())));
    }
    let mut warning = Error::bare(format!("{what}; {}", folder.without));
    warning.mark = folder.named;
    load::say(&warning.level(conf::ErrorLevel::Warn).help(hints::TEMP), &loaded.sources);
    Ok(())
}

/// Reports an inaccessible file in nginx's words, and below it the position in the configuration
/// and a hint.
fn refuse(
    loaded: &LoadedConfig,
    named: Option<Span>,
    what: String,
    hint: Option<String>,
) -> Reported {
    let error = Error { mark: named, help: hint, ..Error::bare(what) };
    load::say(&error, &loaded.sources);
    Reported
}

/// Creates the directory of `path` if it is one of the program's own.
pub fn make_home_of(path: &Path, defaults: &Defaults) -> Result<(), Reported> {
    let Some(home) = path.parent().filter(|_| defaults.is_at_home(path)) else { return Ok(()) };
    if net::is_privileged() || name().is_nginx() {
        let _ = std::fs::create_dir_all(home);
        return Ok(());
    }
    // An error shows up when the file is used.
    let _ = DirBuilder::new().mode(0o700).recursive(true).create(home);
    check_home_of(path, defaults)
}

/// Rejects a directory that another user could control: below /tmp, someone else may have created
/// it first.
pub fn check_home_of(path: &Path, defaults: &Defaults) -> Result<(), Reported> {
    let Some(home) = path.parent().filter(|_| defaults.is_at_home(path)) else { return Ok(()) };
    if net::is_privileged() || name().is_nginx() {
        return Ok(());
    }
    match net::file::is_private_directory(home) {
        Ok(false) => {
            let user = net::user();
            emerg!("directory \"{}\" must be writable only by user {user}", home.display());
            Err(Reported)
        }
        _ => Ok(()),
    }
}

/// Creates a directory that only workers can access. The error is nginx's message.
fn make_folder(path: &Path, identity: Option<&ProcessIdentity>) -> Result<(), String> {
    let failed = |call: &str, error: io::Error| {
        format!("{call} \"{}\" failed{}", path.display(), Errno(&error))
    };
    match DirBuilder::new().mode(0o700).recursive(!name().is_nginx()).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed("mkdir()", error)),
    }
    let Some(identity) = identity else { return Ok(()) };
    give_to(path, identity).map_err(|error| failed("chown()", error))
}

fn give_to(path: &Path, identity: &ProcessIdentity) -> io::Result<()> {
    if std::fs::metadata(path)?.uid() == identity.user {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(identity.user), None)
}

/// Sets the main log, and standard error in addition unless that is one of its logs.
pub fn use_log(log: Arc<ErrorLog>) {
    let file = log.file().and_then(|file| file.current());
    if let Some(file) = file.filter(|_| !log.has_stderr())
        && let Err(error) = net::process::redirect_stderr(&file)
    {
        alert!("dup2(STDERR) failed{}", Errno(&error));
    }
    observe::set_main_log(log);
}

/// Reopens the logs, and gives them to the workers' user.
pub fn reopen(log_files: &LogFiles, identity: Option<&ProcessIdentity>) {
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

/// Sets the resource limits of this process before it serves, which may require root.
pub fn set_limits(settings: &ProgramSettings) {
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
    // If this fails, the table grows on demand.
    let _ = net::process::reserve_descriptors(connections.min(DESCRIPTORS_RESERVED_MAX));
    if let Some(bytes) = settings.worker_rlimit_core
        && let Err(error) = net::process::set_core_limit(bytes)
    {
        failed(format!("setrlimit(RLIMIT_CORE, {bytes})"), error);
    }
}

/// The descriptors to reserve from the start, which takes half a megabyte of kernel memory. Growing
/// the table later makes every worker wait for milliseconds.
const DESCRIPTORS_RESERVED_MAX: u64 = 65_536;

/// Sets the limit of open files. It applies to each worker, and all workers are one process, which
/// gets as many as permitted. Only a limit that nginx's worker would not get either is an error.
fn set_open_files_limit(each: Option<u64>, workers: u64) -> io::Result<()> {
    let Some(each) = each else { return net::process::raise_open_files_limit() };
    match net::process::set_open_files_limit(each.saturating_mul(workers)) {
        Err(_) if net::process::open_files_limit().1.is_some_and(|hard| each <= hard) => {
            net::process::raise_open_files_limit()
        }
        done => done,
    }
}

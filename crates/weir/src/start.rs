//! From a configuration to a running server; and what every process that serves does to itself.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use conf::Recorder;
use net::listening;
use net::signals::{
    SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, Signals,
};
use net::users::Identity;
use net::{Address, SocketOptions};
use observe::{Errno, ErrorLog, Level, LogFiles};

use crate::arguments::Arguments;
use crate::command_line::{CommandLine, Request};
use crate::embedded;
use crate::load::{self, Loaded, Origin};
use crate::log::{alert, emerg, notice};
use crate::name::name;
use crate::settings::Settings;
use crate::sockets::Sockets;
use crate::{Told, master, pid_file, single};

/// Sets the log that holds until the configuration names one.
pub fn set_first_log(origin: &Origin, test: bool) {
    let level = if test { Level::Info } else { Level::Notice };
    let file = origin.error_log.as_ref().and_then(|path| {
        let file = LogFiles::default().at(conf::bytes_path(path));
        name().make_home_of(file.path());
        match file.reopen() {
            Ok(()) => Some(file),
            Err(error) => {
                let name = name().word;
                eprintln!("{name}: [alert] could not open error log file: {error}");
                None
            }
        }
    });
    observe::set_main_log(Arc::new(match file {
        Some(file) => ErrorLog::to_file(file, level),
        None => ErrorLog::to_stderr(level),
    }));
}

/// Sends a running master what `-s` asks.
pub fn signal(request: Request, settings: &Settings) -> Result<(), Told> {
    notice!("signal process started");
    let process = pid_file::read(&settings.pid)?;
    let number = request.number();
    net::signals::send(process, number).map_err(|error| {
        alert!("kill({process}, {number}) failed{}", Errno(&error));
        Told
    })
}

/// Ends `-t` and `-T`.
pub fn test(command: &CommandLine, origin: &Origin) -> Result<(), Told> {
    let (name, file) = (name().word, String::from_utf8_lossy(&origin.conf));
    let tried = load::load(origin, &mut *origin.files()).and_then(|loaded| {
        if !command.quiet {
            eprintln!("{name}: the configuration file {file} syntax is ok");
        }
        try_out(&loaded, origin).map(|()| loaded)
    });
    let Ok(loaded) = tried else {
        eprintln!("{name}: configuration file {file} test failed");
        return Err(Told);
    };
    if !command.quiet {
        eprintln!("{name}: configuration file {file} test is successful");
    }
    if command.dump {
        // A reader that has seen enough closes the pipe.
        let _ = std::io::Write::write_all(&mut std::io::stdout(), &conf::dump(&loaded.sources));
    }
    Ok(())
}

/// Tries what a start would need: files, directories, addresses. A taken one is fine.
fn try_out(loaded: &Loaded, origin: &Origin) -> Result<(), Told> {
    if !origin.embedded {
        pid_file::try_out(&loaded.settings.pid)?;
    }
    make_ready(loaded)?;
    for (address, options) in listens(&loaded.site) {
        match listening::bind(address, options, true) {
            Ok(_) => {
                // A file that is gone already is gone.
                let _ = address.unlink();
            }
            Err(error) if error.is_taken() => {}
            Err(error) => {
                emerg!("{}{}", error.what, Errno(&error.error));
                return Err(Told);
            }
        }
    }
    Ok(())
}

/// Becomes the server. `inherited`: the sockets of the program that was here before.
pub fn run(origin: Origin, arguments: &Arguments, inherited: Option<String>) -> Result<(), Told> {
    let mut files = Recorder::new(origin.files());
    let loaded = load::load(&origin, &mut files)?;
    make_ready(&loaded)?;
    observe::set_main_log(loaded.main_log.clone());
    let mut sockets = Sockets::default();
    if let Some(names) = &inherited {
        sockets.inherit(names);
    }
    let settings = &loaded.settings;
    sockets.prepare(&listens(&loaded.site), settings.worker_processes)?;
    tell_system(settings);
    let daemon = settings.daemon && inherited.is_none();
    PARENT.get_or_init(|| if daemon { net::process::id() } else { net::process::parent() });
    if daemon {
        net::process::daemonize().map_err(|error| {
            emerg!("fork() failed{}", Errno(&error));
            Told
        })?;
    }
    let signals = take_signals()?;
    pid_file::write(&settings.pid)?;
    observe::stderr_copies(false);
    use_log(loaded.main_log.clone());
    if origin.embedded {
        print!("{}", embedded::next_steps());
    }
    match settings.master_process {
        true => {
            let in_background = daemon || inherited.is_some();
            let plan = master::Plan { origin, loaded, recording: files.to_bytes() };
            master::run(plan, sockets, signals, arguments, in_background)
        }
        false => single::run(origin, loaded, sockets, signals),
    }
}

static PARENT: OnceLock<i32> = OnceLock::new();

/// Whether the process that started this one still runs.
pub fn has_first_parent() -> bool {
    PARENT.get() == Some(&net::process::parent())
}

fn take_signals() -> Result<Signals, Told> {
    let numbers = [SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];
    Signals::take(&numbers).map_err(|error| {
        emerg!("signalfd() failed{}", Errno(&error));
        Told
    })
}

fn tell_system(settings: &Settings) {
    notice!("using the \"epoll\" event method");
    notice!("{}/{}", name().word, name().version);
    notice!("OS: {}", net::process::system());
    let (soft, hard) = net::process::open_files_limit();
    let text = |limit: Option<u64>| limit.map_or("unlimited".into(), |limit| limit.to_string());
    notice!("getrlimit(RLIMIT_NOFILE): {}:{}", text(soft), text(hard));
    let wanted = settings.worker_connections as u64 * settings.worker_processes.max(1) as u64;
    let most = match settings.worker_rlimit_nofile {
        Some(files) => Some(files * settings.worker_processes.max(1) as u64),
        None => hard,
    };
    if let Some(most) = most.filter(|most| wanted > *most) {
        let text = format_args!(
            "{} worker_connections exceed open file resource limit: {most}",
            settings.worker_connections
        );
        observe::log(Level::Warn, text);
    }
}

/// What a site listens on.
pub fn listens(site: &http::Site) -> Vec<(&Address, &SocketOptions)> {
    site.listens().iter().map(|listen| (&listen.address, &listen.options)).collect()
}

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
                "mkdir() \"{}\" failed{}; what needs it will fail",
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
    if let Some(bytes) = settings.worker_rlimit_core
        && let Err(error) = net::process::set_core_limit(bytes)
    {
        failed(format!("setrlimit(RLIMIT_CORE, {bytes})"), error);
    }
}

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

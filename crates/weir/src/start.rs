//! From a configuration to a running server; and `-t` and `-s`, which do not get so far.

use std::io::{Write, stdout};
use std::sync::{Arc, OnceLock};

use conf::Recorder;
use net::listening;
use net::signals::{
    SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, Signals,
};
use net::{Address, SocketOptions};
use observe::{Errno, ErrorLog, Level, LogFiles, tell};

use crate::arguments::Arguments;
use crate::command_line::{CommandLine, Request};
use crate::embedded;
use crate::load::{self, Loaded, Origin};
use crate::log::{alert, emerg, notice};
use crate::name::name;
use crate::settings::Settings;
use crate::shared_limits::SharedLimits;
use crate::sockets::Sockets;
use crate::{Told, master, pid_file, ready, single};

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
                tell(format_args!("{name}: [alert] could not open error log file: {error}\n"));
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
            tell(format_args!("{name}: the configuration file {file} syntax is ok\n"));
        }
        try_out(&loaded, origin).map(|()| loaded)
    });
    let Ok(loaded) = tried else {
        tell(format_args!("{name}: configuration file {file} test failed\n"));
        return Err(Told);
    };
    if !command.quiet {
        tell(format_args!("{name}: configuration file {file} test is successful\n"));
    }
    if command.dump {
        // A reader that has seen enough closes the pipe.
        let _ = stdout().write_all(&conf::dump(&loaded.sources));
    }
    Ok(())
}

/// Tries what a start would need: files, directories, addresses. A taken one is fine.
fn try_out(loaded: &Loaded, origin: &Origin) -> Result<(), Told> {
    if !origin.embedded {
        pid_file::try_out(&loaded.settings.pid)?;
    }
    ready::make_ready(loaded)?;
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

/// Becomes the server. `inherited`: the sockets of the program that was here before; `limits`: what
/// its worker processes share.
pub fn run(
    origin: Origin,
    arguments: &Arguments,
    inherited: Option<String>,
    limits: SharedLimits,
) -> Result<(), Told> {
    let mut files = Recorder::new(origin.files());
    let loaded = load::load(&origin, &mut files)?;
    ready::make_ready(&loaded)?;
    observe::set_main_log(loaded.main_log.clone());
    let mut sockets = Sockets::default();
    if let Some(names) = &inherited {
        sockets.inherit(names);
    }
    let settings = &loaded.settings;
    sockets.open(&listens(&loaded.site), settings.worker_processes)?;
    tell_system(settings);
    go_into_background(settings.daemon && inherited.is_none())?;
    let signals = take_signals()?;
    pid_file::write(&settings.pid)?;
    observe::stderr_copies(false);
    ready::use_log(loaded.main_log.clone());
    if origin.embedded {
        // Nobody need read it.
        let _ = stdout().write_all(embedded::next_steps().as_bytes());
    }
    if !settings.master_process {
        return single::run(origin, loaded, sockets, signals);
    }
    let in_background = settings.daemon || inherited.is_some();
    let plan = master::Plan { origin, loaded, recording: files.to_bytes() };
    master::run(plan, sockets, limits.or_create(), signals, arguments, in_background)
}

static PARENT: OnceLock<i32> = OnceLock::new();

/// Whether the process that started this one still runs.
pub fn has_first_parent() -> bool {
    PARENT.get() == Some(&net::process::parent())
}

fn go_into_background(daemon: bool) -> Result<(), Told> {
    PARENT.get_or_init(|| if daemon { net::process::id() } else { net::process::parent() });
    if !daemon {
        return Ok(());
    }
    net::process::daemonize().map_err(|error| {
        emerg!("fork() failed{}", Errno(&error));
        Told
    })
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
    // The limit is one for all workers, unless it is set: then it counts for each.
    let workers = settings.worker_processes.max(1) as u64;
    let wanted = workers.saturating_mul(settings.worker_connections as u64);
    let most = settings.worker_rlimit_nofile.map(|files| workers.saturating_mul(files)).or(hard);
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

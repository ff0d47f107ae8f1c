//! Starts a server from a configuration; also `-t` and `-s`.

use std::io::{Write, stdout};
use std::sync::Arc;

use std::path::{Path, PathBuf};

use conf::Recorder;
use net::listening::{self, ListenError as OpenAddressError};
use net::signals::{
    SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, Signals,
};
use net::{Address, SocketOptions};
use observe::{Errno, ErrorLog, Level, LogFile, LogFiles, LogOpenError, tell};
use zones::Zones;

use crate::arguments::Arguments;
use crate::command_line::{CommandLine, SignalRequest};
use crate::config_origin::ConfigOrigin;
use crate::control_socket::{ControlPlace, SocketPlace};
use crate::load::{self, LoadedConfig};
use crate::log::{alert, emerg, notice};
use crate::messages::Reported;
use crate::name::name;
use crate::settings::ProgramSettings;
use crate::shared_limits::SharedLimits;
use crate::sockets::ListenSockets;
use crate::steering::Rosters;
use crate::{hints, master, parent, pid_file, ready, service_manager, single};

/// Sets the log used until the configuration names one. A configuration test writes to it only if
/// it exists. If no file is named, important messages also go to the terminal.
pub fn set_first_log(origin: &ConfigOrigin, test: bool) {
    if origin.defaults.error_log.is_none() && !name().is_nginx() {
        return;
    }
    let level = if test { Level::Info } else { Level::Notice };
    let file = origin.defaults.error_log.as_ref().and_then(|path| first_log(path, origin, test));
    observe::set_main_log(Arc::new(match file {
        Some(file) => ErrorLog::to_file(file, level),
        None => ErrorLog::to_stderr(level),
    }));
}

fn first_log(path: &Path, origin: &ConfigOrigin, test: bool) -> Option<Arc<LogFile>> {
    let mut files = LogFiles::default();
    let file = files.at(path);
    if test && !path.exists() {
        let may_make = |path: &Path| ready::may_make(path, origin.defaults.is_at_home(path));
        let tried = files.try_out(may_make);
        return tried.map_err(|error| cannot_open(&error)).ok().and(Some(file));
    }
    ready::make_home_of(path, &origin.defaults).ok()?;
    file.reopen().map_err(|error| cannot_open(&error)).ok().and(Some(file))
}

fn cannot_open(error: &LogOpenError) {
    let name = name().word;
    tell(format_args!("{name}: [alert] could not open error log file: {error}\n"));
}

/// Sends the signal of `-s` to a running master.
pub fn signal(request: SignalRequest, origin: &ConfigOrigin) -> Result<(), Reported> {
    let before = Zones::default();
    let settings = load::load_quietly(&before, origin, &mut *origin.files())?.settings;
    notice!("signal process started");
    let process = pid_file::read(&settings.pid, &origin.defaults)?;
    let number = request.number();
    net::signals::send(process, number).map_err(|error| {
        alert!("kill({process}, {number}) failed{}", Errno(&error));
        Reported
    })
}

/// Runs `-t` and `-T`.
pub fn test(command: &CommandLine, origin: &ConfigOrigin) -> Result<(), Reported> {
    let (name, file) = (name().word, String::from_utf8_lossy(&origin.conf));
    let tried = load::load(origin, &mut *origin.files()).and_then(|loaded| {
        if !command.quiet {
            tell(format_args!("{name}: the configuration file {file} syntax is ok\n"));
        }
        let warnings = loaded.warnings + try_out(&loaded, origin)?;
        match warnings {
            1.. if command.strict => Err(refuse_warnings(warnings)),
            _ => Ok(loaded),
        }
    });
    let Ok(loaded) = tried else {
        tell(format_args!("{name}: configuration file {file} test failed\n"));
        return Err(Reported);
    };
    if !command.quiet {
        tell(format_args!("{name}: configuration file {file} test is successful\n"));
    }
    if command.dump {
        // The reader may have closed the pipe.
        let _ = stdout().write_all(&conf::dump(&loaded.sources));
    }
    Ok(())
}

fn refuse_warnings(count: usize) -> Reported {
    let text = match count {
        1 => "1 warning counts as an error".into(),
        _ => format!("{count} warnings count as errors"),
    };
    tell(format_args!("{}: {text} with --strict\n", name().word));
    Reported
}

/// Tests files, directories and addresses that a start needs. An address in use is fine. No files
/// are created: where nginx creates a file, only permissions are checked. Returns the number of
/// warnings.
fn try_out(loaded: &LoadedConfig, origin: &ConfigOrigin) -> Result<usize, Reported> {
    let mut warnings = 0;
    // The built-in configuration creates a directory for its files.
    if origin.port.is_none() {
        pid_file::try_out(&loaded.settings.pid, &origin.defaults)?;
        warnings = ready::try_out(loaded, origin)?;
    }
    for (address, options) in loaded.sites.listens() {
        match try_address(address, options) {
            Ok(()) => {}
            Err(error) if error.is_taken() => {}
            Err(error) => {
                emerg!("{}{}", error.what, Errno(&error.error));
                return Err(Reported);
            }
        }
    }
    Ok(warnings)
}

fn try_address(address: &Address, options: &SocketOptions) -> Result<(), OpenAddressError> {
    match address {
        Address::Ip(_) | Address::Udp(_) => listening::bind(address, options, true).map(drop),
        Address::Unix(path) if path.exists() => Ok(()),
        Address::Unix(path) => ready::may_make(path, false).map_err(|error| OpenAddressError {
            what: format!("bind() to {address} failed"),
            error,
        }),
    }
}

/// The configuration to serve, and how the server starts.
pub struct ServerStart<'a> {
    pub origin: ConfigOrigin,
    pub arguments: &'a Arguments,
    /// The sockets that are inherited from another program.
    pub inherited: Option<String>,
    /// The limits that its worker processes share.
    pub limits: SharedLimits,
    /// The text to print once it listens.
    pub greeting: Option<String>,
    /// The control socket that `-l` names.
    pub control_socket: Option<PathBuf>,
    /// Whether warnings about the configuration are reported.
    pub warn: bool,
}

pub fn run(start: ServerStart<'_>) -> Result<(), Reported> {
    let ServerStart { origin, arguments, inherited, limits, greeting, control_socket, warn } =
        start;
    let mut files = Recorder::new(origin.files());
    let loaded = match warn {
        true => load::load(&origin, &mut files)?,
        false => load::load_quietly(&Zones::default(), &origin, &mut files)?,
    };
    ready::make_ready(&loaded, &origin)?;
    if origin.port.is_none() {
        // In the background, its failure would go unnoticed.
        pid_file::try_out(&loaded.settings.pid, &origin.defaults)?;
    }
    // Messages on the terminal keep their form.
    if name().is_nginx() || !loaded.main_log.has_stderr() {
        observe::set_main_log(loaded.main_log.clone());
    }
    let mut sockets = ListenSockets::default();
    if let Some(names) = &inherited {
        sockets.inherit(names);
    }
    let settings = &loaded.settings;
    listen(&mut sockets, &loaded, &origin)?;
    let control = open_control_socket(control_socket, &loaded, &origin, inherited.is_some())?;
    tell_system(settings);
    go_into_background(settings.daemon, inherited.is_some())?;
    let signals = take_signals()?;
    pid_file::write(&settings.pid, &origin.defaults)?;
    observe::stderr_copies(false);
    ready::use_log(loaded.main_log.clone());
    if let Some(greeting) = greeting {
        // A closed pipe is not an error.
        let _ = stdout().write_all(greeting.as_bytes());
    }
    if !settings.master_process {
        return single::run(origin, loaded, sockets, signals, control);
    }
    let in_background = settings.daemon || inherited.is_some();
    let (recording, rosters) = (files.to_bytes(), Rosters::default());
    let plan = master::WorkerPlan { origin, loaded, recording, rosters };
    master::run(plan, sockets, limits.or_create(), signals, arguments, in_background, control)
}

/// Opens the control socket, if there is one, while errors still reach the terminal.
fn open_control_socket(
    named: Option<PathBuf>,
    loaded: &LoadedConfig,
    origin: &ConfigOrigin,
    takes_over: bool,
) -> Result<ControlPlace, Reported> {
    // The process may change its folder.
    let fixed = named.map(|path| std::path::absolute(&path).unwrap_or(path));
    let open = fixed.as_ref().or(loaded.settings.control_socket.as_ref()).map(|path| {
        ready::make_home_of(path, &origin.defaults)?;
        SocketPlace::open(path, takes_over).map_err(|error| {
            emerg!("the control socket \"{}\" cannot be opened{}", path.display(), Errno(&error));
            Reported
        })
    });
    let open = open.transpose()?;
    Ok(ControlPlace { fixed, open })
}

/// Opens the sockets; if an address is in use, prints which process holds it.
fn listen(
    sockets: &mut ListenSockets,
    loaded: &LoadedConfig,
    origin: &ConfigOrigin,
) -> Result<(), Reported> {
    let wanted = loaded.sites.listens();
    let taken = || wanted.iter().filter(|(address, options)| is_taken(address, options));
    // The built-in configuration does not wait for its address to become free.
    if let Some((port, (address, _))) = origin.port.zip(taken().next()) {
        emerg!("bind() to {address} failed (98: Address already in use)");
        hints::print_holder(address);
        tell(format_args!("      use \"weir --port {}\" to serve on another port\n", port ^ 1));
        return Err(Reported);
    }
    sockets.open(&wanted, loaded.settings.worker_processes).inspect_err(|Reported| {
        taken().for_each(|(address, _)| hints::print_holder(address));
    })
}

fn is_taken(address: &Address, options: &SocketOptions) -> bool {
    match address {
        Address::Ip(_) | Address::Udp(_) => {
            listening::bind(address, options, true).is_err_and(|e| e.is_taken())
        }
        Address::Unix(path) => path.exists(),
    }
}

fn go_into_background(daemon: bool, takes_over: bool) -> Result<(), Reported> {
    let daemon = daemon && !takes_over;
    // A service manager is no older master, for which an upgrade would have to wait.
    if daemon || takes_over || !service_manager::is_there() {
        parent::remember_first(daemon);
    }
    if !daemon {
        return Ok(());
    }
    net::process::daemonize().map_err(|error| {
        emerg!("fork() failed{}", Errno(&error));
        Reported
    })
}

fn take_signals() -> Result<Signals, Reported> {
    let numbers = [SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];
    Signals::take(&numbers).map_err(|error| {
        emerg!("signalfd() failed{}", Errno(&error));
        Reported
    })
}

fn tell_system(settings: &ProgramSettings) {
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

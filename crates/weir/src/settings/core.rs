//! nginx's core module: processes and their limits.

use std::sync::Arc;

use conf::{Error, Milliseconds, Number, Offset, Result, Text};

use net::users::{self, ProcessIdentity};

use super::ProgramSettings;
use super::load_module::load_module;
use super::values::{
    Affinity, Env, File, NoEffect, Priority, SocketFile, UserLine, WorkerProcesses,
};

conf::words! {
    /// What to do where the program finds itself in the wrong.
    pub enum DebugPoint {
        /// Stop, for a debugger.
        Stop = "stop",
        /// Leave a core file.
        Abort = "abort",
    }
}

conf::directives! {
    declare {
        /// Names a dynamic module of nginx. Nothing is loaded: Weir has the module built in, or
        /// does without it.
        ///
        /// Syntax: FILE
        /// Differs: a built-in module is accepted whether or not its file exists; a known module
        /// that Weir does not have is a notice in the log, and its directives are errors where they
        /// are used; any other module is an error.
        ///
        /// ```nginx
        /// load_module modules/ngx_http_realip_module.so;
        /// ```
        load_module(1..=1) in MAIN => load_module;
    }

    in MAIN;

    /// Whether the server starts although the configuration contains directives that this version
    /// does not support. It applies to the whole configuration, wherever it is written.
    ///
    /// Differs: nginx does not have it. The option `--lenient` and the environment variable
    /// WEIR_LENIENT=1 do the same.
    ///
    /// ```nginx
    /// lenient on;
    /// ```
    lenient: bool = "off",
    /// Whether the server puts itself into the background. Service managers and containers need
    /// `off`.
    ///
    /// ```nginx
    /// daemon off;
    /// ```
    daemon: bool = "on",
    /// Whether a master process starts the worker process and watches it. `off` is for debugging.
    ///
    /// ```nginx
    /// master_process off;
    /// ```
    master_process: bool = "on",
    /// How often nginx updates its clock.
    ///
    /// Differs: no effect; the clock is read at every wake-up.
    timer_resolution: Option<NoEffect<Milliseconds>>,
    /// The file with the process id of the master, for `-s` and for service managers.
    ///
    /// Syntax: FILE
    /// Default: the installation's
    /// Differs: called weir by a user who is not root, the default is a file of the user.
    ///
    /// ```nginx
    /// pid /run/weir/weir.pid;
    /// ```
    pid: Option<File>,
    /// The socket at which the master process answers `weir ctl` and requests of the API. Only the
    /// user who starts the server may use it.
    ///
    /// Syntax: unix:PATH
    /// Differs: nginx does not have it; NGINX Plus has the option -l, which also works here and
    /// takes precedence. See docs/runtime-api.md.
    ///
    /// ```nginx
    /// control_socket unix:/run/weir.sock;
    /// ```
    control_socket: Option<SocketFile>,
    /// A file for locks that nginx needs on systems without atomic operations.
    ///
    /// Syntax: FILE
    /// Differs: no effect; no lock file is needed.
    lock_file: Option<File>,
    /// The number of workers. `auto` is one for each processor.
    ///
    /// Syntax: NUMBER | auto
    /// Differs: workers are threads of one worker process, so all of them share one exact state of
    /// the upstream servers.
    ///
    /// ```nginx
    /// worker_processes auto;
    /// ```
    worker_processes: WorkerProcesses = "1",
    /// What to do when the program detects an internal error.
    ///
    /// Syntax: abort | stop
    /// Differs: no effect; the error is logged.
    debug_points: Option<NoEffect<DebugPoint>>,
    /// The user and group that the worker process runs as. Only root can change the user; for other
    /// users this directive is ignored with a warning.
    ///
    /// Syntax: USER [GROUP]
    /// Default: the user who starts the server, or nobody if that is root
    ///
    /// ```nginx
    /// user www-data;
    /// ```
    user: Option<UserLine>,
    /// The scheduling priority of the workers, as with `nice`: a negative number is a higher
    /// priority.
    ///
    /// Syntax: NUMBER
    ///
    /// ```nginx
    /// worker_priority -5;
    /// ```
    worker_priority: Priority = "0",
    /// The processors that each worker may run on: a mask of bits for each worker, or `auto` for
    /// one processor each. A mask after `auto` limits which processors are used.
    ///
    /// Syntax: MASK...
    /// Syntax: auto [MASK]
    ///
    /// ```nginx
    /// worker_processes auto;
    /// worker_cpu_affinity auto;
    /// ```
    worker_cpu_affinity: Option<Affinity>,
    /// The largest number of open files for each worker. It counts connections to clients and to
    /// servers.
    ///
    /// ```nginx
    /// worker_rlimit_nofile 65536;
    /// ```
    worker_rlimit_nofile: Option<Number>,
    /// The largest size of a core file.
    worker_rlimit_core: Option<Offset>,
    /// How long a graceful shutdown waits for connections in use before it closes them, and a
    /// reload for requests, tunnels and sessions of the old configuration before it ends them.
    /// Connections whose requests are newer stay open at a reload. 0 means no limit.
    ///
    /// ```nginx
    /// worker_shutdown_timeout 30s;
    /// ```
    worker_shutdown_timeout: Milliseconds = "0",
    /// How long the server still serves after `weir -s quit`, while `ready` answers 503, HTTP/1
    /// connections end with their next reply, and HTTP/2 clients get GOAWAY: load balancers and
    /// clients go elsewhere before the sockets are closed. The delay counts from
    /// `weir ctl ready off`, if that came first. A second `quit` ends it, and after USR2 there is
    /// none.
    ///
    /// Differs: nginx does not have it; Caddy has an option of that name.
    ///
    /// ```nginx
    /// shutdown_delay 5s;
    /// ```
    shutdown_delay: Milliseconds = "0",
    /// How long the worker process may take to switch to a new configuration, in addition to ten
    /// times the time the master needed to read it. After that the process counts as hung, and a
    /// new process replaces it.
    ///
    /// Differs: nginx does not have it, because it starts new processes on every reload.
    ///
    /// ```nginx
    /// worker_reload_timeout 30s;
    /// ```
    worker_reload_timeout: Milliseconds = "30s",
    /// The current directory of the worker process, where core files are written.
    ///
    /// ```nginx
    /// working_directory /var/lib/weir;
    /// ```
    working_directory: Option<Text>,
    /// Keeps an environment variable for the worker process, or sets it. All others are removed,
    /// except TZ.
    ///
    /// Syntax: NAME[=VALUE]
    ///
    /// ```nginx
    /// env MALLOC_ARENA_MAX=2;
    /// ```
    env: Vec<Env>,
}

/// Passes the settings to the program.
pub fn install(conf: &Arc<Conf>, settings: &mut ProgramSettings) -> Result<()> {
    settings.daemon = conf.daemon;
    settings.master_process = conf.master_process;
    if let Some(File(path)) = &conf.pid {
        settings.pid.clone_from(path);
    }
    settings.control_socket = conf.control_socket.as_ref().map(|file| file.0.clone());
    settings.worker_processes = conf.worker_processes.0;
    settings.user = worker_identity(conf.user.as_ref())?;
    settings.worker_priority = conf.worker_priority.0;
    settings.worker_cpu_affinity.clone_from(&conf.worker_cpu_affinity);
    settings.worker_rlimit_nofile = conf.worker_rlimit_nofile.map(|limit| limit.0);
    settings.worker_rlimit_core = conf.worker_rlimit_core.map(|limit| limit.0);
    settings.worker_shutdown_timeout_ms = conf.worker_shutdown_timeout.0;
    settings.shutdown_delay_ms = conf.shutdown_delay.0;
    settings.worker_reload_timeout_ms = conf.worker_reload_timeout.0;
    let directory = conf.working_directory.as_ref();
    settings.working_directory = directory.map(|text| conf::bytes_path(&text.0).to_owned());
    settings.env.clone_from(&conf.env);
    Ok(())
}

/// The default user of workers: nobody.
const USER: &[u8] = b"nobody";

fn worker_identity(line: Option<&UserLine>) -> Result<Option<ProcessIdentity>> {
    match line {
        Some(user) => Ok(user.0.clone()),
        None if !net::is_privileged() => Ok(None),
        None => match users::user(USER) {
            Ok(Some((user, group))) => Ok(Some(ProcessIdentity { name: USER.into(), user, group })),
            _ => Err(Error::bare("getpwnam(\"nobody\") failed")),
        },
    }
}

//! nginx's core module: processes and their limits.

use std::sync::Arc;

use conf::{Error, Milliseconds, Number, Offset, Result, Text};

use net::users::{self, Identity};

use super::Settings;
use super::values::{Affinity, Env, File, NoEffect, Priority, User, Workers, load_module};

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
        /// Names a dynamic module; everything is built in, so this only checks that it is.
        load_module(1..=1) in MAIN => load_module;
    }

    in MAIN;

    /// Whether the server goes into the background.
    daemon: bool = "on",
    /// Whether a master process watches over a worker process.
    master_process: bool = "on",
    /// How coarse the clock is; here it is read at every wake-up.
    timer_resolution: Option<NoEffect<Milliseconds>>,
    /// The file with the number of the master process.
    pid: File,
    /// nginx's file for locks, which no system with atomic operations needs.
    lock_file: Option<File>,
    /// The number of workers: threads of the worker process. `auto`: one per processor.
    worker_processes: Workers = "1",
    /// What to do when the program finds a mistake of its own; here it is logged.
    debug_points: Option<NoEffect<DebugPoint>>,
    /// Who the worker process runs as: user and group.
    user: Option<User>,
    /// The workers' scheduling priority, lowest number first.
    worker_priority: Priority = "0",
    /// The processors that each worker may use, as masks; `auto`: one each.
    worker_cpu_affinity: Option<Affinity>,
    /// Open files for each worker.
    worker_rlimit_nofile: Option<Number>,
    /// Largest core file.
    worker_rlimit_core: Option<Offset>,
    /// How long a shutdown waits for connections in use.
    worker_shutdown_timeout: Milliseconds = "0",
    /// The worker process's current directory.
    working_directory: Option<Text>,
    /// Environment variables that the worker process keeps or gets.
    env: Vec<Env>,
}

/// Hands the settings to the program.
pub fn install(conf: &Arc<Conf>, settings: &mut Settings) -> Result<()> {
    settings.daemon = conf.daemon;
    settings.master_process = conf.master_process;
    settings.pid.clone_from(&conf.pid.0);
    settings.worker_processes = conf.worker_processes.0;
    settings.user = who(conf.user.as_ref())?;
    settings.worker_priority = conf.worker_priority.0;
    settings.worker_cpu_affinity.clone_from(&conf.worker_cpu_affinity);
    settings.worker_rlimit_nofile = conf.worker_rlimit_nofile.map(|limit| limit.0);
    settings.worker_rlimit_core = conf.worker_rlimit_core.map(|limit| limit.0);
    settings.worker_shutdown_timeout_ms = conf.worker_shutdown_timeout.0;
    let directory = conf.working_directory.as_ref();
    settings.working_directory = directory.map(|text| conf::bytes_path(&text.0).to_owned());
    settings.env.clone_from(&conf.env);
    Ok(())
}

/// Who workers run as where no `user` says it: nobody.
const USER: &[u8] = b"nobody";

fn who(said: Option<&User>) -> Result<Option<Identity>> {
    match said {
        Some(user) => Ok(user.0.clone()),
        None if !net::is_privileged() => Ok(None),
        None => match users::user(USER) {
            Ok(Some((user, group))) => Ok(Some(Identity { name: USER.into(), user, group })),
            _ => Err(Error::bare("getpwnam(\"nobody\") failed")),
        },
    }
}

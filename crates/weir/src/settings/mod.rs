//! What the main level and `events {}` say: how many workers, who they are, where messages go.
//!
//! The modules are nginx's. What a block of another subsystem says (`http {}`) is not here.

mod core;
mod error_log;
mod event_core;
mod regex;
mod thread_pool;
mod values;

use std::path::PathBuf;

use conf::{Info, Result};

use crate::Told;
use crate::command_line::CommandLine;
use crate::log::{Level, Log};
pub use values::{Affinity, Env, User};

conf::features! {
    into Settings;
    core: core,
    error_log: error_log,
    regex: regex,
    thread_pool: thread_pool,
    event_core: event_core,
}

/// The blocks of the main level, each with a subsystem of its own inside.
pub const BLOCKS: &[Info] = &[
    Info {
        name: "events",
        levels: conf::MAIN,
        docs: &["How connections are processed."],
        default: "",
        args: (0, 0),
        block: true,
    },
    Info {
        name: "http",
        levels: conf::MAIN,
        docs: &["The HTTP server."],
        default: "",
        args: (0, 0),
        block: true,
    },
];

/// The settings of the program, complete.
#[derive(Default)]
pub struct Settings {
    pub daemon: bool,
    pub master_process: bool,
    pub pid: PathBuf,
    pub worker_processes: usize,
    pub user: Option<User>,
    pub worker_priority: i32,
    pub worker_cpu_affinity: Option<Affinity>,
    pub worker_rlimit_nofile: Option<u64>,
    pub worker_rlimit_core: Option<u64>,
    pub worker_shutdown_timeout_ms: u64,
    pub working_directory: Option<PathBuf>,
    pub env: Vec<Env>,
    pub error_logs: Vec<(Option<PathBuf>, Level)>,
    pub worker_connections: usize,
}

impl Settings {
    /// Opens the error logs that the configuration names, or the one it need not name.
    pub fn open_logs(&self, command: &CommandLine, log: &mut Log) -> Result<Log, Told> {
        let mut logs = self.error_logs.clone();
        if logs.is_empty() {
            let path = command.error_log().map(|path| conf::bytes_path(&path).to_owned());
            logs.push((path, Level::Error));
        }
        Log::named(logs).map_err(|message| {
            log.emerg(message);
            Told
        })
    }
}

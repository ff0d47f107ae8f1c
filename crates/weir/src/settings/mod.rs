//! Settings of the main level and `events {}`: number of workers, their user, logs.
//!
//! The modules are nginx's. Blocks of other subsystems (`http {}`) are not here.

mod core;
mod debug_connection;
mod error_log;
mod event_core;
mod load_module;
mod regex;
mod thread_pool;
mod values;

use std::path::PathBuf;

use conf::{Error, Info, InstallTarget, Load, MAIN, Result};
use observe::{ErrorLog, MainLogTags};

pub use debug_connection::DebugClient;
pub use load_module::ModulesUsed;
use net::users::ProcessIdentity;
pub use values::{Affinity, Env};

conf::features! {
    into ProgramSettings;
    core: core,
    error_log: error_log,
    regex: regex,
    thread_pool: thread_pool,
    event_core: event_core,
}

/// The blocks of the main level, each with a subsystem of its own inside.
pub const BLOCKS: &[Info] = conf::rows! {
    /// Settings for processing connections. The block is required, but can be empty.
    ///
    /// ```nginx
    /// events {
    ///     worker_connections 4096;
    /// }
    /// ```
    events(0..=0) {} in MAIN;
    /// The HTTP server: its settings and its virtual servers.
    ///
    /// ```nginx
    /// http {
    ///     server {
    ///         listen 8080;
    ///         root /var/www/html;
    ///     }
    /// }
    /// ```
    http(0..=0) {} in MAIN;
    /// Servers of TCP connections, whatever these carry. Names in it (variables, upstream groups)
    /// are its own: `http {}` may use the same.
    ///
    /// ```nginx
    /// stream {
    ///     server {
    ///         listen 127.0.0.1:9000;
    ///         return "$remote_addr\n";
    ///     }
    /// }
    /// ```
    stream(0..=0) {} in MAIN;
};

/// The settings of the program, complete.
#[derive(Default)]
pub struct ProgramSettings {
    pub daemon: bool,
    pub master_process: bool,
    pub pid: PathBuf,
    pub control_socket: Option<PathBuf>,
    pub worker_processes: usize,
    /// The workers' user; `None`: the user who started the program.
    pub user: Option<ProcessIdentity>,
    pub worker_priority: i32,
    pub worker_cpu_affinity: Option<Affinity>,
    pub worker_rlimit_nofile: Option<u64>,
    pub worker_rlimit_core: Option<u64>,
    pub worker_shutdown_timeout_ms: u64,
    pub shutdown_delay_ms: u64,
    pub worker_reload_timeout_ms: u64,
    pub working_directory: Option<PathBuf>,
    pub env: Vec<Env>,
    pub error_log: Option<ErrorLog>,
    pub error_log_tags: Option<MainLogTags>,
    pub worker_connections: usize,
    pub accept_mutex_delay_ms: u64,
    pub debug_connections: Vec<DebugClient>,
}

impl InstallTarget for ProgramSettings {}

impl ProgramSettings {
    /// Checks that require the whole configuration.
    pub fn check(&self, listens: usize, load: &mut Load<'_>) -> Result<()> {
        let connections = self.worker_connections;
        if connections < listens + 1 {
            return Err(Error::bare(format!(
                "{connections} worker_connections are not enough for {listens} listening sockets"
            )));
        }
        if let Some(affinity) = &self.worker_cpu_affinity
            && !affinity.auto
            && !matches!(affinity.masks.len(), 0 | 1)
            && affinity.masks.len() != self.worker_processes
        {
            load.warn(Error::bare(
                "the number of \"worker_processes\" is not equal to the number of \
                 \"worker_cpu_affinity\" masks, using last mask for remaining worker processes",
            ));
        }
        Ok(())
    }
}

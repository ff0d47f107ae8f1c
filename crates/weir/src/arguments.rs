//! The program's command line, kept for its process title and for its successors.

use std::ffi::{OsStr, OsString};

use crate::name::name;

/// The argument that makes the program a worker process. Users do not type it.
const WORKER_PROCESS: &str = "--worker-process";

/// Name and arguments.
#[derive(Clone)]
pub struct Arguments(Vec<OsString>);

impl Arguments {
    /// This process's arguments. They are copied, because the process title overwrites them.
    pub fn take() -> Self {
        Self(std::env::args_os().collect())
    }

    /// The name that the program was started by.
    pub fn called(&self) -> Option<&OsStr> {
        self.0.first().map(OsString::as_os_str)
    }

    /// The arguments after the name.
    pub fn rest(&self) -> &[OsString] {
        self.0.get(1..).unwrap_or_default()
    }

    /// Whether a master has started it as a worker process.
    pub fn is_worker_process(&self) -> bool {
        self.rest() == [WORKER_PROCESS]
    }

    /// This program again, as a worker process.
    pub fn worker_process(&self) -> net::process::Launch {
        let called = self.called().unwrap_or(OsStr::new(name().word));
        net::process::Launch::again(called).argument(WORKER_PROCESS)
    }

    /// The file that has the program's name now, with the same arguments.
    pub fn new_binary(&self) -> std::io::Result<net::process::Launch> {
        let called = self.called().unwrap_or_default();
        // The shell has found a name without a slash in the PATH.
        let by_path = called.as_encoded_bytes().contains(&b'/');
        let path = if by_path { called.into() } else { std::env::current_exe()?.into_os_string() };
        let launch = net::process::Launch::other(&path, called);
        Ok(self.rest().iter().fold(launch, |launch, argument| launch.argument(argument)))
    }

    /// The process title of the master: its command line.
    pub fn master_title(&self) -> String {
        let words = self.0.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
        format!("{}: master process {}", name().word, words.join(" "))
    }
}

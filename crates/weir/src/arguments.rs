//! The program's command line, kept for its process title and for its successors.

use std::ffi::{OsStr, OsString};

use crate::name::name;

/// The word that makes the program a worker process. Nothing that a person would type.
const WORKER_PROCESS: &str = "--worker-process";

/// Name and arguments.
#[derive(Clone)]
pub struct Arguments(Vec<OsString>);

impl Arguments {
    /// This process's arguments. They are copied, because the process title overwrites them.
    pub fn take() -> Self {
        Self(std::env::args_os().collect())
    }

    /// What it was called.
    pub fn called(&self) -> Option<&OsStr> {
        self.0.first().map(OsString::as_os_str)
    }

    /// What follows.
    pub fn rest(&self) -> &[OsString] {
        self.0.get(1..).unwrap_or_default()
    }

    /// Whether a master has started it to serve.
    pub fn is_worker_process(&self) -> bool {
        self.rest() == [WORKER_PROCESS]
    }

    /// This program again, as a worker process.
    pub fn worker_process(&self) -> net::process::Launch {
        let called = self.called().unwrap_or(OsStr::new(name().word));
        net::process::Launch::again(called).argument(WORKER_PROCESS)
    }

    /// Whatever has the file's name now, called as this one was.
    pub fn new_binary(&self) -> std::io::Result<net::process::Launch> {
        let called = self.called().unwrap_or_default();
        // A bare name was found by the shell; where, only the system knows.
        let by_path = called.as_encoded_bytes().contains(&b'/');
        let path = if by_path { called.into() } else { std::env::current_exe()?.into_os_string() };
        let launch = net::process::Launch::other(&path, called);
        Ok(self.rest().iter().fold(launch, |launch, argument| launch.argument(argument)))
    }

    /// The master's title: how it was called.
    pub fn master_title(&self) -> String {
        let words = self.0.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
        format!("{}: master process {}", name().word, words.join(" "))
    }
}

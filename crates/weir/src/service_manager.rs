//! The service manager that started this program, such as systemd, and what it is told: the
//! protocol of sd_notify(3). Without `NOTIFY_SOCKET` there is none.
//!
//! | when | message |
//! |---|---|
//! | a worker serves for the first time | `READY=1` |
//! | a configuration is about to be read | `RELOADING=1`, `MONOTONIC_USEC=` |
//! | it is in use, or refused | `READY=1` |
//! | the server is told to end | `STOPPING=1`, or `MAINPID=` if a new binary goes on |
//! | half of `WATCHDOG_USEC` is over, and clients are served | `WATCHDOG=1` |
//! | any of this has changed | `STATUS=` |
//!
//! It does not know what a master is; a master's part is in `master/service.rs`.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use net::NotifySocket;
use observe::Errno;

use crate::log::alert;

const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG_USEC: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// Whether a service manager started this program.
pub fn is_there() -> bool {
    std::env::var_os(SOCKET).is_some_and(|name| !name.is_empty())
}

/// The variables by which a new binary finds the same manager. Its watchdog is the new process's.
pub fn variables() -> impl Iterator<Item = (&'static str, OsString)> {
    [SOCKET, WATCHDOG_USEC].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// A connection to the manager.
pub struct ServiceManager {
    socket: NotifySocket,
    told: ServiceState,
    watchdog: Option<Duration>,
}

/// The state of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceState {
    pub phase: ServicePhase,
    /// One line for people.
    pub status: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServicePhase {
    #[default]
    Starting,
    Ready,
    Reloading,
    Stopping,
}

impl ServiceManager {
    /// The one that the environment names.
    pub fn of_environment() -> Option<Self> {
        let name = std::env::var_os(SOCKET).filter(|name| !name.is_empty())?;
        let socket = NotifySocket::new(name.as_bytes()).map_err(|error| {
            alert!("NOTIFY_SOCKET \"{}\" cannot be used{}", name.display(), Errno(&error));
        });
        Some(Self { socket: socket.ok()?, told: ServiceState::default(), watchdog: watchdog() })
    }

    /// The pause between two signs of life, if the manager waits for them.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    pub fn phase(&self) -> ServicePhase {
        self.told.phase
    }

    /// Tells what has changed.
    pub fn tell(&mut self, state: ServiceState) {
        let message = message(&self.told, &state);
        if !message.is_empty() {
            self.send(&message);
        }
        self.told = state;
    }

    /// Tells that a configuration is about to be read.
    pub fn reloading(&mut self) {
        if self.told.phase == ServicePhase::Ready {
            let status = "Reading the configuration".to_owned();
            self.tell(ServiceState { phase: ServicePhase::Reloading, status });
        }
    }

    /// Tells that the service lives.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// Tells that another process is the service's main one from now on; it tells the rest.
    pub fn hand_over(self, pid: i32) {
        self.send(&format!("MAINPID={pid}"));
    }

    fn send(&self, message: &str) {
        if let Err(error) = self.socket.send(message.as_bytes()) {
            alert!("the service manager cannot be told \"{message}\"{}", Errno(&error));
        }
    }
}

/// Half of the time after which the manager counts this process as hung.
fn watchdog() -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let microseconds = number(WATCHDOG_USEC).filter(|microseconds| *microseconds > 0)?;
    let is_own = number(WATCHDOG_PID).is_none_or(|pid| pid == net::process::id() as u64);
    is_own.then(|| Duration::from_micros(microseconds / 2).max(Duration::from_millis(1)))
}

/// The message about a change; empty if there is none.
fn message(told: &ServiceState, state: &ServiceState) -> String {
    let mut message = String::new();
    match state.phase {
        phase if phase == told.phase => {}
        ServicePhase::Starting => {}
        ServicePhase::Ready => message += "READY=1\n",
        ServicePhase::Reloading => {
            let now_us = net::clock::refresh() / 1000;
            let _ = write!(message, "RELOADING=1\nMONOTONIC_USEC={now_us}\n");
        }
        ServicePhase::Stopping => message += "STOPPING=1\n",
    }
    if state.status != told.status {
        let _ = writeln!(message, "STATUS={}", state.status);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_told() {
        let state = |phase, status: &str| ServiceState { phase, status: status.into() };
        let starting = ServiceState::default();
        let ready = state(ServicePhase::Ready, "Serving");
        assert_eq!(message(&starting, &ready), "READY=1\nSTATUS=Serving\n");
        assert_eq!(message(&ready, &ready), "");
        let stopping = state(ServicePhase::Stopping, "Serving");
        assert_eq!(message(&ready, &stopping), "STOPPING=1\n");
        let reloading = message(&ready, &state(ServicePhase::Reloading, "Reading"));
        let lines: Vec<&str> = reloading.lines().collect();
        assert_eq!((lines[0], lines[2]), ("RELOADING=1", "STATUS=Reading"));
        let now_us = lines[1].strip_prefix("MONOTONIC_USEC=").unwrap();
        assert!(now_us.parse::<u64>().unwrap() > 0);
    }
}

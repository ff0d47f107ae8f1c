//! The masters of an installation, as their pid files and their answers show them.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::client;
use super::patience::{PATIENCE, eventually};

/// What Weir calls itself through a link named `nginx`.
pub(super) const WEIR: &str = "nginx/1.31";
/// What the nginx that is replaced calls itself: Debian 12's, 13's.
pub(super) const NGINX_ITSELF: &str = "nginx/1.2";

/// Where masters write, and where they answer.
pub(super) struct Masters {
    /// The folder with `nginx.pid`.
    pub(super) run: PathBuf,
    pub(super) error_log: PathBuf,
    pub(super) address: SocketAddr,
}

impl Masters {
    /// Waits for one master, or for both.
    pub(super) fn await_count(&self, count: usize) -> Result<(), String> {
        let old = || self.pid("nginx.pid.oldbin").is_some();
        let there = || self.pid("nginx.pid").is_some() && old() == (count == 2);
        eventually(there)
            .ok_or_else(|| format!("not {count} masters after {PATIENCE:?}\n{}", self.log()))
    }

    /// Waits until new connections are answered by this program alone.
    pub(super) fn await_server(&self, server: &str) -> Result<(), String> {
        let answers =
            || (0..8).all(|_| client::server(self.address).is_some_and(|s| s.starts_with(server)));
        eventually(answers)
            .ok_or_else(|| format!("no \"{server}\" after {PATIENCE:?}\n{}", self.log()))
    }

    pub(super) fn pid(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.run.join(name)).ok()?;
        Some(text.trim().to_owned()).filter(|pid| !pid.is_empty())
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.error_log).unwrap_or_default()
    }
}

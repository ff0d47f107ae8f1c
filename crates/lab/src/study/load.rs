//! The load of each turn.

use serde::{Deserialize, Serialize};

use super::{FactorTarget, options};

/// The parameters of the generator in one turn.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyLoad {
    pub(crate) connections: u32,
    #[serde(default = "root")]
    pub(crate) path: String,
    /// Whether each request uses its own connection.
    #[serde(default)]
    pub(crate) close: bool,
    /// Whether connections are encrypted.
    #[serde(default)]
    pub(crate) tls: bool,
    /// Whether datagrams are sent, not requests.
    #[serde(default)]
    pub(crate) udp: bool,
    /// Further options of `weir load`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// Whether the study expects replies with statuses other than 2xx.
    #[serde(default)]
    pub(crate) errors: bool,
    #[serde(default = "turn_ms")]
    pub(crate) turn_ms: u64,
    /// Whether server and generator each have their own processor. If not, the system places them,
    /// as rows with several workers need.
    #[serde(default = "pinned")]
    pub(crate) pinned: bool,
}

/// The most connections of a generator.
const CONNECTIONS_MAX: u32 = 10_000;
/// The lengths of a turn in milliseconds: shorter turns are noise, longer ones drift apart.
const TURN_MS: std::ops::RangeInclusive<u64> = 50..=10_000;

fn root() -> String {
    "/".to_owned()
}

fn turn_ms() -> u64 {
    300
}

fn pinned() -> bool {
    true
}

impl StudyLoad {
    /// Sets a field from the level of a factor; targets outside the load are ignored.
    pub(super) fn set(&mut self, target: FactorTarget, text: &str) -> Result<(), String> {
        let switch = || match text {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(format!("\"{text}\" must be on or off")),
        };
        match target {
            FactorTarget::Connections => {
                self.connections =
                    text.parse().map_err(|_| format!("\"{text}\" is no number of connections"))?;
            }
            FactorTarget::Path => text.clone_into(&mut self.path),
            FactorTarget::Close => self.close = switch()?,
            FactorTarget::Tls => self.tls = switch()?,
            FactorTarget::Udp => self.udp = switch()?,
            FactorTarget::Options => self.options.extend(options::words(text)?),
            _ => {}
        }
        Ok(())
    }

    /// The first problem.
    pub(super) fn problem(&self) -> Option<String> {
        if let Some(problem) = extent_problem(self.connections, self.turn_ms) {
            return Some(problem);
        }
        if !self.path.starts_with('/') {
            return Some("load.path must begin with a slash".to_owned());
        }
        if self.udp && (self.tls || self.close) {
            return Some("load.udp is without load.tls and load.close".to_owned());
        }
        options::problem(&self.options)
    }
}

/// The first problem with the size of a load.
pub(crate) fn extent_problem(connections: u32, turn_ms: u64) -> Option<String> {
    if !(1..=CONNECTIONS_MAX).contains(&connections) {
        return Some(format!("load.connections must be from 1 to {CONNECTIONS_MAX}"));
    }
    if !TURN_MS.contains(&turn_ms) {
        let (from, to) = (TURN_MS.start(), TURN_MS.end());
        return Some(format!("load.turn_ms must be from {from} to {to}"));
    }
    None
}

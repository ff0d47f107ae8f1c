//! The load of each turn.

use serde::{Deserialize, Serialize};

use super::{FactorTarget, GeneratorKind, options};

/// The parameters of the generator in one turn.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyLoad {
    pub(crate) connections: u32,
    /// Connections besides that are open and silent while the server runs.
    #[serde(default)]
    pub(crate) idle: u32,
    /// The path of the requests, or several, separated by blanks.
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
    #[serde(default)]
    pub(crate) generator: GeneratorKind,
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
/// The most idle connections.
const IDLE_MAX: u32 = 500_000;
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
                self.connections = connections(text)?;
            }
            FactorTarget::Path => text.clone_into(&mut self.path),
            FactorTarget::Close => self.close = switch()?,
            FactorTarget::Tls => self.tls = switch()?,
            FactorTarget::Udp => self.udp = switch()?,
            FactorTarget::Idle => self.idle = connections(text)?,
            FactorTarget::Generator => self.generator = GeneratorKind::parse(text)?,
            FactorTarget::Options => self.options.extend(options::words(text)?),
            _ => {}
        }
        Ok(())
    }

    /// The paths of the requests.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.path.split_whitespace()
    }

    /// The first problem.
    pub(super) fn problem(&self) -> Option<String> {
        if let Some(problem) = extent_problem(self.connections, self.turn_ms) {
            return Some(problem);
        }
        if self.idle > IDLE_MAX {
            return Some(format!("load.idle must be at most {IDLE_MAX}"));
        }
        if self.paths().next().is_none() || !self.paths().all(|path| path.starts_with('/')) {
            return Some("load.path must begin with a slash".to_owned());
        }
        if self.udp && (self.tls || self.close) {
            return Some("load.udp is without load.tls and load.close".to_owned());
        }
        options::problem(&self.options).or_else(|| self.foreign_problem())
    }

    /// The first part that another generator cannot have.
    fn foreign_problem(&self) -> Option<String> {
        let kind = self.generator;
        let lacks = [
            (!self.turn_ms.is_multiple_of(1000), "turns of whole seconds"),
            (!kind.takes(&self.options), "no load.options, or --h2 --streams N for h2load"),
            (self.udp, "no load.udp"),
            (self.paths().count() > 1, "one path"),
            (kind == GeneratorKind::H2load && self.close, "kept connections"),
        ];
        let lack = lacks.into_iter().find(|(lacks, _)| *lacks).filter(|_| kind.is_foreign());
        lack.map(|(_, what)| format!("the generator {} requires {what}", kind.name()))
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

fn connections(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("\"{text}\" is no number of connections"))
}

//! Requests and replies between controller and agent: an object of JSON a line.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::run::part::{BackendOrder, GeneratorOrder, ServerOrder};
use crate::study::BackendAddress;

/// The number of the protocol; it changes with the requests.
pub(crate) const PROTOCOL: u32 = 1;
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a controller may ask for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum AgentRequest {
    /// Replied with an [`AgentHello`].
    Hello {},
    /// Replied with the nanoseconds since 1970.
    Clock {},
    /// How busy the machine is. Replied with a pair of shares: stolen, others.
    Look {},
    /// Replied with a `ProgramRecord`.
    Program {
        name: String,
    },
    /// Tests a configuration.
    Test(ServerOrder),
    /// Replied with an [`AgentStarted`], as the next two are.
    Server(ServerOrder),
    Backend(BackendOrder),
    Generator(GeneratorOrder),
    /// Sends one request. Replied with the status of its reply.
    Probe(GeneratorOrder),
    /// Runs a turn of a generator. Replied with its figures.
    Turn {
        part: u32,
    },
    /// Replied with the CPU seconds of a part so far.
    Cpu {
        part: u32,
    },
    /// Replied with a `PartAccount`, as the next one is.
    BeginTurn {
        part: u32,
        middle_ms: u64,
    },
    EndTurn {
        part: u32,
    },
    /// Ends a part.
    Stop {
        part: u32,
    },
}

/// The machine of an agent.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct AgentHello {
    pub(crate) protocol: u32,
    pub(crate) version: String,
    pub(crate) system: String,
    pub(crate) processor: String,
    pub(crate) processors: usize,
    /// The agent's own address, and that of the controller, as the agent sees them.
    pub(crate) own: Option<Ipv4Addr>,
    pub(crate) peer: Option<Ipv4Addr>,
}

/// A part that was started.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct AgentStarted {
    pub(crate) part: u32,
    /// `None` for a generator.
    pub(crate) address: Option<BackendAddress>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentReply {
    Ok(Value),
    Error(String),
}

/// Reads a request.
pub(crate) fn read(line: &str) -> Result<AgentRequest, String> {
    serde_json::from_str(line).map_err(|error| format!("this is no request: {error}"))
}

/// The time for usual requests.
const USUAL: Duration = Duration::from_secs(30);
/// The time for starts, which may wait a minute for a server.
const START: Duration = Duration::from_secs(90);

impl AgentRequest {
    /// The longest time for a reply. A generator's turn has the turn in addition.
    pub(crate) fn limit(&self, turn: Duration) -> Duration {
        match self {
            Self::Server(_) | Self::Backend(_) | Self::Generator(_) | Self::Turn { .. } => {
                START + turn
            }
            _ => USUAL + turn,
        }
    }
}

impl AgentHello {
    /// Checks that both ends are the same version.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.protocol == PROTOCOL && self.version == VERSION {
            true => Ok(()),
            false => Err(format!(
                "it is weir {} (protocol {}), this is weir {VERSION} (protocol {PROTOCOL}): \
                 install the same version on both",
                self.version, self.protocol
            )),
        }
    }
}

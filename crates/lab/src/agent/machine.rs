//! The machine of an agent, and its parts.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use processes::machine::MachineShares;
use serde::de::DeserializeOwned;

use super::clock::{self, ClockOffset};
use super::connection::AgentConnection;
use super::protocol::{AgentHello, AgentRequest, AgentStarted};
use super::token::AgentToken;
use crate::figures::MeasuredRun;
use crate::record::ProgramRecord;
use crate::run::part::{
    BackendOrder, GeneratingPart, GeneratorOrder, PartAccount, PartMachine, ServerOrder,
    ServingPart,
};
use crate::study::BackendAddress;

/// The longest pause between requests; after a longer one the agent would end the connection.
const REST_MAX: Duration = Duration::from_secs(30);

/// Where an agent is: `10.0.0.3:7700`, or `ssh:USER@HOST` with the path of weir behind a colon.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AgentPlace {
    Tcp(SocketAddr),
    Ssh { host: String, weir: String },
}

/// A connected agent.
#[derive(Clone)]
pub(crate) struct AgentMachine {
    connection: Rc<RefCell<AgentConnection>>,
    hello: AgentHello,
    pub(crate) clock: ClockOffset,
}

impl AgentPlace {
    pub(crate) fn parse(word: &str) -> Result<Self, String> {
        let Some(ssh) = word.strip_prefix("ssh:") else {
            return word.parse().map(Self::Tcp).map_err(|_| {
                format!("{word} is neither ssh:HOST nor an address such as 10.0.0.3:7700")
            });
        };
        let (host, weir) = ssh.split_once(':').unwrap_or((ssh, "weir"));
        let is_plain = |word: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/@+".contains(c);
            !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain)
        };
        match is_plain(host) && is_plain(weir) {
            true => Ok(Self::Ssh { host: host.to_owned(), weir: weir.to_owned() }),
            false => Err(format!("{word} is no ssh:HOST or ssh:USER@HOST:PATH")),
        }
    }
}

impl fmt::Display for AgentPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(out, "{address}"),
            Self::Ssh { host, .. } => write!(out, "ssh:{host}"),
        }
    }
}

impl AgentMachine {
    /// Connects, and checks that the agent is the same version. Over ssh, the agent is started with
    /// the right to start `programs`.
    pub(crate) fn connect(
        place: &AgentPlace,
        token: Option<&AgentToken>,
        programs: &[String],
    ) -> Result<Self, String> {
        let name = place.to_string();
        let mut connection = match place {
            AgentPlace::Tcp(address) => {
                let token = token.ok_or_else(|| format!("agent {name} needs --token-file"))?;
                AgentConnection::tcp(name, *address, token)?
            }
            AgentPlace::Ssh { host, weir } => {
                AgentConnection::ssh(name, host, &command(weir, programs)?)?
            }
        };
        let ask = |connection: &mut AgentConnection, request: AgentRequest| {
            let limit = request.limit(Duration::ZERO);
            connection.ask(&request, limit)
        };
        let hello = ask(&mut connection, AgentRequest::Hello {})?;
        let hello: AgentHello = serde_json::from_value(hello).map_err(|error| error.to_string())?;
        hello.check().map_err(|why| format!("agent {}: {why}", connection.name()))?;
        let clock = clock::measure(&mut || {
            let now: serde_json::Value = ask(&mut connection, AgentRequest::Clock {})?;
            now.as_u64().ok_or_else(|| "an agent has no clock".to_owned())
        })?;
        Ok(Self { connection: Rc::new(RefCell::new(connection)), hello, clock })
    }

    pub(crate) fn hello(&self) -> &AgentHello {
        &self.hello
    }

    /// Keeps the agent from taking its controller for gone.
    pub(crate) fn keep_alive(&self) -> Result<(), String> {
        let rest = self.connection.borrow().rest();
        match rest < REST_MAX {
            true => Ok(()),
            false => self.ask::<u64>(&AgentRequest::Clock {}).map(drop),
        }
    }

    /// How busy the machine is.
    pub(crate) fn look(&self) -> Result<MachineShares, String> {
        let (stolen, others) = self.ask(&AgentRequest::Look {})?;
        Ok(MachineShares { stolen, others })
    }

    fn ask<T: DeserializeOwned>(&self, request: &AgentRequest) -> Result<T, String> {
        self.ask_for(request, Duration::ZERO)
    }

    fn ask_for<T: DeserializeOwned>(
        &self,
        request: &AgentRequest,
        turn: Duration,
    ) -> Result<T, String> {
        self.connection.borrow_mut().ask(request, request.limit(turn))
    }

    fn serving(&self, request: &AgentRequest) -> Result<Box<dyn ServingPart>, String> {
        let started: AgentStarted = self.ask(request)?;
        let part = RemotePart { machine: self.clone(), part: started.part };
        let address = started.address.ok_or("a part of an agent has no address")?;
        Ok(Box::new(RemoteServing { part, address, turn: Duration::ZERO }))
    }
}

/// The command that starts an agent. A shell splits it, so it has plain words only.
fn command(weir: &str, programs: &[String]) -> Result<Vec<String>, String> {
    let mut words = [weir, "lab", "agent", "--stdio"].map(str::to_owned).to_vec();
    for path in programs {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/+".contains(c);
        if !path.chars().all(is_plain) {
            return Err(format!("{path}: the path of a program over ssh must be plain"));
        }
        words.extend(["--allow-program".to_owned(), path.clone()]);
    }
    Ok(words)
}

impl PartMachine for AgentMachine {
    fn program(&self, name: &str) -> Result<ProgramRecord, String> {
        self.ask(&AgentRequest::Program { name: name.to_owned() })
    }

    fn test(&self, order: &ServerOrder) -> Result<(), String> {
        self.ask(&AgentRequest::Test(order.clone()))
    }

    fn server(&self, order: &ServerOrder) -> Result<Box<dyn ServingPart>, String> {
        self.serving(&AgentRequest::Server(order.clone()))
    }

    fn backend(&self, order: &BackendOrder) -> Result<Box<dyn ServingPart>, String> {
        self.serving(&AgentRequest::Backend(order.clone()))
    }

    fn generator(&self, order: &GeneratorOrder) -> Result<Box<dyn GeneratingPart>, String> {
        let started: AgentStarted = self.ask(&AgentRequest::Generator(order.clone()))?;
        let part = RemotePart { machine: self.clone(), part: started.part };
        let turn = Duration::from_millis(order.turn.turn_ms);
        Ok(Box::new(RemoteGenerating { part, turn }))
    }

    fn probe(&self, order: &GeneratorOrder) -> Result<String, String> {
        self.ask(&AgentRequest::Probe(order.clone()))
    }
}

/// A part on an agent's machine. Dropping it ends it there.
struct RemotePart {
    machine: AgentMachine,
    part: u32,
}

impl RemotePart {
    fn cpu_s(&self) -> Result<f64, String> {
        self.machine.ask(&AgentRequest::Cpu { part: self.part })
    }
}

impl Drop for RemotePart {
    fn drop(&mut self) {
        // If that fails, the end of the connection ends it.
        let _ = self.machine.ask::<()>(&AgentRequest::Stop { part: self.part });
    }
}

struct RemoteServing {
    part: RemotePart,
    address: BackendAddress,
    /// The length of the turn that has begun: the account after it may have to wait for its middle.
    turn: Duration,
}

struct RemoteGenerating {
    part: RemotePart,
    turn: Duration,
}

impl ServingPart for RemoteServing {
    fn address(&self) -> BackendAddress {
        self.address
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn cpu_s(&mut self) -> Result<f64, String> {
        self.part.cpu_s()
    }

    fn begin_turn(&mut self, middle: Duration) -> Result<PartAccount, String> {
        self.turn = middle * 2;
        let (part, middle_ms) = (self.part.part, middle.as_millis() as u64);
        self.part.machine.ask(&AgentRequest::BeginTurn { part, middle_ms })
    }

    fn end_turn(&mut self) -> Result<PartAccount, String> {
        let part = self.part.part;
        self.part.machine.ask_for(&AgentRequest::EndTurn { part }, self.turn)
    }
}

impl GeneratingPart for RemoteGenerating {
    fn turn(&mut self) -> Result<MeasuredRun, String> {
        let part = self.part.part;
        self.part.machine.ask_for(&AgentRequest::Turn { part }, self.turn)
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn cpu_s(&mut self) -> Result<f64, String> {
        self.part.cpu_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_parsed() {
        let tcp = AgentPlace::parse("10.0.0.3:7700").unwrap();
        assert_eq!(tcp.to_string(), "10.0.0.3:7700");
        let ssh = |host: &str, weir: &str| {
            Ok(AgentPlace::Ssh { host: host.to_owned(), weir: weir.to_owned() })
        };
        assert_eq!(AgentPlace::parse("ssh:me@a.b"), ssh("me@a.b", "weir"));
        assert_eq!(AgentPlace::parse("ssh:a:/opt/weir"), ssh("a", "/opt/weir"));
        for wrong in ["10.0.0.3", "ssh:", "ssh:-oProxyCommand=x", "ssh:a:b;c", "ssh:a b", "a:1"] {
            assert!(AgentPlace::parse(wrong).is_err(), "{wrong}");
        }
        assert!(command("weir", &["/a b".to_owned()]).is_err());
        let words = command("weir", &["/usr/sbin/nginx".to_owned()]).unwrap();
        assert_eq!(words.join(" "), "weir lab agent --stdio --allow-program /usr/sbin/nginx");
    }
}

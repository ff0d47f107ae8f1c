//! The requests of one controller, and the parts that it has started.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use processes::machine::MachineShares;
use serde::Serialize;
use serde_json::Value;

use super::clock;
use super::protocol::{
    AgentHello, AgentReply, AgentRequest, AgentStarted, PROTOCOL, VERSION, read,
};
use super::rights::{self, AgentRights};
use crate::figures::MeasuredRun;
use crate::record::MachineRecord;
use crate::run::here::ThisMachine;
use crate::run::part::{GeneratingPart, PartMachine, ServingPart};

/// The most parts at once; a part is a server, a backend or a generator.
const PARTS_MAX: usize = 1024;
/// The most bytes of a message, which may quote what a server printed.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;
/// The longest turn.
const TURN_MAX: Duration = Duration::from_secs(10);

/// What a controller can do. Dropping it ends all parts.
pub(super) struct AgentService {
    rights: AgentRights,
    machine: ThisMachine,
    addresses: AgentAddresses,
    parts: BTreeMap<u32, AgentPart>,
    next: u32,
    turning: Arc<AtomicU32>,
}

/// In the place of a generator's process, once the controller has left.
pub(super) const ENDED: u32 = u32::MAX;

/// The ends of the connection, as the agent sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct AgentAddresses {
    pub(super) own: Option<Ipv4Addr>,
    pub(super) peer: Option<Ipv4Addr>,
}

enum AgentPart {
    Serving(Box<dyn ServingPart>),
    Generating(Box<dyn GeneratingPart>),
}

impl AgentService {
    pub(super) fn new(rights: &AgentRights, addresses: AgentAddresses) -> Self {
        Self {
            machine: ThisMachine::new(&rights.weir),
            rights: rights.clone(),
            addresses,
            parts: BTreeMap::new(),
            next: 1,
            turning: Arc::default(),
        }
    }

    /// The process of the generator that runs a turn, or 0: ending it ends the turn. With
    /// [`ENDED`] in its place, no other turn begins.
    pub(super) fn turning(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.turning)
    }

    /// Carries out a line.
    pub(super) fn reply(&mut self, line: &str) -> AgentReply {
        match read(line).and_then(|request| self.carry_out(&request)) {
            Ok(value) => AgentReply::Ok(value),
            Err(why) => AgentReply::Error(shortened(why)),
        }
    }

    fn carry_out(&mut self, request: &AgentRequest) -> Result<Value, String> {
        match request {
            AgentRequest::Hello {} => value(self.hello()),
            AgentRequest::Clock {} => value(clock::now_ns()),
            AgentRequest::Look {} => {
                let MachineShares { stolen, others } = MachineShares::look();
                value((stolen, others))
            }
            AgentRequest::Program { name } => {
                value(self.machine.program(&self.rights.program(name)?)?)
            }
            AgentRequest::Test(order) => value(self.machine.test(&self.rights.server(order)?)?),
            AgentRequest::Server(order) => {
                self.has_room()?;
                let server = self.machine.server(&self.rights.server(order)?)?;
                self.add(AgentPart::Serving(server))
            }
            AgentRequest::Backend(order) => {
                rights::backend(order)?;
                self.has_room()?;
                let backend = self.machine.backend(order)?;
                self.add(AgentPart::Serving(backend))
            }
            AgentRequest::Generator(order) => {
                rights::generator(order)?;
                self.has_room()?;
                let generator = self.machine.generator(order)?;
                self.add(AgentPart::Generating(generator))
            }
            AgentRequest::Probe(order) => {
                rights::generator(order)?;
                value(self.machine.probe(order)?)
            }
            AgentRequest::Turn { part } => value(self.turn(*part)?),
            AgentRequest::Cpu { part } => match self.part(*part)? {
                AgentPart::Serving(serving) => value(serving.cpu_s()?),
                AgentPart::Generating(generating) => value(generating.cpu_s()?),
            },
            AgentRequest::BeginTurn { part, middle_ms } => {
                let middle = Duration::from_millis(*middle_ms).min(TURN_MAX);
                value(self.serving(*part)?.begin_turn(middle)?)
            }
            AgentRequest::EndTurn { part } => value(self.serving(*part)?.end_turn()?),
            AgentRequest::Stop { part } => {
                self.part(*part)?;
                self.parts.remove(part);
                value(())
            }
        }
    }

    fn hello(&self) -> AgentHello {
        let MachineRecord { system, processor, processors, .. } = MachineRecord::of_this_machine();
        let AgentAddresses { own, peer } = self.addresses;
        let version = VERSION.to_owned();
        AgentHello { protocol: PROTOCOL, version, system, processor, processors, own, peer }
    }

    fn turn(&mut self, part: u32) -> Result<MeasuredRun, String> {
        let turning = self.turning();
        match self.part(part)? {
            AgentPart::Serving(_) => Err(format!("part {part} is no generator")),
            AgentPart::Generating(generating) => {
                let (pid, order) = (generating.pid().unwrap_or(0), Ordering::SeqCst);
                let begun = turning.compare_exchange(0, pid, order, order);
                begun.map_err(|_| "the controller has left".to_owned())?;
                let turn = generating.turn();
                let _ = turning.compare_exchange(pid, 0, order, order);
                turn
            }
        }
    }

    fn has_room(&self) -> Result<(), String> {
        match self.parts.len() < PARTS_MAX {
            true => Ok(()),
            false => Err(format!("the agent runs {PARTS_MAX} parts, which is the most")),
        }
    }

    fn add(&mut self, part: AgentPart) -> Result<Value, String> {
        let address = match &part {
            AgentPart::Serving(serving) => Some(serving.address()),
            AgentPart::Generating(_) => None,
        };
        let started = AgentStarted { part: self.next, address };
        self.parts.insert(self.next, part);
        self.next += 1;
        value(started)
    }

    fn part(&mut self, part: u32) -> Result<&mut AgentPart, String> {
        self.parts.get_mut(&part).ok_or_else(|| format!("there is no part {part}"))
    }

    fn serving(&mut self, part: u32) -> Result<&mut Box<dyn ServingPart>, String> {
        match self.part(part)? {
            AgentPart::Serving(serving) => Ok(serving),
            AgentPart::Generating(_) => Err(format!("part {part} serves nothing")),
        }
    }
}

impl Drop for AgentService {
    /// Ends the parts that were started last first: generators before servers, servers before
    /// backends.
    fn drop(&mut self) {
        while self.parts.pop_last().is_some() {}
    }
}

impl AgentAddresses {
    pub(super) fn of(own: Option<SocketAddr>, peer: Option<SocketAddr>) -> Self {
        let v4 = |address: Option<SocketAddr>| match address?.ip().to_canonical() {
            std::net::IpAddr::V4(address) => Some(address),
            std::net::IpAddr::V6(_) => None,
        };
        Self { own: v4(own), peer: v4(peer) }
    }

    /// Those of an ssh connection, from `SSH_CONNECTION`: the client's address and port, and the
    /// server's.
    pub(super) fn of_ssh(connection: &str) -> Self {
        let words: Vec<&str> = connection.split_whitespace().collect();
        let at = |place: usize| words.get(place).and_then(|word| word.parse().ok());
        Self { own: at(2), peer: at(0) }
    }
}

fn value(result: impl Serialize) -> Result<Value, String> {
    serde_json::to_value(result).map_err(|error| error.to_string())
}

fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        let mut end = MESSAGE_BYTES_MAX;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
    }
    message
}

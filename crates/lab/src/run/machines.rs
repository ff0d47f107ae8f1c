//! The machines of a study: this one, and those of agents.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use processes::machine::{self, MachineShares};

use super::here::ThisMachine;
use super::part::{PartMachine, PartPlace};
use super::role_host::RoleHost;
use crate::agent::{AgentMachine, AgentPlace, AgentToken};
use crate::hosts::{HostRole, RowHosts};
use crate::record::AgentRecord;

/// The machine of each part.
pub(crate) struct StudyMachines {
    weir: PathBuf,
    agents: Vec<(AgentPlace, AgentMachine)>,
    /// Parts that are not on this machine, or have an address of their own.
    placed: Vec<PlacedPart>,
    /// The parts that the study has.
    roles: Vec<HostRole>,
}

struct PlacedPart {
    role: HostRole,
    /// The index of its agent; `None`: this machine.
    agent: Option<usize>,
    address: Option<Ipv4Addr>,
}

impl StudyMachines {
    /// All parts on this machine.
    pub(super) fn here(weir: &Path, has_backends: bool) -> Self {
        let backend = has_backends.then_some(HostRole::Backend);
        let roles = [HostRole::Client, HostRole::Server].into_iter().chain(backend).collect();
        Self { weir: weir.to_owned(), agents: Vec::new(), placed: Vec::new(), roles }
    }

    /// Connects to the agents of parts that the study has. Agents over ssh may start `programs`.
    pub(super) fn connect(
        &mut self,
        hosts: &[RoleHost],
        token: Option<&AgentToken>,
        programs: &[String],
    ) -> Result<(), String> {
        for host in hosts.iter().filter(|host| self.roles.contains(&host.role)) {
            let agent = match &host.place {
                None => None,
                Some(place) => {
                    Some(match self.agents.iter().position(|(known, _)| known == place) {
                        Some(known) => known,
                        None => {
                            let machine = AgentMachine::connect(place, token, programs)?;
                            self.agents.push((place.clone(), machine));
                            self.agents.len() - 1
                        }
                    })
                }
            };
            self.placed.push(PlacedPart { role: host.role, agent, address: host.address });
        }
        Ok(())
    }

    /// The machine of a part in a row.
    pub(super) fn of(&self, role: HostRole, hosts: &RowHosts) -> Box<dyn PartMachine> {
        match self.agent(role) {
            Some((_, machine)) => Box::new(machine.clone()),
            None => Box::new(self.this_machine(role, hosts)),
        }
    }

    /// This one for a part in a row.
    pub(super) fn this_machine(&self, role: HostRole, hosts: &RowHosts) -> ThisMachine {
        ThisMachine { weir: self.weir.clone(), enter: hosts.enter(role) }
    }

    /// The machine of servers, outside of any row.
    pub(super) fn servers(&self) -> Box<dyn PartMachine> {
        match self.agent(HostRole::Server) {
            Some((_, machine)) => Box::new(machine.clone()),
            None => Box::new(ThisMachine::new(&self.weir)),
        }
    }

    /// Whether there are others than this one.
    pub(super) fn are_several(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Refuses profiles of servers on another machine.
    pub(super) fn check_profile(&self) -> Result<(), String> {
        match self.agent(HostRole::Server) {
            Some((place, _)) => {
                Err(format!("--profile needs the servers on this machine, not on {place}"))
            }
            None => Ok(()),
        }
    }

    /// Refuses searches of a client on another machine.
    pub(super) fn check_search(&self) -> Result<(), String> {
        match self.agent(HostRole::Client) {
            Some((place, _)) => {
                Err(format!("a search needs the client on this machine, not on {place}"))
            }
            None => Ok(()),
        }
    }

    /// Whether two parts are on the same machine.
    pub(super) fn share(&self, one: HostRole, other: HostRole) -> bool {
        self.agent_of(one) == self.agent_of(other)
    }

    /// The processors of a part: all of them if it has the machine for itself.
    pub(super) fn place(&self, role: HostRole, pinned: bool) -> PartPlace {
        let is_alone = self.roles.iter().all(|other| *other == role || !self.share(role, *other));
        match (pinned, role) {
            _ if is_alone => PartPlace::Whole,
            (false, _) => PartPlace::Anywhere,
            (true, HostRole::Server) => PartPlace::ServerCore,
            (true, _) => PartPlace::LoadCore,
        }
    }

    /// Sets the addresses at which parts reach each other.
    pub(super) fn address(&self, hosts: &mut RowHosts, direct: bool) -> Result<(), String> {
        if !self.are_several() {
            return Ok(());
        }
        let front = if direct { HostRole::Backend } else { HostRole::Server };
        hosts.front = self.reach(HostRole::Client, front)?;
        hosts.back = match (direct, self.roles.contains(&HostRole::Backend)) {
            (true, _) => hosts.front,
            (false, true) => self.reach(HostRole::Server, HostRole::Backend)?,
            (false, false) => Ipv4Addr::LOCALHOST,
        };
        Ok(())
    }

    /// The address of a part for another one.
    fn reach(&self, from: HostRole, to: HostRole) -> Result<Ipv4Addr, String> {
        let placed = self.placed.iter().find(|part| part.role == to);
        let said = placed.and_then(|part| part.address);
        let known = match (self.agent(to), self.agent(from)) {
            _ if said.is_some() => said,
            _ if self.share(from, to) => Some(Ipv4Addr::LOCALHOST),
            (Some((_, machine)), _) => machine.hello().own,
            (None, Some((_, machine))) => machine.hello().peer,
            (None, None) => Some(Ipv4Addr::LOCALHOST),
        };
        known.ok_or_else(|| {
            let (from, to) = (from.name(), to.name());
            format!("the {from} needs an IPv4 address of the {to}: --host {to}=PLACE,ADDRESS")
        })
    }

    fn agent_of(&self, role: HostRole) -> Option<usize> {
        self.placed.iter().find(|part| part.role == role).and_then(|part| part.agent)
    }

    fn agent(&self, role: HostRole) -> Option<&(AgentPlace, AgentMachine)> {
        self.agent_of(role).map(|agent| &self.agents[agent])
    }

    /// Keeps agents that have nothing to do from taking this controller for gone.
    pub(super) fn keep_alive(&self) -> Result<(), String> {
        self.agents.iter().try_for_each(|(_, machine)| machine.keep_alive())
    }

    /// Waits until all machines are quiet; `report` as in [`machine::wait_until_quiet`].
    pub(super) fn wait_until_quiet(
        &self,
        limit: Duration,
        report: &mut dyn FnMut(MachineShares) -> bool,
    ) -> Result<(), String> {
        let mut failure = None;
        let mut look = || {
            self.look().unwrap_or_else(|why| {
                failure = Some(why);
                MachineShares::default()
            })
        };
        let waited = machine::wait_until_all_quiet(limit, &mut look, report);
        failure.map_or(waited, Err)
    }

    /// The busiest machine's shares.
    fn look(&self) -> Result<MachineShares, String> {
        let is_here = self.roles.iter().any(|role| self.agent_of(*role).is_none());
        let mut shares = if is_here { MachineShares::look() } else { MachineShares::default() };
        for (_, machine) in &self.agents {
            let other = machine.look()?;
            shares.stolen = shares.stolen.max(other.stolen);
            shares.others = shares.others.max(other.others);
        }
        Ok(shares)
    }

    /// The places of all parts, for reports.
    pub(super) fn told(&self) -> String {
        let place = |role: &HostRole| match self.agent(*role) {
            Some((place, _)) => format!("{} on {place}", role.name()),
            None => format!("{} on this machine", role.name()),
        };
        self.roles.iter().map(place).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn records(&self) -> Vec<AgentRecord> {
        let record = |(number, (place, machine)): (usize, &(AgentPlace, AgentMachine))| {
            let of_it = |role: &&HostRole| self.agent_of(**role) == Some(number);
            let hello = machine.hello();
            AgentRecord {
                place: place.to_string(),
                parts: self.roles.iter().filter(of_it).map(|role| role.name().to_owned()).collect(),
                system: hello.system.clone(),
                processor: hello.processor.clone(),
                processors: hello.processors,
                clock_offset_us: machine.clock.offset_us,
                clock_error_us: machine.clock.error_us,
            }
        };
        self.agents.iter().enumerate().map(record).collect()
    }
}

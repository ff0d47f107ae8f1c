//! A row of a program while it runs: its hosts, its backends and its server.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::generator::GeneratorTurn;
use super::machines::StudyMachines;
use super::part::{
    BackendOrder, GeneratingPart, GeneratorOrder, PartPlace, ServerOrder, ServingPart,
};
use super::program::ServerProgram;
use crate::hosts::{HostRole, RowHosts, StudyNetwork};
use crate::record::Subject;
use crate::study::{RowSetting, Study, StudyLoad, StudyRow};

/// The inputs for starting a subject, besides its row.
pub(super) struct SubjectGround<'g> {
    pub(super) study: &'g Study,
    pub(super) network: &'g StudyNetwork,
    pub(super) machines: &'g StudyMachines,
}

/// A running server, or a backend that is measured in its place.
pub(super) struct RunningSubject {
    pub(super) subject: Subject,
    /// The process whose CPU time counts, if it runs on this machine.
    pub(super) pid: Option<u32>,
    pub(super) load: GeneratorOrder,
    pub(super) generator: Box<dyn GeneratingPart>,
    // Dropped before its backends.
    pub(super) server: Option<Box<dyn ServingPart>>,
    pub(super) backends: Vec<Box<dyn ServingPart>>,
    /// The part whose resources count.
    pub(super) measured: HostRole,
    // Dropped last: all other parts run on these hosts.
    pub(super) hosts: RowHosts,
}

impl RunningSubject {
    pub(super) fn start(
        ground: &SubjectGround<'_>,
        subject: Subject,
        program: &ServerProgram,
        row: &StudyRow,
    ) -> Result<Self, String> {
        let setting = RowSetting::of(ground.study, row)?;
        let mut hosts = RowHosts::new(ground.network, &setting, row.direct)?;
        ground.machines.address(&mut hosts, row.direct)?;
        let backends = ground.backends(&hosts)?;
        let server = match row.direct {
            true => None,
            false => Some(ground.server(&hosts, &backends, program, (row, &setting.load))?),
        };
        let measured = if row.direct { HostRole::Backend } else { HostRole::Server };
        let front = server.as_deref().or(backends.first().map(|backend| &**backend));
        let front = front.ok_or("direct needs a backend")?;
        let (pid, turn) = (front.pid(), turn(&setting.load, front.address()));
        let load = GeneratorOrder { turn, place: ground.place(HostRole::Client) };
        hosts.wait_for_links()?;
        let generator = ground.machines.of(HostRole::Client, &hosts).generator(&load)?;
        Ok(Self { subject, pid, load, generator, server, backends, measured, hosts })
    }

    /// The part whose resources count.
    pub(super) fn front(&mut self) -> Option<&mut Box<dyn ServingPart>> {
        self.server.as_mut().or(self.backends.first_mut())
    }
}

impl SubjectGround<'_> {
    fn backends(&self, hosts: &RowHosts) -> Result<Vec<Box<dyn ServingPart>>, String> {
        let order = BackendOrder {
            listen: hosts.back,
            options: self.study.backend.options.clone(),
            place: self.place(HostRole::Backend),
            counted: self.counted(&[hosts.back]),
        };
        let machine = self.machines.of(HostRole::Backend, hosts);
        (0..self.study.backend.count).map(|_| machine.backend(&order)).collect()
    }

    fn server(
        &self,
        hosts: &RowHosts,
        backends: &[Box<dyn ServingPart>],
        program: &ServerProgram,
        (row, load): (&StudyRow, &StudyLoad),
    ) -> Result<Box<dyn ServingPart>, String> {
        let addresses: Vec<_> = backends.iter().map(|backend| backend.address()).collect();
        let backs = addresses.iter().map(|address| *address.ip());
        let order = ServerOrder {
            program: program.record.path.clone(),
            text: self.study.text(row, &addresses),
            listen: hosts.front,
            tls: load.tls,
            place: self.place(HostRole::Server),
            counted: self.counted(&backs.chain([hosts.front]).collect::<Vec<_>>()),
        };
        self.machines.of(HostRole::Server, hosts).server(&order)
    }

    fn place(&self, role: HostRole) -> PartPlace {
        self.machines.place(role, self.study.load.pinned)
    }

    /// The addresses whose interfaces count: a namespace has no other traffic.
    fn counted(&self, addresses: &[Ipv4Addr]) -> Vec<Ipv4Addr> {
        if self.machines.are_several() { addresses.to_vec() } else { Vec::new() }
    }
}

fn turn(load: &StudyLoad, address: SocketAddrV4) -> GeneratorTurn {
    let scheme = if load.tls { "https" } else { "http" };
    let close = load.close.then(|| "--close".to_owned());
    GeneratorTurn {
        placed: Vec::new(),
        connections: load.connections,
        turn_ms: load.turn_ms,
        options: close.into_iter().chain(load.options.iter().cloned()).collect(),
        url: format!("{scheme}://{address}{}", load.path),
    }
}

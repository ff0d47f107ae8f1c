//! A row of a program while it runs: its hosts, its backends and its server.

use std::net::{Ipv4Addr, SocketAddrV4};

use processes::topology::ProcessorMap;

use super::generator::GeneratorTurn;
use super::idle::IdleHolders;
use super::machines::StudyMachines;
use super::part::{
    BackendOrder, GeneratingPart, GeneratorOrder, PartPlace, ServerOrder, ServingPart,
};
use super::program::ServerProgram;
use crate::hosts::{HostRole, RowHosts, StudyNetwork};
use crate::record::Subject;
use crate::study::{PlacedCores, RowSetting, Study, StudyBackends, StudyLoad, StudyRow};

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
    /// The number of idle connections that the row has.
    idle_count: u32,
    /// They are opened after the first turn.
    pub(super) idle: Option<IdleHolders>,
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
        let cores = cores(&setting)?;
        let backends = ground.backends(&hosts, cores.as_ref())?;
        let server = match row.direct {
            true => None,
            false => {
                let order = ground.order(&hosts, &backends, program, (row, &setting.load));
                let order = placed(order, ground.place(HostRole::Server, cores.as_ref()));
                Some(ground.machines.of(HostRole::Server, &hosts).server(&order)?)
            }
        };
        let measured = if row.direct { HostRole::Backend } else { HostRole::Server };
        let front = server.as_deref().or(backends.first().map(|backend| &**backend));
        let front = front.ok_or("direct needs a backend")?;
        let (pid, turn) = (front.pid(), turn(&setting.load, front.address().http));
        let place = ground.place(HostRole::Client, cores.as_ref());
        let load = GeneratorOrder { kind: setting.load.generator, turn, place };
        hosts.wait_for_links()?;
        let generator = ground.machines.of(HostRole::Client, &hosts).generator(&load)?;
        let (idle_count, idle) = (setting.load.idle, None);
        Ok(Self {
            subject,
            pid,
            load,
            generator,
            idle_count,
            idle,
            server,
            backends,
            measured,
            hosts,
        })
    }

    /// The part whose resources count.
    pub(super) fn front(&mut self) -> Option<&mut Box<dyn ServingPart>> {
        self.server.as_mut().or(self.backends.first_mut())
    }

    /// Opens the row's idle connections. The server has been at work by then, so that its memory
    /// grows for them alone.
    pub(super) fn open_idle(&mut self, machines: &StudyMachines) -> Result<(), String> {
        if self.idle_count > 0 {
            let pid = self.pid.ok_or("idle connections need all parts on this machine")?;
            let client = machines.this_machine(HostRole::Client, &self.hosts);
            let turn = client.placed_turn(&self.load)?;
            let from = (&turn, &self.hosts.sources[..]);
            self.idle = Some(IdleHolders::open(self.idle_count.into(), from, &client.weir, pid)?);
        }
        Ok(())
    }
}

impl SubjectGround<'_> {
    fn backends(
        &self,
        hosts: &RowHosts,
        cores: Option<&PlacedCores>,
    ) -> Result<Vec<Box<dyn ServingPart>>, String> {
        let StudyBackends { count, options, udp } = &self.study.backend;
        let order = BackendOrder {
            listen: hosts.back,
            options: options.clone(),
            udp: *udp,
            place: self.place(HostRole::Backend, cores),
            counted: self.counted(&[hosts.back]),
        };
        let machine = self.machines.of(HostRole::Backend, hosts);
        (0..*count).map(|_| machine.backend(&order)).collect()
    }

    /// A server on all processors of its machine.
    fn order(
        &self,
        hosts: &RowHosts,
        backends: &[Box<dyn ServingPart>],
        program: &ServerProgram,
        (row, load): (&StudyRow, &StudyLoad),
    ) -> ServerOrder {
        let addresses: Vec<_> = backends.iter().map(|backend| backend.address()).collect();
        let backs = addresses.iter().map(|address| *address.http.ip());
        ServerOrder {
            program: program.record.path.clone(),
            text: self.study.text(row, &addresses),
            listen: hosts.front,
            tls: load.tls,
            processors: 0,
            place: PartPlace::Anywhere,
            counted: self.counted(&backs.chain([hosts.front]).collect::<Vec<_>>()),
        }
    }

    /// The processors of a part: those that its row chooses, or those of its machine.
    fn place(&self, role: HostRole, cores: Option<&PlacedCores>) -> PartPlace {
        match (cores, role) {
            (Some(cores), HostRole::Server) => PartPlace::Cores(cores.server.clone()),
            (Some(cores), _) => PartPlace::Cores(cores.load.clone()),
            (None, _) => self.machines.place(role, self.study.load.pinned),
        }
    }

    /// The addresses whose interfaces count: a namespace has no other traffic.
    fn counted(&self, addresses: &[Ipv4Addr]) -> Vec<Ipv4Addr> {
        if self.machines.are_several() { addresses.to_vec() } else { Vec::new() }
    }
}

/// The processors that a row chooses on this machine.
fn cores(setting: &RowSetting) -> Result<Option<PlacedCores>, String> {
    match setting.cores {
        Some(cores) => Ok(Some(cores.place(&ProcessorMap::of_this_machine()?))),
        None => Ok(None),
    }
}

fn placed(order: ServerOrder, place: PartPlace) -> ServerOrder {
    let processors = match &place {
        PartPlace::Cores(cores) => cores.len(),
        _ => 0,
    };
    ServerOrder { place, processors, ..order }
}

fn turn(load: &StudyLoad, address: SocketAddrV4) -> GeneratorTurn {
    let url = |path: &str| match load.udp {
        true => format!("udp://{address}"),
        false if load.tls => format!("https://{address}{path}"),
        false => format!("http://{address}{path}"),
    };
    let mut urls = load.paths().map(url);
    let close = load.close.then(|| "--close".to_owned());
    GeneratorTurn {
        placed: Vec::new(),
        connections: load.connections,
        turn_ms: load.turn_ms,
        options: close.into_iter().chain(load.options.iter().cloned()).collect(),
        url: urls.next().unwrap_or_default(),
        further_urls: urls.collect(),
    }
}

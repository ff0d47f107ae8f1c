//! A row of a program while it runs: its hosts, its backends and its server.

use std::net::SocketAddrV4;
use std::path::Path;

use processes::server::{Cores, MeasuredServer, pinned_to};
use processes::topology::ProcessorMap;

use super::backend::StudyBackend;
use super::folder::ServerFolder;
use super::generator::{GeneratorTurn, RunningGenerator};
use super::program::ServerProgram;
use crate::hosts::{HostRole, RowHosts, StudyNetwork};
use crate::record::Subject;
use crate::study::{PlacedCores, RowSetting, Study, StudyLoad, StudyRow};

/// The inputs for starting a subject, besides its row.
pub(super) struct SubjectGround<'g> {
    pub(super) study: &'g Study,
    pub(super) network: &'g StudyNetwork,
    pub(super) weir: &'g Path,
    /// `None` if the system places all processes.
    pub(super) cores: Option<&'g Cores>,
}

/// Where the parts of a row run.
struct SubjectPlace<'h> {
    hosts: &'h RowHosts,
    /// `None` if the system places all processes.
    cores: Option<PlacedCores>,
}

/// A running server, or a backend that is measured in its place.
pub(super) struct RunningSubject {
    pub(super) subject: Subject,
    /// The process whose CPU time counts.
    pub(super) pid: u32,
    pub(super) turn: GeneratorTurn,
    pub(super) generator: RunningGenerator,
    // Dropped before its backends.
    _server: Option<(MeasuredServer, ServerFolder)>,
    pub(super) backends: Vec<StudyBackend>,
    // Dropped last: all other parts run on these hosts.
    _hosts: RowHosts,
}

impl RunningSubject {
    pub(super) fn start(
        ground: &SubjectGround<'_>,
        subject: Subject,
        program: &ServerProgram,
        row: &StudyRow,
    ) -> Result<Self, String> {
        let mut setting = RowSetting::of(ground.study, row)?;
        let hosts = RowHosts::new(ground.network, &setting, row.direct)?;
        let place = SubjectPlace { hosts: &hosts, cores: ground.cores_of(&setting)? };
        let backends = ground.backends(&place)?;
        let (pid, address, server) = match backends.first().filter(|_| row.direct) {
            Some(backend) => (backend.pid(), backend.address.http, None),
            None => {
                let (server, folder) =
                    ground.server(&place, &backends, program, (row, &setting.load))?;
                setting.load.options = folder.options(&setting.load)?;
                let port = folder.port_of(&setting.load);
                let address = SocketAddrV4::new(hosts.front, port);
                (server.pid(), address, Some((server, folder)))
            }
        };
        let mut turn = turn(&setting.load, address, place.words(HostRole::Client));
        if setting.cores.is_some() {
            turn.options.push(format!("-t{}", place.threads(setting.load.connections)));
        }
        hosts.wait_for_links()?;
        let generator = turn.start(ground.weir)?;
        Ok(Self { subject, pid, turn, generator, backends, _server: server, _hosts: hosts })
    }
}

impl SubjectGround<'_> {
    /// The processors of a row: those that it chooses, or one each if the study is pinned.
    fn cores_of(&self, setting: &RowSetting) -> Result<Option<PlacedCores>, String> {
        if let Some(cores) = setting.cores {
            return Ok(Some(cores.place(&ProcessorMap::of_this_machine()?)));
        }
        let one_each =
            |cores: &Cores| PlacedCores { server: vec![cores.server], load: vec![cores.load] };
        Ok(self.cores.map(one_each))
    }

    fn backends(&self, place: &SubjectPlace<'_>) -> Result<Vec<StudyBackend>, String> {
        let (placed, hosts) = (place.words(HostRole::Backend), place.hosts);
        let start = |_| StudyBackend::start(self.weir, &placed, hosts.back, &self.study.backend);
        (0..self.study.backend.count).map(start).collect()
    }

    fn server(
        &self,
        place: &SubjectPlace<'_>,
        backends: &[StudyBackend],
        program: &ServerProgram,
        (row, load): (&StudyRow, &StudyLoad),
    ) -> Result<(MeasuredServer, ServerFolder), String> {
        let folder = ServerFolder::new()?;
        let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
        folder.write(self.study, row, place.hosts.front, &addresses)?;
        let placed = place.words(HostRole::Server);
        let (file, port) = (folder.configuration(), folder.port_of(load));
        let server = MeasuredServer::behind(&placed, &program.path, &file, port)?;
        Ok((server, folder))
    }
}

impl SubjectPlace<'_> {
    /// The words before a command that place it on a host and processors.
    fn words(&self, role: HostRole) -> Vec<String> {
        let mut words = self.hosts.enter(role);
        if let Some(cores) = &self.cores {
            let is_server = role == HostRole::Server;
            words.extend(pinned_to(if is_server { &cores.server } else { &cores.load }));
        }
        words
    }

    /// The threads of the generator: one for each of its processors.
    fn threads(&self, connections: u32) -> usize {
        let processors = self.cores.as_ref().map_or(1, |cores| cores.load.len());
        processors.clamp(1, connections as usize)
    }
}

fn turn(load: &StudyLoad, address: SocketAddrV4, placed: Vec<String>) -> GeneratorTurn {
    let url = match load.udp {
        true => format!("udp://{address}"),
        false if load.tls => format!("https://{address}{}", load.path),
        false => format!("http://{address}{}", load.path),
    };
    let close = load.close.then(|| "--close".to_owned());
    GeneratorTurn {
        placed,
        connections: load.connections,
        turn_ms: load.turn_ms,
        options: close.into_iter().chain(load.options.iter().cloned()).collect(),
        url,
    }
}

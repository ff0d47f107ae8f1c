//! A row of a program while it runs: its hosts, its backends and its server.

use std::net::SocketAddrV4;
use std::path::Path;

use processes::server::{Cores, MeasuredServer, pinned_to};

use super::backend::StudyBackend;
use super::folder::ServerFolder;
use super::generator::GeneratorTurn;
use super::idle::IdleHolders;
use super::program::ServerProgram;
use super::turn_generator::TurnGenerator;
use crate::hosts::{HostRole, RowHosts, StudyNetwork};
use crate::record::Subject;
use crate::study::{RowSetting, Study, StudyLoad, StudyRow};

/// The inputs for starting a subject, besides its row.
pub(super) struct SubjectGround<'g> {
    pub(super) study: &'g Study,
    pub(super) network: &'g StudyNetwork,
    pub(super) weir: &'g Path,
    /// `None` if the system places all processes.
    pub(super) cores: Option<&'g Cores>,
}

/// A running server, or a backend that is measured in its place.
pub(super) struct RunningSubject {
    pub(super) subject: Subject,
    /// The process whose CPU time counts.
    pub(super) pid: u32,
    pub(super) turn: GeneratorTurn,
    pub(super) generator: TurnGenerator,
    /// The number of idle connections that the row has.
    idle_count: u32,
    /// They are opened after the first turn.
    pub(super) idle: Option<IdleHolders>,
    // Dropped before its backends.
    _server: Option<(MeasuredServer, ServerFolder)>,
    pub(super) backends: Vec<StudyBackend>,
    // Dropped last: all other parts run on these hosts.
    hosts: RowHosts,
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
        let backends = ground.backends(&hosts)?;
        let (pid, address, server) = match backends.first().filter(|_| row.direct) {
            Some(backend) => (backend.pid(), backend.address, None),
            None => {
                let (server, folder) =
                    ground.server(&hosts, &backends, program, (row, &setting.load))?;
                setting.load.options = folder.options(&setting.load)?;
                let port = folder.port_of(&setting.load);
                let address = SocketAddrV4::new(hosts.front, port);
                (server.pid(), address, Some((server, folder)))
            }
        };
        let turn = turn(&setting.load, address, ground.placed(&hosts, HostRole::Client));
        hosts.wait_for_links()?;
        let generator = TurnGenerator::start(&turn, &setting.load, ground.weir)?;
        let (idle_count, idle) = (setting.load.idle, None);
        let _server = server;
        Ok(Self { subject, pid, turn, generator, idle_count, idle, _server, backends, hosts })
    }

    /// Opens the row's idle connections. The server has been at work by then, so that its memory
    /// grows for them alone.
    pub(super) fn open_idle(&mut self, weir: &Path) -> Result<(), String> {
        if self.idle_count > 0 {
            let (count, client) = (self.idle_count.into(), (&self.turn, &self.hosts.sources[..]));
            self.idle = Some(IdleHolders::open(count, client, weir, self.pid)?);
        }
        Ok(())
    }
}

impl SubjectGround<'_> {
    fn backends(&self, hosts: &RowHosts) -> Result<Vec<StudyBackend>, String> {
        let placed = self.placed(hosts, HostRole::Backend);
        let options = &self.study.backend.options;
        let start = |_| StudyBackend::start(self.weir, &placed, hosts.back, options);
        (0..self.study.backend.count).map(start).collect()
    }

    fn server(
        &self,
        hosts: &RowHosts,
        backends: &[StudyBackend],
        program: &ServerProgram,
        (row, load): (&StudyRow, &StudyLoad),
    ) -> Result<(MeasuredServer, ServerFolder), String> {
        let folder = ServerFolder::new()?;
        let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
        folder.write(self.study, row, hosts.front, &addresses)?;
        let placed = self.placed(hosts, HostRole::Server);
        let (file, port) = (folder.configuration(), folder.port_of(load));
        let server = MeasuredServer::behind(&placed, &program.path, &file, port)?;
        Ok((server, folder))
    }

    /// The words before a command that place it on a host and a processor.
    fn placed(&self, hosts: &RowHosts, role: HostRole) -> Vec<String> {
        let mut words = hosts.enter(role);
        if let Some(cores) = self.cores {
            let core = if role == HostRole::Server { cores.server } else { cores.load };
            words.extend(pinned_to(&[core]));
        }
        words
    }
}

fn turn(load: &StudyLoad, address: SocketAddrV4, placed: Vec<String>) -> GeneratorTurn {
    let scheme = if load.tls { "https" } else { "http" };
    let mut urls = load.paths().map(|path| format!("{scheme}://{address}{path}"));
    let close = load.close.then(|| "--close".to_owned());
    GeneratorTurn {
        placed,
        connections: load.connections,
        turn_ms: load.turn_ms,
        options: close.into_iter().chain(load.options.iter().cloned()).collect(),
        url: urls.next().unwrap_or_default(),
        further_urls: urls.collect(),
    }
}

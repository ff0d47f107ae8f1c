//! This machine: its parts are processes of this one.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use processes::machine::{MachineTime, SoftirqTime};
use processes::procfs::{self, SocketCounts};
use processes::server::{Cores, MeasuredServer, allowed_cores_of, pinned_to};

use super::backend::StudyBackend;
use super::folder::ServerFolder;
use super::foreign::ForeignGenerator;
use super::generator::{GeneratorTurn, RunningGenerator};
use super::part::{
    BackendOrder, GeneratingPart, GeneratorOrder, PartAccount, PartMachine, PartPlace, ServerOrder,
    ServingPart,
};
use super::program::ServerProgram;
use crate::figures::MeasuredRun;
use crate::hosts;
use crate::record::ProgramRecord;
use crate::study::{BackendAddress, StudyBackends, StudySearch};

/// This machine, or a host on it.
pub(crate) struct ThisMachine {
    /// This program, which is also generator and backend.
    pub(crate) weir: PathBuf,
    /// The words before a command that run it on the host.
    pub(crate) enter: Vec<String>,
}

impl ThisMachine {
    pub(crate) fn new(weir: &Path) -> Self {
        Self { weir: weir.to_owned(), enter: Vec::new() }
    }

    /// The words before a command that place it on the host and on a processor.
    fn placed(&self, place: &PartPlace) -> Result<Vec<String>, String> {
        let mut words = self.enter.clone();
        match place {
            PartPlace::ServerCore => words.extend(pinned_to(&[Cores::of_this_machine()?.server])),
            PartPlace::LoadCore => words.extend(pinned_to(&[Cores::of_this_machine()?.load])),
            PartPlace::Cores(cores) => words.extend(pinned_to(cores)),
            PartPlace::Anywhere | PartPlace::Whole => {}
        }
        Ok(words)
    }

    /// A generator's turn, placed on this machine.
    pub(super) fn placed_turn(&self, order: &GeneratorOrder) -> Result<GeneratorTurn, String> {
        Ok(GeneratorTurn { placed: self.placed(&order.place)?, ..order.turn.clone() })
    }

    /// Searches the highest rate of a load that keeps the bound, and counts the rates tried.
    pub(super) fn search(
        &self,
        order: &GeneratorOrder,
        search: &StudySearch,
    ) -> Result<(f64, usize), String> {
        let (turn, _folder) = self.turn(order)?;
        turn.search(&self.weir, search)
    }

    /// A generator's turn on this machine, and the folder that its options name.
    fn turn(
        &self,
        order: &GeneratorOrder,
    ) -> Result<(GeneratorTurn, Option<ServerFolder>), String> {
        let mut turn = self.placed_turn(order)?;
        let names_folder = turn.options.iter().any(|word| word.contains("%%dir%%"));
        let folder = if names_folder { Some(ServerFolder::new()?) } else { None };
        if let Some(folder) = &folder {
            turn.options = folder.options(&turn.options, turn.path())?;
        }
        let processors = match &order.place {
            PartPlace::Whole => Some(thread::available_parallelism().map_or(1, usize::from)),
            PartPlace::Cores(cores) => Some(cores.len()),
            _ => None,
        };
        if let Some(processors) = processors {
            let threads = processors.min(turn.connections as usize).max(1);
            turn.options.push(format!("-t{threads}"));
        }
        Ok((turn, folder))
    }
}

impl PartMachine for ThisMachine {
    fn program(&self, name: &str) -> Result<ProgramRecord, String> {
        ServerProgram::find(name, &self.weir).map(|program| program.record)
    }

    fn test(&self, order: &ServerOrder) -> Result<(), String> {
        let folder = ServerFolder::new()?;
        folder.write(order)?;
        ServerProgram::test(Path::new(&order.program), &folder)
    }

    fn server(&self, order: &ServerOrder) -> Result<Box<dyn ServingPart>, String> {
        let folder = ServerFolder::new()?;
        folder.write(order)?;
        let port = if order.tls { folder.tls_port } else { folder.port };
        let (words, file) = (self.placed(&order.place)?, folder.configuration());
        let server = MeasuredServer::behind(&words, Path::new(&order.program), &file, port)?;
        let accounts = ProcessAccounts::new(server.pid(), &order.counted);
        let address = BackendAddress::of_http(SocketAddrV4::new(order.listen, port));
        Ok(Box::new(ServerHere { address, accounts, _server: server, _folder: folder }))
    }

    fn backend(&self, order: &BackendOrder) -> Result<Box<dyn ServingPart>, String> {
        let placed = self.placed(&order.place)?;
        let (options, udp) = (order.options.clone(), order.udp);
        let of = StudyBackends { count: 1, options, udp };
        let backend = StudyBackend::start(&self.weir, &placed, order.listen, &of)?;
        let accounts = ProcessAccounts::new(backend.pid(), &order.counted);
        Ok(Box::new(BackendHere { backend, accounts }))
    }

    fn generator(&self, order: &GeneratorOrder) -> Result<Box<dyn GeneratingPart>, String> {
        let (turn, folder) = self.turn(order)?;
        if order.kind.is_foreign() {
            return Ok(Box::new(ForeignGenerator::new(order.kind, &turn)));
        }
        let generator = turn.start(&self.weir)?;
        Ok(Box::new(GeneratorHere { generator, _folder: folder }))
    }

    fn probe(&self, order: &GeneratorOrder) -> Result<String, String> {
        let (turn, _folder) = self.turn(order)?;
        turn.probe(&self.weir)
    }
}

struct ServerHere {
    address: BackendAddress,
    accounts: ProcessAccounts,
    // Dropped before its folder.
    _server: MeasuredServer,
    _folder: ServerFolder,
}

struct BackendHere {
    backend: StudyBackend,
    accounts: ProcessAccounts,
}

struct GeneratorHere {
    generator: RunningGenerator,
    _folder: Option<ServerFolder>,
}

impl ServingPart for ServerHere {
    fn address(&self) -> BackendAddress {
        self.address
    }

    fn pid(&self) -> Option<u32> {
        Some(self.accounts.pid)
    }

    fn cpu_s(&mut self) -> Result<f64, String> {
        procfs::cpu_s(self.accounts.pid)
    }

    fn begin_turn(&mut self, middle: Duration) -> Result<PartAccount, String> {
        self.accounts.begin(middle)
    }

    fn end_turn(&mut self) -> Result<PartAccount, String> {
        self.accounts.end()
    }
}

impl ServingPart for BackendHere {
    fn address(&self) -> BackendAddress {
        self.backend.address
    }

    fn pid(&self) -> Option<u32> {
        Some(self.accounts.pid)
    }

    fn cpu_s(&mut self) -> Result<f64, String> {
        procfs::cpu_s(self.accounts.pid)
    }

    fn begin_turn(&mut self, middle: Duration) -> Result<PartAccount, String> {
        self.accounts.begin(middle)
    }

    fn end_turn(&mut self) -> Result<PartAccount, String> {
        self.accounts.end()
    }
}

impl GeneratingPart for GeneratorHere {
    fn turn(&mut self) -> Result<MeasuredRun, String> {
        self.generator.turn()
    }

    fn pid(&self) -> Option<u32> {
        Some(self.generator.pid())
    }

    fn cpu_s(&mut self) -> Result<f64, String> {
        procfs::cpu_s(self.generator.pid())
    }
}

/// The accounts of a process and its descendants.
struct ProcessAccounts {
    pid: u32,
    /// The interfaces whose traffic is counted; if empty, all of the study's.
    interfaces: Vec<String>,
    /// Counts sockets in the middle of a turn.
    count: Option<JoinHandle<(SocketCounts, usize)>>,
}

impl ProcessAccounts {
    fn new(pid: u32, counted: &[Ipv4Addr]) -> Self {
        let interfaces = counted.iter().filter_map(|address| procfs::interface(pid, *address));
        Self { pid, interfaces: interfaces.collect(), count: None }
    }

    fn begin(&mut self, middle: Duration) -> Result<PartAccount, String> {
        let pid = self.pid;
        let account = self.now()?;
        self.count = Some(thread::spawn(move || {
            thread::sleep(middle);
            let established = procfs::established(pid).unwrap_or_default();
            (procfs::socket_counts(pid).unwrap_or_default(), established)
        }));
        Ok(account)
    }

    fn end(&mut self) -> Result<PartAccount, String> {
        let counted = self.count.take().and_then(|count| count.join().ok());
        let (counted, established) = counted.unwrap_or_default();
        let memory_bytes = procfs::memory(self.pid)?;
        let (sockets, time_wait) = (counted.in_use, counted.time_wait);
        Ok(PartAccount { memory_bytes, sockets, time_wait, established, ..self.now()? })
    }

    fn now(&self) -> Result<PartAccount, String> {
        let is_counted = |name: &str| match self.interfaces.is_empty() {
            true => hosts::counts(name),
            false => self.interfaces.iter().any(|counted| counted == name),
        };
        let traffic = procfs::traffic(self.pid, is_counted)?;
        let machine = MachineTime::now();
        let softirq = SoftirqTime::of(&allowed_cores_of(self.pid));
        Ok(PartAccount {
            cpu_s: procfs::cpu_s(self.pid)?,
            ticks: procfs::ticks(self.pid),
            switches: procfs::switches(self.pid),
            bytes_in: traffic.bytes_in,
            packets_in: traffic.packets_in,
            bytes_out: traffic.bytes_out,
            packets_out: traffic.packets_out,
            machine: (machine.all, machine.idle, machine.stolen),
            softirq: (softirq.all, softirq.softirq),
            run_delay_s: procfs::run_delay_s(self.pid),
            ..PartAccount::default()
        })
    }
}

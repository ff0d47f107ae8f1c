//! The parts of a row (server, backends, generator) and the machines that they run on.
//!
//! A machine is this one (`here`) or that of an agent (`crate::agent`). Orders and accounts are
//! data, so that both do the same with them.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::generator::GeneratorTurn;
use crate::figures::MeasuredRun;
use crate::record::ProgramRecord;
use crate::study::{BackendAddress, GeneratorKind};

/// A machine on which parts run.
pub(crate) trait PartMachine {
    /// Finds a server program: `weir`, `nginx` or a path.
    fn program(&self, name: &str) -> Result<ProgramRecord, String>;
    /// Tests a configuration; an error is what the program said.
    fn test(&self, order: &ServerOrder) -> Result<(), String>;
    fn server(&self, order: &ServerOrder) -> Result<Box<dyn ServingPart>, String>;
    fn backend(&self, order: &BackendOrder) -> Result<Box<dyn ServingPart>, String>;
    /// The server must already accept connections.
    fn generator(&self, order: &GeneratorOrder) -> Result<Box<dyn GeneratingPart>, String>;
    /// Sends one request and returns the status of its reply.
    fn probe(&self, order: &GeneratorOrder) -> Result<String, String>;
}

/// A running server or backend. Dropping it ends its processes.
pub(crate) trait ServingPart {
    fn address(&self) -> BackendAddress;
    /// The process, if it runs on this machine.
    fn pid(&self) -> Option<u32>;
    /// CPU time so far, in seconds.
    fn cpu_s(&mut self) -> Result<f64, String>;
    /// The account before a turn, in the middle of which sockets are counted.
    fn begin_turn(&mut self, middle: Duration) -> Result<PartAccount, String>;
    /// The account after it.
    fn end_turn(&mut self) -> Result<PartAccount, String>;
}

/// A generator that waits for its next turn. Dropping it ends its process.
pub(crate) trait GeneratingPart {
    /// Runs a turn. The caller adds the figures of the server's processes.
    fn turn(&mut self) -> Result<MeasuredRun, String>;
    /// The process, if it runs on this machine.
    fn pid(&self) -> Option<u32>;
    /// CPU time so far, in seconds.
    fn cpu_s(&mut self) -> Result<f64, String>;
}

/// The processors of a part.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartPlace {
    /// Wherever the system puts it.
    #[default]
    Anywhere,
    /// The processor for servers, where all parts share a machine.
    ServerCore,
    /// The processor for everything else.
    LoadCore,
    /// All processors: it has the machine for itself.
    Whole,
    /// These, which its row chooses.
    Cores(Vec<usize>),
}

/// A server to start.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerOrder {
    /// The path of the program.
    pub(crate) program: String,
    /// The configuration with the blanks that its machine fills: addresses and folder.
    pub(crate) text: String,
    pub(crate) listen: Ipv4Addr,
    /// Whether it is ready when it listens for encrypted connections.
    pub(crate) tls: bool,
    /// The number of processors that it may use; 0 for all of its machine.
    pub(crate) processors: usize,
    pub(crate) place: PartPlace,
    /// The addresses whose network interfaces are counted; if empty, all of the study's.
    pub(crate) counted: Vec<Ipv4Addr>,
}

/// A backend to start.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackendOrder {
    pub(crate) listen: Ipv4Addr,
    /// Options of `weir backend`.
    pub(crate) options: Vec<String>,
    /// Whether it also returns datagrams.
    pub(crate) udp: bool,
    pub(crate) place: PartPlace,
    /// As for a server.
    pub(crate) counted: Vec<Ipv4Addr>,
}

/// A generator to start.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GeneratorOrder {
    #[serde(default)]
    pub(crate) kind: GeneratorKind,
    pub(crate) turn: GeneratorTurn,
    pub(crate) place: PartPlace,
}

/// The resources that a part has used so far, and the state of its machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct PartAccount {
    pub(crate) cpu_s: f64,
    /// CPU time in user space and in the kernel.
    pub(crate) ticks: (u64, u64),
    pub(crate) switches: u64,
    /// Only after a turn.
    pub(crate) memory_bytes: f64,
    pub(crate) bytes_in: u64,
    pub(crate) packets_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) packets_out: u64,
    /// TCP sockets in the middle of the turn, only after it.
    pub(crate) sockets: usize,
    pub(crate) time_wait: usize,
    pub(crate) established: usize,
    /// The machine's time in ticks: all of it, idle, and taken by other machines.
    pub(crate) machine: (u64, u64, u64),
    /// The time of the part's processors in ticks: all of it, and that of softirqs.
    pub(crate) softirq: (u64, u64),
    /// How long the part's threads waited for a processor.
    pub(crate) run_delay_s: f64,
}

//! Running copies of the configuration, which a search puts under load and measures.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use processes::procfs;
use processes::server::{MeasuredServer, allowed_cores, pinned_to};
use sandbox::{EditableTree, Sandbox, SandboxPlaces, SandboxTarget};
use statistics::SplitMix;

use super::arguments::TuneArguments;
use super::candidates::TuneCandidate;
use super::disturbance::MachineWatch;
use super::gain::{FAILED, GainSamples, TuneBlocks};
use super::goal::TuneGoal;
use super::patch::PatchEffect;
use super::placing;
use super::server::{self, TunedServer};
use crate::figures::MeasuredRun;
use crate::run::folder::ServerFolder;
use crate::run::generator::{GeneratorTurn, RunningGenerator};

const TWO_CORES: &str = "two processors are needed: one for the server, one for the load";
/// The port of addresses without one, and of servers that do not listen explicitly.
const DEFAULT_PORT: u16 = 80;
/// The length of a turn.
const TURN_MS: u64 = 300;
/// Above this share of errors, tuning the user's own configuration is refused.
const ERRORS: f64 = 0.01;
/// A candidate's share of errors may be this many times that of the user's own configuration,
/// because small numbers of errors vary by chance.
const ERRORS_GROWTH: f64 = 2.0;
/// A file of a copy above this size is a log, which is emptied.
const LOG_BYTES_MAX: u64 = 16 << 20;
/// The blocks in which all figures are compared at the end.
pub(super) const FIGURES_BLOCKS: usize = 12;
/// The most running copies, which are idle between turns: enough for a round of all candidates.
const RUNNING_MAX: usize = 48;

/// The server program of the copies.
pub(super) struct TunedProgram {
    pub(super) path: PathBuf,
    pub(super) server: TunedServer,
    /// The output of `-V`.
    pub(super) said: String,
}

impl TunedProgram {
    pub(super) fn of(path: PathBuf) -> Result<Self, String> {
        let output = Command::new(&path).arg("-V").stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", path.display()))?;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Ok(Self { path, server: TunedServer::of(&said), said })
    }
}

/// A running copy.
struct RunningCopy {
    /// The candidates applied to it.
    candidates: Vec<usize>,
    // Dropped before its server.
    generator: RunningGenerator,
    server: MeasuredServer,
    folder: ServerFolder,
}

/// A copy whose configuration is written.
struct WrittenCopy {
    turn: GeneratorTurn,
    /// The port that the load uses.
    port: u16,
    notes: Vec<String>,
}

/// Writes a configuration readable by its owner only, because it may contain secrets.
fn keep_private(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(file)?.write_all(text)
}

/// Empties logs that could fill a disk; servers append to their logs, so they go on at the start.
fn empty_logs(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_long = file.metadata().is_ok_and(|of| of.is_file() && of.len() > LOG_BYTES_MAX);
        if is_long && let Ok(log) = OpenOptions::new().write(true).open(file.path()) {
            let _ = log.set_len(0);
        }
    }
}

/// The copies of a search.
pub(super) struct TuneCopies<'t> {
    pub(super) tree: &'t EditableTree,
    pub(super) candidates: &'t [TuneCandidate],
    pub(super) program: &'t TunedProgram,
    pub(super) arguments: &'t TuneArguments,
    pub(super) weir: &'t Path,
    /// The generator has its own processor and the server has all others: on a shared processor,
    /// turns differ by more than the effect of most settings.
    load_core: usize,
    server_cores: Vec<usize>,
    running: Vec<RunningCopy>,
    random: SplitMix,
    /// The largest share of errors in a turn of the user's own configuration.
    errors_max: f64,
    pub(super) machine: MachineWatch,
    /// Called after each turn.
    progress: &'t mut dyn FnMut(),
}

impl<'t> TuneCopies<'t> {
    pub(super) fn new(
        (tree, candidates): (&'t EditableTree, &'t [TuneCandidate]),
        program: &'t TunedProgram,
        (arguments, weir): (&'t TuneArguments, &'t Path),
        progress: &'t mut dyn FnMut(),
    ) -> Result<Self, String> {
        let cores = allowed_cores()?;
        let [server_cores @ .., load_core] = &cores[..] else { return Err(TWO_CORES.to_owned()) };
        if server_cores.is_empty() {
            return Err(TWO_CORES.to_owned());
        }
        Ok(Self {
            tree,
            candidates,
            program,
            arguments,
            weir,
            load_core: *load_core,
            server_cores: server_cores.to_vec(),
            running: Vec::new(),
            random: SplitMix::new(1),
            errors_max: 0.0,
            machine: MachineWatch::new(arguments.wait_idle),
            progress,
        })
    }

    /// The ways in which a copy of the user's own configuration differs from it. An error if the
    /// server refuses the copy.
    pub(super) fn notes(&self) -> Result<Vec<String>, String> {
        match self.refusal(&[])? {
            Some(why) => {
                Err(format!("{} refuses the configuration:\n{why}", self.program.path.display()))
            }
            None => Ok(self.write(&[], &ServerFolder::new()?)?.notes),
        }
    }

    /// The server's message if it refuses a configuration; `None` if it accepts it.
    pub(super) fn refusal(&self, candidates: &[usize]) -> Result<Option<String>, String> {
        let folder = ServerFolder::new()?;
        self.write(candidates, &folder)?;
        let output = self.command(&folder).arg("-t").stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.path.display()))?;
        let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        Ok((!output.status.success()).then_some(said))
    }

    /// Runs a turn of the user's own configuration, which must reply without errors. Returns the
    /// seconds it took.
    pub(super) fn try_baseline(&mut self) -> Result<f64, String> {
        let at = self.at(&[])?;
        let begin = Instant::now();
        let measured = self.running[at].generator.turn()?;
        let seconds = begin.elapsed().as_secs_f64();
        let (errors, url) = (measured.errors, &self.arguments.url);
        if errors as f64 > ERRORS * measured.requests as f64 {
            let log = fs::read_to_string(self.running[at].folder.path().join("error.log"));
            let log = log.unwrap_or_default();
            return Err(format!(
                "{errors} of {} requests of {url} failed or had another status than 2xx: a copy of \
                 the configuration must answer them as the real server does\n{}",
                measured.requests,
                log.lines().last().unwrap_or_default()
            ));
        }
        Ok(seconds)
    }

    /// The index of the copy with these candidates, which is started if it does not run.
    fn at(&mut self, candidates: &[usize]) -> Result<usize, String> {
        let known = self.running.iter().position(|copy| copy.candidates == candidates);
        if let Some(at) = known {
            return Ok(at);
        }
        if self.running.len() == RUNNING_MAX {
            let oldest = self.running.iter().position(|copy| !copy.candidates.is_empty());
            self.running.remove(oldest.unwrap_or_default());
        }
        let mut copy = self.start(candidates)?;
        // One turn of warm-up.
        copy.generator.turn()?;
        self.running.push(copy);
        Ok(self.running.len() - 1)
    }

    fn start(&self, candidates: &[usize]) -> Result<RunningCopy, String> {
        let folder = ServerFolder::new()?;
        let WrittenCopy { turn, port, .. } = self.write(candidates, &folder)?;
        let command = self.command(&folder);
        let words = pinned_to(&self.server_cores);
        let server = MeasuredServer::run(&words, &command, &folder.configuration(), port)?;
        let generator = turn.start(self.weir)?;
        Ok(RunningCopy { candidates: candidates.to_vec(), generator, server, folder })
    }

    /// Writes the configuration of a copy into a folder.
    fn write(&self, candidates: &[usize], folder: &ServerFolder) -> Result<WrittenCopy, String> {
        let chosen: Vec<TuneCandidate> = candidates.iter().map(|at| self.candidates[*at]).collect();
        let tree = TuneCandidate::apply_all(&chosen, self.tree);
        let is_root = crate::hosts::is_root();
        let temporary_folders = server::temporary_folders(&self.program.said);
        let prefix = self.prefix();
        let places = SandboxPlaces {
            folder: folder.path(),
            prefix: prefix.as_deref(),
            default_port: DEFAULT_PORT,
            logs_by_default: self.program.server != TunedServer::Weir || is_root,
            keeps_ports: false,
            temporary_folders: &temporary_folders,
        };
        let mut ports = BTreeMap::new();
        let mut held = Vec::new();
        for address in sandbox::addresses(&tree, DEFAULT_PORT)? {
            // All listeners are held until all ports are known, so that the ports differ.
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            let listener = listener.map_err(|error| format!("no free port: {error}"))?;
            let new = listener.local_addr().map_err(|error| error.to_string())?;
            held.push(listener);
            ports.insert(address, new);
        }
        sandbox::refuse_unknown(&tree)?;
        let mut copy = Sandbox::new(&tree, places, &ports)?;
        placing::place(&mut copy.tree, &self.server_cores);
        let file = folder.configuration();
        keep_private(&file, &copy.tree.write())
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let target = copy.target(&self.arguments.url)?;
        let port = ports.get(&target.from).map_or(0, SocketAddr::port);
        Ok(WrittenCopy { turn: self.load(&target), port, notes: copy.notes })
    }

    fn load(&self, target: &SandboxTarget) -> GeneratorTurn {
        let mut options = vec!["-H".to_owned(), format!("Host: {}", target.host)];
        if target.url.starts_with("https:") && target.name.parse::<std::net::IpAddr>().is_err() {
            options.extend(["--sni".to_owned(), target.name.clone()]);
        }
        // As browsers do, so that compression has its cost.
        let names = |header: &String| header.to_ascii_lowercase().starts_with("accept-encoding:");
        if !self.arguments.headers.iter().any(names) {
            options.extend(["-H".to_owned(), "Accept-Encoding: gzip".to_owned()]);
        }
        let headers = self.arguments.headers.iter();
        options.extend(headers.flat_map(|header| ["-H".to_owned(), header.clone()]));
        GeneratorTurn {
            placed: pinned_to(&[self.load_core]),
            connections: self.arguments.connections,
            turn_ms: TURN_MS,
            options,
            url: target.url.clone(),
            further_urls: Vec::new(),
        }
    }

    fn prefix(&self) -> Option<PathBuf> {
        let given = self.arguments.prefix.as_deref();
        self.program.server.prefix(given, self.tree, &self.program.said)
    }

    fn command(&self, folder: &ServerFolder) -> Command {
        let mut command = Command::new(&self.program.path);
        command.arg("-c").arg(folder.configuration());
        if self.program.server.has_error_log_option() {
            command.arg("-e").arg(folder.path().join("error.log"));
        }
        if let Some(prefix) =
            self.prefix().filter(|prefix| !prefix.as_os_str().as_bytes().is_empty())
        {
            command.arg("-p").arg(prefix);
        }
        command
    }

    /// The figures of a turn; `None` if the turn failed. A failure to start or reply is an error
    /// only for the user's own configuration.
    fn turn(&mut self, candidates: &[usize]) -> Result<Option<MeasuredRun>, String> {
        for last in [false, true] {
            let measured = self.at(candidates).and_then(|at| self.measure(at));
            match measured {
                Ok(measured) => {
                    let has_failed = self.has_failed(candidates, &measured);
                    return Ok((!has_failed).then_some(measured));
                }
                Err(why) if last && candidates.is_empty() => return Err(why),
                // The copy is started again.
                Err(_) => self.running.retain(|copy| copy.candidates != candidates),
            }
        }
        Ok(None)
    }

    fn measure(&mut self, at: usize) -> Result<MeasuredRun, String> {
        let copy = &mut self.running[at];
        let before = procfs::cpu_s(copy.server.pid())?;
        let mut measured = copy.generator.turn()?;
        let cpu_s = procfs::cpu_s(copy.server.pid())? - before;
        empty_logs(copy.folder.path());
        measured.cpu_us = cpu_s * 1e6 / measured.requests as f64;
        Ok(measured)
    }

    /// Whether the turn has errors and the user's own configuration has none, or whether its share
    /// of errors is much larger.
    fn has_failed(&mut self, candidates: &[usize], measured: &MeasuredRun) -> bool {
        let share = measured.errors as f64 / measured.requests.max(1) as f64;
        if candidates.is_empty() {
            self.errors_max = self.errors_max.max(share);
        }
        measured.requests == 0 || share > ERRORS_GROWTH * self.errors_max
    }

    /// The change of every figure by these candidates together, in blocks of their own.
    pub(super) fn all_figures(&mut self, candidates: &[usize]) -> Result<Vec<PatchEffect>, String> {
        let mut samples = TuneGoal::ALL.map(|_| GainSamples::default());
        for _ in 0..FIGURES_BLOCKS {
            self.machine.between_blocks()?;
            let (own, changed) = (self.turn(&[])?, self.turn(candidates)?);
            let Some((own, changed)) = own.zip(changed) else { continue };
            for (goal, samples) in TuneGoal::ALL.iter().zip(&mut samples) {
                samples.add(goal.gain(goal.of(&changed), goal.of(&own)));
            }
            (self.progress)();
        }
        let effects = TuneGoal::ALL.iter().zip(&samples);
        let effects = effects.filter_map(|(goal, samples)| Some((goal, samples.effect(0)?)));
        Ok(effects.map(|(goal, effect)| PatchEffect::new(*goal, effect)).collect())
    }
}

impl TuneBlocks for TuneCopies<'_> {
    fn gains(&mut self, configurations: &[Vec<usize>]) -> Result<Vec<f64>, String> {
        self.machine.between_blocks()?;
        let mut order: Vec<usize> = (0..configurations.len()).collect();
        self.random.shuffle(&mut order);
        let mut figures = vec![None; configurations.len()];
        for number in order {
            let measured = self.turn(&configurations[number])?;
            figures[number] = measured.map(|measured| self.arguments.goal.of(&measured));
            (self.progress)();
        }
        let Some((first, others)) = figures.split_first() else { return Ok(Vec::new()) };
        let goal = self.arguments.goal;
        let gain = |figure: &Option<f64>| match (figure, first) {
            (Some(figure), Some(first)) => goal.gain(*figure, *first),
            (None, Some(_)) => FAILED,
            (_, None) => f64::NAN,
        };
        Ok(others.iter().map(gain).collect())
    }
}

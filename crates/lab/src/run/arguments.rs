//! The arguments of `weir lab run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::role_host::RoleHost;
use crate::gate::GateRule;
use crate::record::StudyLooks;
use crate::study::{BLOCKS_MIN, Study, StudyBlocks, StudySearch};

/// The text that `--help` prints.
pub const USAGE: &str = "Usage: weir lab run STUDY [OPTIONS]

Measures what each row of a study gains over its baseline, with confidence intervals. STUDY is a
built-in one (weir lab list) or a .toml file (docs/lab-studies.md explains the format).

Options:
  --server NAME   weir (default), nginx, or the path of a program that takes nginx's options
  --against NAME  another server beside it, in the same blocks
  --quick         fewer blocks, for a first look; --full (default): all of them
  --blocks N      so many blocks; the more, the narrower the intervals
  --out DIR       the folder for all results (default: weir-lab/STUDY)
  --host PART=AT  the machine of client, server or backend (repeatable): ssh:[USER@]HOST[:WEIR], or
                  IP:PORT of a weir lab agent; behind a comma, the address for the other parts
  --token-file F  the secret of agents at IP:PORT
  --anyway        run a study on a machine that lacks what it needs, as processors or memory nodes
  --loopback      stay on loopback addresses; rows that need hosts are left out
  --row NAME      only this row, the first, and those that it refers to (repeatable)
  --resume        go on with the blocks that are missing in that folder
  --search BOUND  also search the highest rate of each row whose latency keeps a bound: p99=10ms
  --fail-if LIMIT exit with 3 if an effect is beyond it, such as rate<-3% or p99>10%, and with 4 if
                  that is not certain; with --against, the effect is that of the other server, and
                  otherwise of each row on its baseline (repeatable)
  --baseline PATH compare with the results of an earlier run, a folder or its record.json, where
                  the old server cannot be run again; weaker than --against
  --stop-early    stop after 8, 16, 24 ... blocks if all limits are decided; the intervals are then
                  wider, so that all looks together are wrong in 5 of 100 cases at most
  --profile       also sample each row's server with perf(1), for flame graphs and their
                  differences in the report; needs root
  --junit FILE    write the results of --fail-if for CI systems
  --wait-idle[=T] wait while the machine is busy, before each block, T (default: 10m) at most
  -h, --help      print this help

As root, client, server and backends are hosts of their own: network namespaces joined by links.
Without root they share loopback addresses. Ctrl-C ends the run with a report of the blocks that are
complete (exit code 130, or 4 with --fail-if); a second one ends it at once.
";

/// The arguments after `run`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunArguments {
    /// Whether to print the usage.
    pub help: bool,
    pub(super) study: String,
    pub(super) servers: Vec<String>,
    pub(super) rows: Vec<String>,
    pub(super) quick: bool,
    /// The number of blocks if it is not the study's.
    pub(super) blocks: Option<usize>,
    pub(super) resume: bool,
    pub(super) loopback: bool,
    pub(super) profile: bool,
    pub(super) anyway: bool,
    pub(super) out: Option<PathBuf>,
    /// A bound on latency, for the search of the highest rate.
    pub(super) search: Option<String>,
    pub(super) hosts: Vec<RoleHost>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) fail_if: Vec<GateRule>,
    /// The record of an earlier run.
    pub(super) baseline: Option<PathBuf>,
    /// Whether to stop when all limits are decided.
    pub(super) stop_early: bool,
    pub(super) junit: Option<PathBuf>,
    /// How long to wait while the machine is busy.
    pub(super) wait_idle: Option<Duration>,
}

impl RunArguments {
    /// Reads the words after `run`.
    pub fn parse(words: &[OsString]) -> Result<Self, String> {
        let mut arguments = Self::default();
        let (mut server, mut against) = (None, None);
        let mut words = words.iter().map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} requires a value"));
            match word.as_str() {
                "--help" | "-h" => arguments.help = true,
                "--quick" => arguments.quick = true,
                "--full" => arguments.quick = false,
                "--profile" => arguments.profile = true,
                "--blocks" => arguments.blocks = Some(blocks(&value()?)?),
                "--loopback" => arguments.loopback = true,
                "--anyway" => arguments.anyway = true,
                "--resume" => arguments.resume = true,
                "--row" => arguments.rows.push(value()?),
                "--server" => server = Some(value()?),
                "--against" => against = Some(value()?),
                "--fail-if" => arguments.fail_if.push(GateRule::parse(&value()?)?),
                "--baseline" => arguments.baseline = Some(value()?.into()),
                "--stop-early" => arguments.stop_early = true,
                "--search" => arguments.search = Some(value()?),
                "--junit" => arguments.junit = Some(value()?.into()),
                "--host" => arguments.add_host(&value()?)?,
                "--token-file" => arguments.token_file = Some(value()?.into()),
                "--out" => arguments.out = Some(value()?.into()),
                option if option.starts_with("--wait-idle") => {
                    arguments.wait_idle = Some(wait_idle(option)?);
                }
                _ if word.starts_with('-') => return Err(format!("unknown option {word}")),
                _ if arguments.study.is_empty() => arguments.study = word,
                _ => return Err("only one study can be run at a time".to_owned()),
            }
        }
        if arguments.junit.is_some() && arguments.fail_if.is_empty() {
            return Err("--junit requires --fail-if".to_owned());
        }
        if arguments.baseline.is_some() && (against.is_some() || arguments.stop_early) {
            return Err("--baseline cannot be combined with --against or --stop-early".to_owned());
        }
        if arguments.stop_early && arguments.fail_if.is_empty() {
            return Err("--stop-early requires --fail-if".to_owned());
        }
        let of_search = arguments.fail_if.iter().find(|rule| rule.is_of_capacity());
        if let Some(rule) = of_search.filter(|_| arguments.stop_early) {
            return Err(format!(
                "--stop-early cannot be combined with --fail-if {rule}: searches follow the blocks"
            ));
        }
        if arguments.loopback && !arguments.hosts.is_empty() {
            return Err("--loopback and --host exclude each other".to_owned());
        }
        if arguments.study.is_empty() && !arguments.help {
            return Err("a study is required".to_owned());
        }
        let server = server.unwrap_or_else(|| "weir".to_owned());
        if against.as_ref() == Some(&server) {
            return Err(format!("--against names {server} as well"));
        }
        arguments.servers = [Some(server), against].into_iter().flatten().collect();
        Ok(arguments)
    }

    /// The number of blocks to measure.
    pub(super) fn blocks_of(&self, of: &StudyBlocks) -> usize {
        self.blocks.unwrap_or(if self.quick { of.quick } else { of.full })
    }

    /// The looks at a study that may stop early.
    pub(super) fn looks(&self, blocks: usize) -> Option<StudyLooks> {
        self.stop_early.then(|| StudyLooks::new(blocks))
    }

    /// Adds `--search` to a study, or replaces the bound of its search.
    pub(super) fn add_search(&self, study: &mut Study) -> Result<(), String> {
        if let Some(bound) = &self.search {
            let mut search = study.search.take().unwrap_or_else(|| StudySearch::new(String::new()));
            search.bound.clone_from(bound);
            if let Some(problem) = search.problem() {
                return Err(problem);
            }
            study.search = Some(search);
        }
        match self.fail_if.iter().find(|rule| rule.is_of_capacity()) {
            Some(rule) if study.search.is_none() => {
                Err(format!("--fail-if {rule} needs a search: add --search p99=10ms"))
            }
            _ => Ok(()),
        }
    }
}

fn blocks(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count >= BLOCKS_MIN);
    count.ok_or_else(|| format!("--blocks {text}: at least {BLOCKS_MIN} are needed"))
}

impl RunArguments {
    fn add_host(&mut self, word: &str) -> Result<(), String> {
        let host = RoleHost::parse(word)?;
        if self.hosts.iter().any(|known| known.role == host.role) {
            return Err(format!("--host names the {} twice", host.role.name()));
        }
        self.hosts.push(host);
        Ok(())
    }
}

/// How long `--wait-idle` waits by default.
const WAIT_IDLE: Duration = Duration::from_secs(600);

/// Reads `--wait-idle` or `--wait-idle=TIME`.
pub(crate) fn wait_idle(option: &str) -> Result<Duration, String> {
    let time = match option.strip_prefix("--wait-idle").unwrap_or_default() {
        "" => return Ok(WAIT_IDLE),
        rest => rest.strip_prefix('=').ok_or_else(|| format!("unknown option {option}"))?,
    };
    let seconds = conf::units::seconds(time.as_bytes()).filter(|seconds| *seconds > 0);
    let seconds = seconds.ok_or_else(|| format!("--wait-idle={time} is no time such as 10m"))?;
    Ok(Duration::from_secs(seconds))
}

//! What an agent may be asked to start.

use std::path::{Path, PathBuf};

use super::configuration;
#[cfg(any(test, feature = "fuzzing"))]
use super::protocol::AgentRequest;
use crate::run::part::{BackendOrder, GeneratorOrder, ServerOrder};
use crate::study;

/// The programs of an agent.
#[derive(Clone)]
pub(crate) struct AgentRights {
    pub(super) weir: PathBuf,
    programs: Vec<PathBuf>,
}

/// Options of `weir backend` with a value. Those that name files or addresses are missing.
const BACKEND_WITH_VALUE: [&str; 20] = [
    "--body",
    "--cut",
    "--delay",
    "--disconnect",
    "--error",
    "--error-status",
    "--header",
    "--pause",
    "--pool",
    "--pool-queue",
    "--reset",
    "--seed",
    "--size",
    "--sleep",
    "--slow",
    "--spin",
    "--status",
    "--threads",
    "--trickle",
    "-H",
];
const BACKEND_ALONE: [&str; 4] = ["--chunked", "--echo", "--upgrade", "--whoami"];

/// Options of `weir load` whose value is a file, which must be in the generator's own folder.
const LOAD_FILES: [&str; 2] = ["--body-file", "--list"];
/// The most slow connections of a generator, which a study writes without a unit.
const SLOW_MAX: u32 = 10_000;
const OWN_FOLDER: &str = "%%dir%%/";

impl AgentRights {
    pub(crate) fn new(weir: &Path, programs: &[PathBuf]) -> Self {
        Self { weir: weir.to_owned(), programs: programs.to_vec() }
    }

    /// The program of this name or path: this one, or one that was allowed.
    pub(super) fn program(&self, name: &str) -> Result<String, String> {
        if name == "weir" || Path::new(name) == self.weir {
            return Ok("weir".to_owned());
        }
        let is_it = |path: &&PathBuf| match name.contains('/') {
            true => path.as_path() == Path::new(name),
            false => path.file_name().is_some_and(|file| file == name),
        };
        let found = self.programs.iter().find(is_it).map(|path| path.display().to_string());
        found.ok_or_else(|| {
            format!("the agent may not start {name}: it needs --allow-program with its path")
        })
    }

    /// Whether a request that starts something may be carried out.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn check(&self, request: &AgentRequest) -> Result<(), String> {
        match request {
            AgentRequest::Program { name } => self.program(name).map(drop),
            AgentRequest::Test(order) | AgentRequest::Server(order) => self.server(order).map(drop),
            AgentRequest::Backend(order) => backend(order),
            AgentRequest::Generator(order) | AgentRequest::Probe(order) => generator(order),
            _ => Ok(()),
        }
    }

    /// The order with the path of its program, if it may be carried out.
    pub(crate) fn server(&self, order: &ServerOrder) -> Result<ServerOrder, String> {
        let program = match self.program(&order.program)?.as_str() {
            "weir" => self.weir.display().to_string(),
            path => path.to_owned(),
        };
        address(order.listen)?;
        configuration::check(order)?;
        Ok(ServerOrder { program, ..order.clone() })
    }
}

fn address(address: std::net::Ipv4Addr) -> Result<(), String> {
    let is_one = !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast();
    is_one.then_some(()).ok_or_else(|| format!("{address} is no address of one machine"))
}

pub(crate) fn backend(order: &BackendOrder) -> Result<(), String> {
    address(order.listen)?;
    let mut words = order.options.iter();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((&**word, None), |(n, v)| (n, Some(v)));
        let has_value = BACKEND_WITH_VALUE.contains(&name);
        let is_known = has_value || (BACKEND_ALONE.contains(&name) && value.is_none());
        // Only long options are joined to their values by `=`.
        if !is_known || (value.is_some() && !name.starts_with("--")) {
            return Err(format!("a backend of an agent may not have {word}"));
        }
        if has_value && value.is_none() && words.next().is_none() {
            return Err(format!("{word} requires a value"));
        }
    }
    Ok(())
}

pub(crate) fn generator(order: &GeneratorOrder) -> Result<(), String> {
    let turn = &order.turn;
    study::extent_problem(turn.connections, turn.turn_ms).map_or(Ok(()), Err)?;
    if order.kind.is_foreign() {
        return Err(format!("an agent may not start the generator {}", order.kind.name()));
    }
    [&turn.url].into_iter().chain(&turn.further_urls).try_for_each(|url| target(url))?;
    let close = turn.options.first().is_some_and(|word| word == "--close");
    let options = &turn.options[usize::from(close)..];
    study::options_problem(options).map_or(Ok(()), Err)?;
    for pair in options.windows(2).filter(|pair| LOAD_FILES.contains(&pair[0].as_str())) {
        let own = pair[1].strip_prefix(OWN_FOLDER).filter(|name| is_plain(name));
        own.ok_or_else(|| format!("{} {}: it must be in {OWN_FOLDER}", pair[0], pair[1]))?;
    }
    options.windows(2).filter(|pair| pair[0] == "--slow").try_for_each(|pair| slow(&pair[1]))
}

/// Checks the target of requests.
fn target(url: &str) -> Result<(), String> {
    let rest = ["http://", "https://", "udp://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    match host.parse::<std::net::SocketAddrV4>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{url} names no address and port")),
    }
}

/// Checks the value of `--slow`: connections, and perhaps a rate behind a comma.
fn slow(value: &str) -> Result<(), String> {
    let count = value.split(',').next().unwrap_or_default().parse::<u32>();
    let is_bounded = count.is_ok_and(|count| count <= SLOW_MAX);
    is_bounded
        .then_some(())
        .ok_or_else(|| format!("--slow {value}: at most {SLOW_MAX} connections"))
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name != ".."
}

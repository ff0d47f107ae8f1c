//! The parsed command line of `weir load`.

use std::ffi::OsString;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::Address;

use crate::background::{BackgroundOptions, local_ports};
use crate::called_as::CalledAs;
use crate::choices::CHOICES;
use crate::expect::Expectation;
use crate::options::{self, OptionPart};
use crate::requests::{Mix, RequestDefaults, listed};
use crate::results::compare::turns::BLOCKS_MIN;
use crate::results::{Percentile, wrk};
use crate::run::plan::{RunPlan, ScriptPlan};
use crate::run::schedule::RateSchedule;
use crate::script;
use crate::target::{LoadTarget, TargetScheme};
use crate::tls::TlsOptions;
use crate::units;

/// wrk's defaults.
const CONNECTIONS: u64 = 10;
const DURATION: Duration = Duration::from_secs(10);
const THREADS: u64 = 2;
const TIMEOUT: Duration = Duration::from_secs(2);

const THREADS_MAX: u64 = 1024;
const CONNECTIONS_MAX: u64 = 1_000_000;
const PIPELINE_MAX: u64 = 1024;
const STREAMS_MAX: u64 = 10_000;
const REPEAT_MAX: u64 = 1000;
const RATE_MAX: u64 = 100_000_000;
const PERCENTILES_MAX: usize = 32;

/// The number of turns in a run with two servers, ...
const TURNS: u32 = 40;
/// ... unless they would be shorter or longer than this.
const TURN_MIN: Duration = Duration::from_millis(50);
const TURN_MAX: Duration = Duration::from_secs(1);

/// Descriptors of a thread in addition to its connections: epoll, wake-ups and alarms.
const THREAD_DESCRIPTORS: u64 = 6;
/// Descriptors of everything else.
const DESCRIPTORS: u64 = 16;

/// A bound on a percentile of latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Goal {
    pub(crate) percentile: Percentile,
    pub(crate) below: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct LoadSettings {
    pub(crate) targets: Vec<LoadTarget>,
    /// The arguments of a script.
    pub(crate) arguments: Vec<String>,
    pub(crate) common: RequestDefaults,
    pub(crate) script: Option<PathBuf>,
    latency: bool,
    percentiles: Vec<Percentile>,
    /// The server that the other is compared with.
    pub(crate) against: Option<LoadTarget>,
    turn: Option<Duration>,
    /// Whether turns begin when the caller says so.
    pub(crate) on_demand: bool,
    /// How long to wait while the machine is busy.
    pub(crate) wait_idle: Option<Duration>,
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) hlog: Option<PathBuf>,
    pub(crate) repeat: u64,
    pub(crate) search: Option<Goal>,
    pub(crate) quiet: bool,
    connections: u64,
    threads: u64,
    duration: Option<Duration>,
    requests: Option<u64>,
    timeout: Duration,
    rate: Option<RateSchedule>,
    per_connection: Option<u64>,
    pipeline: u64,
    weights: Vec<u64>,
    list: Option<PathBuf>,
    from: Vec<IpAddr>,
    tls: TlsOptions,
    is_http2: bool,
    streams: Option<u64>,
    background: BackgroundOptions,
}

/// The parts of a run that are printed in addition to wrk's text.
pub(crate) struct ReportParts {
    /// In wrk's list of percentiles; without any there is no list.
    pub(crate) percentiles: Vec<Percentile>,
    /// Whether percentiles beyond wrk's are among the notes.
    pub(crate) further: bool,
}

/// The action that the command line requests.
#[derive(Debug)]
pub(crate) enum RequestedRun {
    Load(Box<LoadSettings>),
    Help,
    Version,
}

impl LoadSettings {
    pub(crate) fn read(words: &[OsString], called: CalledAs) -> Result<RequestedRun, String> {
        let said = options::read(CHOICES, words).map_err(|refused| refused.to_string())?;
        let mut settings = Self::default();
        let mut plain = Vec::new();
        for said in said {
            match said {
                OptionPart::Option("help", _) => return Ok(RequestedRun::Help),
                OptionPart::Option("version", _) => return Ok(RequestedRun::Version),
                OptionPart::Option(name, value) => {
                    settings.set(name, &value).map_err(|error| format!("--{name}: {error}"))?;
                }
                OptionPart::Word(word) => plain.push(word),
                OptionPart::Rest(word) => settings.arguments.push(word),
            }
        }
        settings.set_urls(plain)?;
        settings.settle_threads(called)?;
        settings.check()?;
        Ok(RequestedRun::Load(Box::new(settings)))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "connections" => self.connections = within(value, 1, CONNECTIONS_MAX)?,
            "duration" => self.duration = Some(positive(value)?),
            "threads" => self.threads = within(value, 1, THREADS_MAX)?,
            "script" => self.script = Some(value.into()),
            "header" => self.common.headers.push(header(value)?),
            "latency" => self.latency = true,
            "percentiles" => self.percentiles = percentiles(value)?,
            "against" => self.against = Some(LoadTarget::parse(value)?),
            "on-demand" => self.on_demand = true,
            "wait-idle" => self.wait_idle = Some(units::time(value)?),
            "turn" => self.turn = Some(positive(value)?),
            "expect" => self.expectations.push(Expectation::parse(value)?),
            "timeout" => self.timeout = positive(value)?,
            "rate" => self.rate = Some(rate(value)?),
            "requests" => self.requests = Some(within(value, 1, u64::MAX)?),
            "close" => self.per_connection = Some(1),
            "per-connection" => self.per_connection = Some(within(value, 1, u64::MAX)?),
            "pipeline" => self.pipeline = within(value, 1, PIPELINE_MAX)?,
            "method" => self.common.method = token(value)?,
            "body" => self.common.body = value.into(),
            "body-file" => self.common.body = std::fs::read(value).map_err(of(value))?,
            "h2" => self.is_http2 = true,
            "streams" => self.streams = Some(within(value, 1, STREAMS_MAX)?),
            "idle" => self.background.set_idle(value)?,
            "slow" => self.background.set_slow(value)?,
            "weights" => self.weights = list(value, units::count)?,
            "list" => self.list = Some(value.into()),
            "from" => self.from = list(value, address)?,
            "json" => self.json = Some(value.into()),
            "hlog" => self.hlog = Some(value.into()),
            "repeat" => self.repeat = within(value, 1, REPEAT_MAX)?,
            "search" => self.search = Some(goal(value)?),
            "quiet" => self.quiet = true,
            other => self.tls.set(other, value)?,
        }
        Ok(())
    }

    /// As with wrk, with a script there is one URL, and further words are for the script.
    fn set_urls(&mut self, mut words: Vec<String>) -> Result<(), String> {
        if self.script.is_some() && words.len() > 1 {
            let arguments = words.split_off(1);
            self.arguments.splice(..0, arguments);
        }
        if words.is_empty() {
            return Err("a URL is required".into());
        }
        self.targets = words.iter().map(|url| LoadTarget::parse(url)).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Limits threads to the number of connections. wrk refuses such a command line.
    fn settle_threads(&mut self, called: CalledAs) -> Result<(), String> {
        if self.connections < self.threads && called == CalledAs::Wrk {
            return Err("number of connections must be >= threads".into());
        }
        self.threads = self.threads.min(self.connections);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let first = &self.targets[0];
        let is_echo = first.scheme.is_echo();
        let checks = [
            (
                !self.targets.iter().all(|target| target.is_with(first)),
                "all URLs must be on the same server",
            ),
            (
                !self.weights.is_empty() && self.weights.len() != self.targets.len(),
                "--weights requires one number per URL",
            ),
            (
                self.list.is_some() && self.targets.len() > 1,
                "--list requires exactly one URL, the server's",
            ),
            (
                self.script.is_some() && (self.list.is_some() || self.pipeline > 1 || is_echo),
                "a script cannot be combined with --list, --pipeline, tcp:// or udp://",
            ),
            (
                self.pipeline > 1 && (self.rate.is_some() || self.search.is_some()),
                "--pipeline cannot be combined with --rate or --search",
            ),
            (
                self.search.is_some()
                    && (self.rate.is_some() || self.script.is_some() || self.repeat > 1),
                "--search cannot be combined with --rate, --repeat or a script",
            ),
            (
                self.search.is_some() && !self.expectations.is_empty(),
                "--search cannot be combined with --expect",
            ),
            (
                is_echo && (self.list.is_some() || !self.common.is_plain()),
                "tcp:// and udp:// cannot be combined with --method, --header or --list",
            ),
            (is_echo && self.common.body.is_empty(), "tcp:// and udp:// require --body"),
            (
                self.per_connection.is_some_and(|most| most % self.pipeline != 0),
                "the requests per connection must be a multiple of --pipeline",
            ),
            (self.streams.is_some() && !self.is_http2, "--streams requires --h2"),
            (
                self.is_http2 && (self.script.is_some() || self.pipeline > 1 || is_echo),
                "--h2 cannot be combined with --pipeline (use --streams), a script, tcp:// or \
                 udp://",
            ),
            (
                first.scheme != TargetScheme::Https
                    && self.against.as_ref().is_none_or(|a| a.scheme != TargetScheme::Https)
                    && self.tls != TlsOptions::default(),
                "--tls, --ciphers, --groups, --resume, --alpn, --sni, --cacert and --cert require \
                 https://",
            ),
            (
                first.scheme == TargetScheme::Udp
                    && (self.pipeline > 1 || self.per_connection.is_some()),
                "udp:// cannot be combined with --close, --per-connection or --pipeline",
            ),
        ];
        let all = checks.into_iter().chain(self.checks_in_turns()).chain(self.checks_beside());
        match all.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, what)) => Err(what.into()),
            None => Ok(()),
        }
    }

    /// Options that cannot be combined with `--against`.
    fn checks_in_turns(&self) -> Vec<(bool, &'static str)> {
        let Some(against) = &self.against else {
            return vec![
                (self.turn.is_some(), "--turn requires --against"),
                (
                    self.on_demand
                        && (self.search.is_some() || self.repeat > 1 || self.requests.is_some()),
                    "--on-demand cannot be combined with --search, --repeat or --requests",
                ),
                (
                    self.on_demand
                        && (self.script.is_some() || self.json.is_some() || self.hlog.is_some()),
                    "--on-demand cannot be combined with --script, --json or --hlog",
                ),
            ];
        };
        vec![
            (self.on_demand, "--on-demand cannot be combined with --against"),
            (
                self.targets.len() > 1
                    || self.targets[0].scheme.is_echo() != against.scheme.is_echo(),
                "--against requires exactly one other URL, of the same kind",
            ),
            (
                self.search.is_some() || self.repeat > 1 || self.requests.is_some(),
                "--against cannot be combined with --search, --repeat or --requests",
            ),
            (
                self.rate.is_some_and(|rate| rate.from != rate.to),
                "--against requires a constant --rate",
            ),
            (
                self.script.is_some() || self.hlog.is_some(),
                "--against cannot be combined with --script or --hlog",
            ),
        ]
    }

    /// Options that cannot be combined with connections beside the measured load.
    fn checks_beside(&self) -> Option<(bool, &'static str)> {
        let is_other = self.is_http2 || self.script.is_some() || self.against.is_some();
        (self.background.connections() > 0).then_some((
            is_other || self.targets[0].scheme.is_echo(),
            "--idle and --slow cannot be combined with --against, --h2, a script, tcp:// or udp://",
        ))
    }

    /// Checks that the limit of descriptors allows all connections, before any is opened.
    pub(crate) fn check_descriptors(&self, limit: u64) -> Result<(), String> {
        // Connections with few requests each are rarely all open at once.
        let busy = if self.per_connection.is_some() { 0 } else { self.connections };
        let connections = busy + self.background.connections();
        if connections == 0 {
            return Ok(());
        }
        let servers = if self.against.is_some() { 2 } else { 1 };
        let needed = (connections + self.threads * THREAD_DESCRIPTORS) * servers + DESCRIPTORS;
        if needed <= limit {
            return Ok(());
        }
        Err(format!(
            "{connections} connections need {needed} open files, but ulimit -n allows only \
             {limit}; raise it or use fewer connections (-c)"
        ))
    }

    /// The parts of a run that are printed in addition to wrk's text.
    pub(crate) fn report(&self, called: CalledAs) -> ReportParts {
        let known = |text: &&str| Percentile::parse(text).ok();
        let wrks: Vec<_> = wrk::PERCENTILES.iter().filter_map(known).collect();
        let percentiles = match called {
            CalledAs::Wrk if self.latency => wrks,
            CalledAs::Wrk => Vec::new(),
            CalledAs::Load if !self.percentiles.is_empty() => self.percentiles.clone(),
            CalledAs::Load if self.rate.is_some() => {
                wrks.into_iter().chain(["99.9", "99.99"].iter().filter_map(known)).collect()
            }
            CalledAs::Load if self.latency => {
                return ReportParts { percentiles: wrks, further: true };
            }
            CalledAs::Load => Vec::new(),
        };
        ReportParts { percentiles, further: false }
    }

    /// The files for results.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.json, &self.hlog].into_iter().flatten().map(PathBuf::as_path)
    }

    /// The duration of a run, if it is known before.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.duration.or_else(|| self.requests.is_none().then_some(DURATION))
    }

    pub(crate) fn plan(&self) -> Result<RunPlan, String> {
        let target = &self.targets[0];
        let address = target.reachable()?;
        self.can_be_from(&address)?;
        let sources = self.from.len();
        self.background.check_ports(&address, self.connections, sources, local_ports())?;
        Ok(RunPlan {
            urls: self.targets.iter().map(|target| target.url.clone()).collect(),
            scheme: target.scheme,
            script: self.script(target, &address)?,
            address,
            from: self.from.clone(),
            mix: self.mix()?,
            threads: self.threads,
            connections: self.connections,
            duration: self.duration(),
            requests: self.requests,
            rate: self.rate.map(|rate| self.in_time(rate)),
            timeout: self.timeout,
            per_connection: self.per_connection,
            pipeline: self.pipeline,
            in_turns: false,
            tls: self.tls.transport(target, self.is_http2)?,
            streams: self.is_http2.then(|| self.streams.unwrap_or(1)),
            background: self.background.plan(self.common.request(
                target,
                self.common.method(),
                &target.path,
            )),
        })
    }

    /// The same for turns that the caller starts, each as long as the duration.
    pub(crate) fn plan_on_demand(&self) -> Result<RunPlan, String> {
        Ok(RunPlan { in_turns: true, ..self.plan()? })
    }

    /// Everything that two servers need that take turns: A and B, and how many blocks of four turns
    /// there are.
    pub(crate) fn plans_in_turns(
        &self,
        against: &LoadTarget,
    ) -> Result<([RunPlan; 2], u64), String> {
        let whole = self.duration.unwrap_or(DURATION);
        let turn = self.turn.unwrap_or_else(|| (whole / TURNS).clamp(TURN_MIN, TURN_MAX));
        let blocks = (whole.as_nanos() / (turn * 4).as_nanos()) as u64;
        if blocks < BLOCKS_MIN as u64 {
            let least = (turn * 4 * BLOCKS_MIN as u32).as_secs_f64();
            return Err(format!(
                "--against: {BLOCKS_MIN} blocks of four turns take at least {least}s; use a longer \
                 --duration or a shorter --turn"
            ));
        }
        let baseline = Self { targets: vec![against.clone()], ..self.clone() };
        let plan = |settings: &Self| {
            let plan = settings.plan()?;
            Ok::<_, String>(RunPlan { duration: Some(turn), in_turns: true, ..plan })
        };
        Ok(([plan(&baseline)?, plan(self)?], blocks))
    }

    fn can_be_from(&self, server: &Address) -> Result<(), String> {
        let reaches = |from: &IpAddr| match server {
            Address::Ip(server) | Address::Udp(server) => from.is_ipv4() == server.is_ipv4(),
            Address::Unix(_) => false,
        };
        for from in &self.from {
            if !reaches(from) {
                return Err(format!("--from: {from} cannot connect to {server}"));
            }
            // Checks that it is an address of this machine.
            UdpSocket::bind((*from, 0)).map_err(|error| format!("--from: {from}: {error}"))?;
        }
        Ok(())
    }

    fn script(&self, target: &LoadTarget, address: &Address) -> Result<Option<ScriptPlan>, String> {
        let Some(path) = &self.script else { return Ok(None) };
        let name = path.display().to_string();
        let has_port = !target.port.is_empty();
        let scheme = if target.scheme == TargetScheme::Https { "https" } else { "http" };
        Ok(Some(ScriptPlan {
            source: std::fs::read(path).map_err(of(&name))?,
            name,
            target: script::ScriptTarget {
                scheme: scheme.into(),
                host: target.host.clone(),
                port: has_port.then(|| target.port()),
                path: target.path.clone(),
                method: self.common.method().to_owned(),
                headers: self.common.headers_for(target),
                body: (!self.common.body.is_empty()).then(|| self.common.body.clone()),
                addrs: match address {
                    Address::Ip(ip) | Address::Udp(ip) => vec![*ip],
                    Address::Unix(_) => Vec::new(),
                },
            },
            arguments: std::iter::once(&target.url).chain(&self.arguments).cloned().collect(),
        }))
    }

    /// A ramp without a duration takes the whole run.
    fn in_time(&self, rate: RateSchedule) -> RateSchedule {
        let is_ramp = rate.from != rate.to;
        match rate.over.is_zero() && is_ramp {
            true => RateSchedule { over: self.duration().unwrap_or(DURATION), ..rate },
            false => rate,
        }
    }

    fn mix(&self) -> Result<Mix, String> {
        let common = RequestDefaults {
            close: self.per_connection == Some(1),
            is_http2: self.is_http2,
            ..self.common.clone()
        };
        if let Some(path) = &self.list {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(of(&name))?;
            let requests = listed(&text, &common, &self.targets[0]);
            return requests.map(Mix::in_order).map_err(|error| format!("{name}: {error}"));
        }
        let weights = self.weights.iter().copied().chain(std::iter::repeat(1));
        let request = |target: &LoadTarget| common.request(target, common.method(), &target.path);
        Mix::new(self.targets.iter().map(request).zip(weights).collect())
    }
}

impl Default for LoadSettings {
    fn default() -> Self {
        Self {
            targets: Vec::new(),
            arguments: Vec::new(),
            common: RequestDefaults::default(),
            script: None,
            latency: false,
            percentiles: Vec::new(),
            against: None,
            turn: None,
            expectations: Vec::new(),
            json: None,
            hlog: None,
            repeat: 1,
            search: None,
            quiet: false,
            on_demand: false,
            wait_idle: None,
            connections: CONNECTIONS,
            threads: THREADS,
            duration: None,
            requests: None,
            timeout: TIMEOUT,
            rate: None,
            per_connection: None,
            pipeline: 1,
            weights: Vec::new(),
            list: None,
            from: Vec::new(),
            tls: TlsOptions::default(),
            is_http2: false,
            streams: None,
            background: BackgroundOptions::default(),
        }
    }
}

fn within(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let count = units::count(text)?;
    if (least..=most).contains(&count) {
        Ok(count)
    } else {
        Err(format!("{count} is not between {least} and {most}"))
    }
}

fn positive(text: &str) -> Result<Duration, String> {
    let time = units::time(text)?;
    if time.is_zero() { Err("must be more than 0".into()) } else { Ok(time) }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected \"Name: value\"")?;
    let value = value.trim();
    if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err("the value contains a control character".into());
    }
    Ok((token(name)?, value.to_owned()))
}

/// A token of HTTP (RFC 9110, section 5.6.2).
fn token(text: &str) -> Result<String, String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_token) {
        Ok(text.to_owned())
    } else {
        Err(format!("\"{text}\" is not a valid name"))
    }
}

fn list<T>(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(|part| one(part.trim())).collect()
}

fn percentiles(text: &str) -> Result<Vec<Percentile>, String> {
    let percentiles = list(text, Percentile::parse)?;
    match percentiles.len() {
        count if count > PERCENTILES_MAX => Err(format!("at most {PERCENTILES_MAX} are allowed")),
        _ => Ok(percentiles),
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not an IP address"))
}

/// `5000`, `1000..20000`, `1000..20000/60s`.
pub(crate) fn rate(text: &str) -> Result<RateSchedule, String> {
    let count = |text| within(text, 0, RATE_MAX).map(|count| count as f64);
    let (range, over) = match text.split_once('/') {
        Some((range, over)) => (range, positive(over)?),
        None => (text, Duration::ZERO),
    };
    let rate = match range.split_once("..") {
        Some((from, to)) => RateSchedule { from: count(from)?, to: count(to)?, over },
        None if over.is_zero() => RateSchedule::constant(count(range)?),
        None => return Err("a constant rate takes no duration".into()),
    };
    match rate.from.max(rate.to) {
        0.0 => Err("must be more than 0".into()),
        _ => Ok(rate),
    }
}

/// `p99=10ms`.
fn goal(text: &str) -> Result<Goal, String> {
    let wrong = || format!("\"{text}\" is not of the form p99=10ms");
    let (name, below) = text.split_once('=').ok_or_else(wrong)?;
    let percentile = name.strip_prefix('p').and_then(|digits| Percentile::parse(digits).ok());
    let percentile = percentile.filter(|one| *one != Percentile::MAX).ok_or_else(wrong)?;
    Ok(Goal { percentile, below: positive(below)? })
}

fn of(name: &str) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{name}: {error}")
}

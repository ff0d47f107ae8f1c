//! The command line of `weir load`, understood.

use std::ffi::OsString;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::Address;

use crate::options::{self, Choice, Said};
use crate::requests::{Common, Mix, listed};
use crate::run::plan::{Plan, ScriptPlan};
use crate::run::schedule::Rate;
use crate::script;
use crate::target::{Scheme, Target};
use crate::units;

/// wrk's options, and then ours.
pub(crate) const CHOICES: &[Choice] = &[
    choice('c', "connections", "<N>", "Connections to keep open (10)"),
    choice('d', "duration", "<T>", "Duration of test (10s)"),
    choice('t', "threads", "<N>", "Number of threads to use (2)"),
    choice('s', "script", "<S>", "Load Lua script file"),
    choice('H', "header", "<H>", "Add header to request"),
    choice('\0', "latency", "", "Print latency statistics"),
    choice('\0', "timeout", "<T>", "Socket/request timeout (2s)"),
    choice('v', "version", "", "Print version details"),
    choice('h', "help", "", "Print this"),
    choice(
        '\0',
        "rate",
        "<R>",
        "Open loop: start so many requests a second, whatever the\n\
         server does: 5000, or 1000..20000/60s to go from one to the other.\n\
         Latency counts from the moment a request should have started",
    ),
    choice('n', "requests", "<N>", "Send so many requests, then stop"),
    choice('\0', "close", "", "A new connection for every request"),
    choice('\0', "per-connection", "<N>", "A new connection after so many requests"),
    choice('\0', "pipeline", "<N>", "Send so many requests at once, one behind the other"),
    choice('m', "method", "<M>", "Method (GET; POST with a body)"),
    choice('b', "body", "<TEXT>", "Body of every request; the message for tcp:// and udp://"),
    choice('\0', "body-file", "<FILE>", "The same from a file"),
    choice('\0', "weights", "<N,N...>", "How often each of several URLs is asked for"),
    choice(
        '\0',
        "list",
        "<FILE>",
        "Requests from a file, in order, one a line:\n\"/path\" or \"METHOD /path\"",
    ),
    choice('\0', "from", "<IP,IP...>", "Addresses that connections come from, in turn"),
    choice('\0', "json", "<FILE>", "Write everything measured; -: standard output"),
    choice('\0', "hlog", "<FILE>", "Write latencies second by second as HdrHistogram log"),
    choice('\0', "repeat", "<N>", "Run so often, to know the noise"),
    choice(
        '\0',
        "search",
        "<PX=T>",
        "The highest rate at which a percentile of latency stays\nbelow a time: p99=10ms",
    ),
    choice('q', "quiet", "", "No line per second"),
];

const fn choice(
    short: char,
    long: &'static str,
    value: &'static str,
    help: &'static str,
) -> Choice {
    Choice { short, long, value, help }
}

/// The way to call it.
pub(crate) const USAGE: &str = "\
Usage: weir load <options> <url>...
       weir load compare <a.json> <b.json>
";

/// What comes after the options.
pub(crate) const ABOUT: &str = "
    Numeric arguments may include a SI unit (1k, 1M, 1G)
    Time arguments may include a time unit (100ms, 2s, 2m, 2h)
    URLs: http://host:port/path, http://unix:/socket:/path,
          tcp://host:port and udp://host:port for servers that send back what they get
    Without --rate the loop is closed: each connection waits for a reply before it asks again.
";

/// wrk's defaults.
const CONNECTIONS: u64 = 10;
const DURATION: Duration = Duration::from_secs(10);
const THREADS: u64 = 2;
const TIMEOUT: Duration = Duration::from_secs(2);

const THREADS_MAX: u64 = 1024;
const CONNECTIONS_MAX: u64 = 1_000_000;
const PIPELINE_MAX: u64 = 1024;
const REPEAT_MAX: u64 = 1000;
const RATE_MAX: u64 = 100_000_000;

/// A percentile that is to stay below a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Goal {
    /// 0 to 100.
    pub(crate) percentile: f64,
    /// The time.
    pub(crate) below: Duration,
}

/// See above.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) targets: Vec<Target>,
    /// What a script is told.
    pub(crate) arguments: Vec<String>,
    pub(crate) common: Common,
    pub(crate) script: Option<PathBuf>,
    pub(crate) latency: bool,
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
    rate: Option<Rate>,
    per_connection: Option<u64>,
    pipeline: u64,
    weights: Vec<u64>,
    list: Option<PathBuf>,
    from: Vec<IpAddr>,
}

/// What somebody wants.
#[derive(Debug)]
pub(crate) enum Wish {
    Load(Box<Settings>),
    Help,
    Version,
}

impl Settings {
    /// Reads a command line.
    pub(crate) fn read(words: &[OsString]) -> Result<Wish, String> {
        let said = options::read(CHOICES, words).map_err(|refused| refused.to_string())?;
        let mut settings = Self::default();
        let mut plain = Vec::new();
        for said in said {
            match said {
                Said::Option("help", _) => return Ok(Wish::Help),
                Said::Option("version", _) => return Ok(Wish::Version),
                Said::Option(name, value) => {
                    settings.set(name, &value).map_err(|error| format!("--{name}: {error}"))?;
                }
                Said::Word(word) => plain.push(word),
                Said::Rest(word) => settings.arguments.push(word),
            }
        }
        settings.set_urls(plain)?;
        settings.check()?;
        Ok(Wish::Load(Box::new(settings)))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "connections" => self.connections = within(value, 1, CONNECTIONS_MAX)?,
            "duration" => self.duration = Some(positive(value)?),
            "threads" => self.threads = within(value, 1, THREADS_MAX)?,
            "script" => self.script = Some(value.into()),
            "header" => self.common.headers.push(header(value)?),
            "latency" => self.latency = true,
            "timeout" => self.timeout = positive(value)?,
            "rate" => self.rate = Some(rate(value)?),
            "requests" => self.requests = Some(within(value, 1, u64::MAX)?),
            "close" => self.per_connection = Some(1),
            "per-connection" => self.per_connection = Some(within(value, 1, u64::MAX)?),
            "pipeline" => self.pipeline = within(value, 1, PIPELINE_MAX)?,
            "method" => self.common.method = token(value)?,
            "body" => self.common.body = value.into(),
            "body-file" => self.common.body = std::fs::read(value).map_err(of(value))?,
            "weights" => self.weights = list(value, units::count)?,
            "list" => self.list = Some(value.into()),
            "from" => self.from = list(value, address)?,
            "json" => self.json = Some(value.into()),
            "hlog" => self.hlog = Some(value.into()),
            "repeat" => self.repeat = within(value, 1, REPEAT_MAX)?,
            "search" => self.search = Some(goal(value)?),
            "quiet" => self.quiet = true,
            other => unreachable!("{other} is in the table"),
        }
        Ok(())
    }

    /// With a script there is one URL, and what follows is for the script, as with wrk.
    fn set_urls(&mut self, mut words: Vec<String>) -> Result<(), String> {
        if self.script.is_some() && words.len() > 1 {
            let arguments = words.split_off(1);
            self.arguments.splice(..0, arguments);
        }
        if words.is_empty() {
            return Err("it needs a URL".into());
        }
        self.targets = words.iter().map(|url| Target::parse(url)).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let first = &self.targets[0];
        let is_echo = matches!(first.scheme, Scheme::Tcp | Scheme::Udp);
        let checks = [
            (self.connections < self.threads, "number of connections must be >= threads"),
            (
                !self.targets.iter().all(|target| target.is_with(first)),
                "all URLs must be of one server",
            ),
            (
                !self.weights.is_empty() && self.weights.len() != self.targets.len(),
                "--weights needs a number for each URL",
            ),
            (
                self.list.is_some() && self.targets.len() > 1,
                "--list needs one URL, that of the server",
            ),
            (
                self.script.is_some() && (self.list.is_some() || self.pipeline > 1 || is_echo),
                "a script makes its requests itself: without --list and --pipeline, over HTTP",
            ),
            (
                self.pipeline > 1 && (self.rate.is_some() || self.search.is_some()),
                "--pipeline has no place in an open loop",
            ),
            (
                self.search.is_some()
                    && (self.rate.is_some() || self.script.is_some() || self.repeat > 1),
                "--search finds the rate itself, and takes neither a script nor --repeat",
            ),
            (
                is_echo && (self.list.is_some() || !self.common.is_plain()),
                "tcp:// and udp:// have neither methods nor headers nor lists",
            ),
            (is_echo && self.common.body.is_empty(), "--body says what is sent and comes back"),
            (
                self.per_connection.is_some_and(|most| most % self.pipeline != 0),
                "a connection has whole pipelines: --close or --per-connection says otherwise",
            ),
            (
                first.scheme == Scheme::Udp && (self.pipeline > 1 || self.per_connection.is_some()),
                "datagrams have neither connections nor pipelines",
            ),
        ];
        match checks.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, what)) => Err(what.into()),
            None => Ok(()),
        }
    }

    /// Where what was measured is kept.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.json, &self.hlog].into_iter().flatten().map(PathBuf::as_path)
    }

    /// How long requests are started, as far as it is known before.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.duration.or_else(|| self.requests.is_none().then_some(DURATION))
    }

    /// Everything that a run needs.
    pub(crate) fn plan(&self) -> Result<Plan, String> {
        let target = &self.targets[0];
        let address = target.reachable()?;
        self.can_be_from(&address)?;
        Ok(Plan {
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
        })
    }

    fn can_be_from(&self, server: &Address) -> Result<(), String> {
        let reaches = |from: &IpAddr| match server {
            Address::Ip(server) => from.is_ipv4() == server.is_ipv4(),
            Address::Unix(_) => false,
        };
        for from in &self.from {
            if !reaches(from) {
                return Err(format!("--from: no connection from {from} reaches {server}"));
            }
            // Whether it is one of this machine's.
            UdpSocket::bind((*from, 0)).map_err(|error| format!("--from: {from}: {error}"))?;
        }
        Ok(())
    }

    fn script(&self, target: &Target, address: &Address) -> Result<Option<ScriptPlan>, String> {
        let Some(path) = &self.script else { return Ok(None) };
        let name = path.display().to_string();
        let has_port = !target.port.is_empty();
        Ok(Some(ScriptPlan {
            source: std::fs::read(path).map_err(of(&name))?,
            name,
            target: script::Target {
                scheme: "http".into(),
                host: target.host.clone(),
                port: has_port.then(|| target.port()),
                path: target.path.clone(),
                method: self.common.method().to_owned(),
                headers: self.common.headers.clone(),
                body: (!self.common.body.is_empty()).then(|| self.common.body.clone()),
                addrs: match address {
                    Address::Ip(ip) => vec![*ip],
                    Address::Unix(_) => Vec::new(),
                },
            },
            arguments: std::iter::once(&target.url).chain(&self.arguments).cloned().collect(),
        }))
    }

    /// A ramp that does not say how long it takes takes the whole time.
    fn in_time(&self, rate: Rate) -> Rate {
        let is_ramp = rate.from != rate.to;
        match rate.over.is_zero() && is_ramp {
            true => Rate { over: self.duration().unwrap_or(DURATION), ..rate },
            false => rate,
        }
    }

    fn mix(&self) -> Result<Mix, String> {
        let common = Common { close: self.per_connection == Some(1), ..self.common.clone() };
        if let Some(path) = &self.list {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(of(&name))?;
            let requests = listed(&text, &common, &self.targets[0]);
            return requests.map(Mix::in_order).map_err(|error| format!("{name}: {error}"));
        }
        let weights = self.weights.iter().copied().chain(std::iter::repeat(1));
        let request = |target: &Target| common.request(target, common.method(), &target.path);
        Mix::new(self.targets.iter().map(request).zip(weights).collect())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            targets: Vec::new(),
            arguments: Vec::new(),
            common: Common::default(),
            script: None,
            latency: false,
            json: None,
            hlog: None,
            repeat: 1,
            search: None,
            quiet: false,
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
    if time.is_zero() { Err("it must be more than 0".into()) } else { Ok(time) }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("\"Name: value\" is expected")?;
    let value = value.trim();
    if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err("a control character in the value".into());
    }
    Ok((token(name)?, value.to_owned()))
}

/// A name as HTTP has them (RFC 9110, section 5.6.2).
fn token(text: &str) -> Result<String, String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_token) {
        Ok(text.to_owned())
    } else {
        Err(format!("\"{text}\" is not a name"))
    }
}

fn list<T>(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(|part| one(part.trim())).collect()
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not an IP address"))
}

/// `5000`, `1000..20000`, `1000..20000/60s`.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let count = |text| within(text, 0, RATE_MAX).map(|count| count as f64);
    let (range, over) = match text.split_once('/') {
        Some((range, over)) => (range, positive(over)?),
        None => (text, Duration::ZERO),
    };
    let rate = match range.split_once("..") {
        Some((from, to)) => Rate { from: count(from)?, to: count(to)?, over },
        None if over.is_zero() => Rate::constant(count(range)?),
        None => return Err("a constant rate has no time".into()),
    };
    match rate.from.max(rate.to) {
        0.0 => Err("it must be more than 0".into()),
        _ => Ok(rate),
    }
}

/// `p99=10ms`.
fn goal(text: &str) -> Result<Goal, String> {
    let wrong = || format!("\"{text}\" is not of the form p99=10ms");
    let (name, below) = text.split_once('=').ok_or_else(wrong)?;
    let percentile = name.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
    let percentile = percentile.filter(|p| *p > 0.0 && *p < 100.0).ok_or_else(wrong)?;
    Ok(Goal { percentile, below: positive(below)? })
}

fn of(name: &str) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{name}: {error}")
}

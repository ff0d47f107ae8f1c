//! The arguments of `weir lab tune`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::goal::TuneGoal;
use crate::run::wait_idle;

/// The text that `--help` prints.
pub const USAGE: &str = "Usage: weir lab tune -c FILE URL [OPTIONS]

Finds the settings that the configuration FILE (Weir's or nginx's) gains from while URL is loaded,
and prints them as changes of its lines, each with the effect that was measured. Copies of the
configuration run on loopback addresses; a running server and its files are not touched. URL is one
of the real server, such as https://www.example.org/.

Options:
  -c FILE          the configuration
  --budget TIME    how long it may take: 90s, 10m (default), 1h
  --server NAME    weir (default), nginx, or the path of a program that takes nginx's options
  -p PREFIX        the directory that roots and logs are relative to, if the server has it with -p
  --goal GOAL      what is to improve: rate (default; requests per second), cpu (CPU time per
                   request) or p99 (latency)
  --connections N  the connections of the load (default: 64)
  --header FIELD   a header field of the requests, such as 'Cookie: a=b'; may be repeated
  --wait-idle[=T]  wait while the machine is busy, T (default: 10m) each time, beyond the budget
  --json           print JSON
  -h, --help       print this help

Backends must be running: the copies use those of the configuration, except where it passes requests
to itself.
";

/// The shortest budget: with less, nothing could be confirmed.
const BUDGET_MIN: Duration = Duration::from_secs(30);

/// The arguments after `tune`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneArguments {
    /// Whether to print the usage.
    pub help: bool,
    /// Whether to print JSON.
    pub json: bool,
    pub file: PathBuf,
    /// A URL of the real server.
    pub url: String,
    /// The time that the search may take.
    pub budget: Duration,
    /// The server: `weir`, `nginx` or the path of a program.
    pub server: String,
    /// The value of `-p`.
    pub prefix: Option<PathBuf>,
    /// The figure to improve.
    pub goal: TuneGoal,
    /// The number of connections of the load.
    pub connections: u32,
    /// Header fields of the requests, `NAME: VALUE`.
    pub headers: Vec<String>,
    /// How long to wait while the machine is busy.
    pub wait_idle: Option<Duration>,
}

impl Default for TuneArguments {
    fn default() -> Self {
        Self {
            help: false,
            json: false,
            file: PathBuf::new(),
            url: String::new(),
            budget: Duration::from_secs(600),
            server: "weir".to_owned(),
            prefix: None,
            goal: TuneGoal::Rate,
            connections: 64,
            headers: Vec::new(),
            wait_idle: None,
        }
    }
}

impl TuneArguments {
    /// Reads the words after `tune`.
    pub fn parse(words: &[OsString]) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let name = word.to_string_lossy();
            match name.as_ref() {
                "--help" | "-h" => arguments.help = true,
                "--json" => arguments.json = true,
                option if option.starts_with("--wait-idle") => {
                    arguments.wait_idle = Some(wait_idle(option)?);
                }
                option if option.starts_with('-') => {
                    let mut value = || words.next().ok_or(format!("{option} requires a value"));
                    arguments.option(option, &mut value)?;
                }
                _ if arguments.url.is_empty() => arguments.url = name.into_owned(),
                _ => return Err("only one URL can be tuned for".to_owned()),
            }
        }
        if arguments.help { Ok(arguments) } else { arguments.complete() }
    }

    /// Reads an option that has a value.
    fn option<'w>(
        &mut self,
        option: &str,
        value: &mut dyn FnMut() -> Result<&'w OsString, String>,
    ) -> Result<(), String> {
        let mut text = || value().map(|word| word.to_string_lossy().into_owned());
        match option {
            "--budget" => self.budget = budget(&text()?)?,
            "--server" => self.server = text()?,
            "--goal" => self.goal = TuneGoal::parse(&text()?)?,
            "--connections" => self.connections = connections(&text()?)?,
            "--header" => self.headers.push(header(text()?)?),
            "-c" => self.file = value()?.into(),
            "-p" => self.prefix = Some(value()?.into()),
            _ => return Err(format!("unknown option {option}")),
        }
        Ok(())
    }

    fn complete(self) -> Result<Self, String> {
        if self.file.as_os_str().is_empty() {
            return Err("-c FILE is required".to_owned());
        }
        if self.url.is_empty() {
            return Err("a URL is required".to_owned());
        }
        if !["http://", "https://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            return Err(format!("\"{}\" does not begin with http:// or https://", self.url));
        }
        Ok(self)
    }
}

fn budget(text: &str) -> Result<Duration, String> {
    let seconds = conf::units::seconds(text.as_bytes());
    let seconds = seconds.ok_or_else(|| format!("--budget {text} is no time such as 10m"))?;
    let budget = Duration::from_secs(seconds);
    if budget < BUDGET_MIN {
        return Err(format!("--budget {text} is below {}s", BUDGET_MIN.as_secs()));
    }
    Ok(budget)
}

fn connections(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("--connections {text} is no number above 0"))
}

fn header(text: String) -> Result<String, String> {
    let is_field = text.split_once(':').is_some_and(|(name, _)| !name.trim().is_empty());
    if is_field { Ok(text) } else { Err(format!("--header {text} is no NAME: VALUE")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<TuneArguments, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        TuneArguments::parse(&words)
    }

    #[test]
    fn all_options_are_parsed() {
        let arguments = parse(
            "-c a.conf http://a/ --budget 1h --server nginx -p /srv --goal p99 --connections 8 \
             --header A:b --header B:c --json --wait-idle=5m",
        );
        let expected = TuneArguments {
            help: false,
            json: true,
            file: "a.conf".into(),
            url: "http://a/".to_owned(),
            budget: Duration::from_secs(3600),
            server: "nginx".to_owned(),
            prefix: Some("/srv".into()),
            goal: TuneGoal::P99,
            connections: 8,
            headers: vec!["A:b".to_owned(), "B:c".to_owned()],
            wait_idle: Some(Duration::from_secs(300)),
        };
        assert_eq!(arguments, Ok(expected));
    }

    #[test]
    fn options_have_defaults() {
        let arguments = parse("https://a -c a.conf").unwrap();
        let expected = TuneArguments {
            file: "a.conf".into(),
            url: "https://a".to_owned(),
            ..TuneArguments::default()
        };
        assert_eq!(arguments, expected);
        assert_eq!(arguments.budget, Duration::from_secs(600));
        assert!(parse("-h").unwrap().help && parse("--help").unwrap().help);
    }

    #[test]
    fn invalid_arguments_are_errors() {
        for (line, error) in [
            ("", "-c FILE is required"),
            ("http://a/", "-c FILE is required"),
            ("-c a.conf", "a URL is required"),
            ("-c a.conf a", "\"a\" does not begin with http:// or https://"),
            ("-c a.conf http://a http://b", "only one URL can be tuned for"),
            ("http://a -c", "-c requires a value"),
            ("--fast", "unknown option --fast"),
            ("--budget", "--budget requires a value"),
            ("--budget soon", "--budget soon is no time such as 10m"),
            ("--budget 10s", "--budget 10s is below 30s"),
            ("--goal fame", "--goal fame is not rate, cpu or p99"),
            ("--connections 0", "--connections 0 is no number above 0"),
            ("--header a", "--header a is no NAME: VALUE"),
        ] {
            assert_eq!(parse(line), Err(error.to_owned()), "{line}");
        }
    }

    #[test]
    fn the_usage_fits_a_terminal() {
        assert!(USAGE.lines().all(|line| line.len() <= 100));
    }
}

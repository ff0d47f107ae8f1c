//! The command line of the backend.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use net::Address;

use super::faults::{FaultInjection, RequestEnd};
use super::pause::Pause;
use super::reply::ReplyContents;
use super::stats::STATUS_END;
use super::table::TABLE;
use super::work::{RequestCost, Slow, Spin};
use crate::options::{self, OptionPart};
use crate::units;

/// The default address.
const LISTEN: &str = "127.0.0.1:8081";
/// The default body.
const BODY: &str = "Hello, world!\n";
const THREADS_MAX: u64 = 1024;

/// The parsed command line.
#[derive(Default)]
pub(super) struct BackendSettings {
    pub(super) listen: Vec<Address>,
    pub(super) tcp_echo: Vec<Address>,
    pub(super) udp_echo: Vec<Address>,
    pub(super) threads: usize,
    /// The reply; with `--echo`, its body is that of the request.
    pub(super) content: Option<ReplyContents>,
    pub(super) echo: bool,
    /// The body describes the request.
    pub(super) whoami: bool,
    /// Whether clients may switch protocols; their bytes are then echoed.
    pub(super) upgrade: bool,
    /// Bytes of a body per second.
    pub(super) trickle: Option<u64>,
    pub(super) status: u16,
    pub(super) error_status: u16,
    pub(super) headers: Vec<String>,
    pub(super) chunked: bool,
    pub(super) work: RequestCost,
    /// The most requests to serve at once, and the most that may wait.
    pub(super) pool: Option<u64>,
    pub(super) pool_queue: Option<u64>,
    pub(super) faults: FaultInjection,
    pub(super) seed: u64,
    pub(super) pause: Option<Pause>,
    pub(super) log: Option<PathBuf>,
}

impl BackendSettings {
    /// Parses the command line. `None` if it asks for help or the version.
    pub(super) fn read(words: &[OsString]) -> Result<Option<Self>, String> {
        let mut settings = Self { threads: 1, status: 200, error_status: 500, ..Self::default() };
        for said in options::read(TABLE, words).map_err(|refused| refused.to_string())? {
            match said {
                OptionPart::Option("help" | "version", _) => return Ok(None),
                OptionPart::Option(name, value) => {
                    settings.take(name, &value).map_err(|why| format!("--{name}: {why}"))?;
                }
                OptionPart::Word(word) | OptionPart::Rest(word) => {
                    return Err(format!("\"{word}\" is not an option; see --help"));
                }
            }
        }
        settings.complete().map(Some)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        let faults = &mut self.faults;
        match name {
            "listen" => self.listen.push(address(value)?),
            "tcp-echo" => self.tcp_echo.push(address(value)?),
            "udp-echo" => self.udp_echo.push(address(value)?),
            "threads" => self.threads = threads(value)?,
            "body" => self.set_content(ReplyContents::of(value.as_bytes()))?,
            "body-file" => {
                let bytes = std::fs::read(value).map_err(|error| format!("{value}: {error}"))?;
                self.set_content(ReplyContents::of(bytes))?;
            }
            "size" => self.set_content(ReplyContents::pattern(units::size(value)?))?,
            "echo" => self.echo = true,
            "whoami" => self.whoami = true,
            "upgrade" => self.upgrade = true,
            "trickle" => self.trickle = Some(trickle(value)?),
            "status" => self.status = status(value)?,
            "error-status" => self.error_status = status(value)?,
            "header" => self.headers.push(header(value)?),
            "chunked" => self.chunked = true,
            "sleep" => self.work.sleep = Some(range(value)?),
            "slow" => self.work.slow = Some(slow(value)?),
            "spin" => self.work.spin = spin(value)?,
            "pool" => self.pool = Some(units::count(value)?),
            "pool-queue" => self.pool_queue = Some(units::count(value)?),
            "error" => faults.shares.push((units::share(value)?, RequestEnd::Error)),
            "disconnect" => faults.shares.push((units::share(value)?, RequestEnd::Disconnect)),
            "reset" => faults.shares.push((units::share(value)?, RequestEnd::Reset)),
            "cut" => faults.shares.push((units::share(value)?, RequestEnd::Cut)),
            "delay" => faults.delays.push(delay(value)?),
            "seed" => self.seed = units::count(value)?,
            "pause" => self.pause = Some(pause(value)?),
            "log" => self.log = Some(value.into()),
            _ => unreachable!("the table has no other"),
        }
        Ok(())
    }

    fn set_content(&mut self, content: ReplyContents) -> Result<(), String> {
        match self.content.replace(content) {
            Some(_) => Err("only one body can be given".into()),
            None => Ok(()),
        }
    }

    /// Checks combinations of options and fills in defaults.
    fn complete(mut self) -> Result<Self, String> {
        if [self.echo, self.whoami, self.content.is_some()].iter().filter(|one| **one).count() > 1 {
            return Err(
                "--body, --body-file, --size, --echo and --whoami cannot be combined".into()
            );
        }
        if self.pool == Some(0) {
            return Err("--pool: must be at least 1".into());
        }
        if self.pool_queue.is_some() && self.pool.is_none() {
            return Err("--pool-queue requires --pool".into());
        }
        let FaultInjection { shares, delays } = &self.faults;
        let sums = [shares.iter().map(|one| one.0).sum(), delays.iter().map(|one| one.0).sum()];
        if sums.iter().any(|sum: &f64| *sum > 1.0 + 1e-9) {
            return Err("the shares add up to more than 100 %".into());
        }
        if self.listen.is_empty() && self.tcp_echo.is_empty() && self.udp_echo.is_empty() {
            self.listen.push(address(LISTEN)?);
        }
        let content = self.content.take().unwrap_or_else(|| ReplyContents::of(BODY.as_bytes()));
        self.content = Some(self.apply_to(ReplyContents { status: self.status, ..content }));
        Ok(self)
    }

    /// Applies the headers and the coding of all replies.
    pub(super) fn apply_to(&self, content: ReplyContents) -> ReplyContents {
        const TYPE: &str = "Content-Type";
        let mut headers = self.headers.clone();
        if !headers.iter().any(|line| is_named(line, TYPE)) {
            headers.push(format!("{TYPE}: text/plain"));
        }
        ReplyContents { headers, chunked: self.chunked, ..content }
    }

    /// Whether random numbers are needed.
    pub(super) fn has_chances(&self) -> bool {
        let FaultInjection { shares, delays } = &self.faults;
        let sleeps_vary = self.work.sleep.is_some_and(|(least, most)| least < most);
        sleeps_vary || !shares.is_empty() || !delays.is_empty()
    }
}

fn address(text: &str) -> Result<Address, String> {
    if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
        return Ok(Address::Unix(path.into()));
    }
    let ip = match text.parse::<u16>() {
        Ok(port) => Some(([127, 0, 0, 1], port).into()),
        Err(_) => text.parse().ok(),
    };
    ip.map(Address::Ip).ok_or_else(|| {
        format!("\"{text}\" is not an address, such as 8081, 0.0.0.0:80, unix:/run/x")
    })
}

fn threads(text: &str) -> Result<usize, String> {
    match units::count(text)? {
        threads @ 1..=THREADS_MAX => Ok(threads as usize),
        _ => Err(format!("must be between 1 and {THREADS_MAX}")),
    }
}

fn status(text: &str) -> Result<u16, String> {
    let status = text.parse().ok().filter(|status| (200..STATUS_END as u16).contains(status));
    status.ok_or_else(|| format!("\"{text}\" is not a status from 200 to {}", STATUS_END - 1))
}

fn header(line: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
    };
    if line.contains(['\r', '\n', '\0'])
        || !line.split_once(':').is_some_and(|(name, _)| is_name(name))
    {
        return Err(format!("\"{line}\" is not \"Name: value\""));
    }
    match ["Content-Length", "Transfer-Encoding", "Connection"]
        .iter()
        .find(|name| is_named(line, name))
    {
        Some(name) => Err(format!("{name} is set by the backend")),
        None => Ok(line.to_owned()),
    }
}

fn is_named(line: &str, name: &str) -> bool {
    line.split(':').next().is_some_and(|own| own.eq_ignore_ascii_case(name))
}

fn trickle(text: &str) -> Result<u64, String> {
    match units::size(text)? {
        0 => Err("must be more than 0".into()),
        bytes => Ok(bytes),
    }
}

fn range(text: &str) -> Result<(Duration, Duration), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let range = (units::time(least)?, units::time(most)?);
    if range.0 <= range.1 { Ok(range) } else { Err(format!("{text}: the range is reversed")) }
}

/// A number of additions, or a time.
fn spin(text: &str) -> Result<Spin, String> {
    match units::count(text) {
        Ok(count) => Ok(Spin::Additions(count)),
        Err(_) => units::time(text).map(Spin::Time),
    }
}

fn slow(text: &str) -> Result<Slow, String> {
    let (alone, best) = text.split_once(',').ok_or("expected ALONE,BEST, such as 25ms,150")?;
    match units::count(best)? {
        0 => Err("BEST must be at least 1".into()),
        best => Ok(Slow { alone: units::time(alone)?, best }),
    }
}

fn delay(text: &str) -> Result<(f64, Duration), String> {
    let (share, time) = text.split_once(':').ok_or("expected SHARE:TIME, such as 1%:2s")?;
    Ok((units::share(share)?, units::time(time)?))
}

fn pause(text: &str) -> Result<Pause, String> {
    let (length, every) = text.split_once('/').ok_or("expected TIME/PERIOD, such as 1s/10s")?;
    let (length, every) = (units::time(length)?, units::time(every)?);
    // The schedule counts whole microseconds.
    if length.as_micros() < every.as_micros() {
        Ok(Pause::new(length, every))
    } else {
        Err(format!("{text}: the pause must be shorter than the period"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<BackendSettings, String> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        BackendSettings::read(&words).map(|settings| settings.expect("no --help"))
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn defaults_are_set() {
        let settings = read("").unwrap();
        assert_eq!(settings.listen, [address("8081").unwrap()]);
        assert_eq!(settings.content.unwrap().headers, ["Content-Type: text/plain"]);
        assert_eq!(read("--udp-echo 7").unwrap().listen, []);
        for word in ["--help", "-v", "--version"] {
            assert!(BackendSettings::read(&[word.into()]).unwrap().is_none(), "{word}");
        }
    }

    #[test]
    fn options_are_parsed() {
        let settings = read("-l 8000 --sleep 0..1s --spin 10000000").unwrap();
        assert_eq!(settings.work.sleep, Some((ms(0), ms(1000))));
        assert_eq!((settings.work.spin, settings.threads), (Spin::Additions(10_000_000), 1));
        let timed = read("-l 8000 --spin 4.2ms").unwrap();
        assert_eq!(timed.work.spin, Spin::Time(Duration::from_micros(4200)));
        assert!(read("-l 8000 --spin long").err().unwrap().contains("\"long\" is not a time"));
        assert!(settings.has_chances());
        let settings = read("-l 9090 --pool 1024 --slow 25ms,150").unwrap();
        assert_eq!(settings.work.slow, Some(Slow { alone: ms(25), best: 150 }));
        assert!(!settings.has_chances());
    }

    #[test]
    fn invalid_options_are_refused() {
        for line in [
            "word",
            "--listen here",
            "--listen unix:",
            "--threads 0",
            "--body a --size 1",
            "--echo --size 1",
            "--whoami --echo",
            "--trickle 0",
            "--status 99",
            "--status 600",
            "--header a",
            "--header :",
            "--header Content-Length:5",
            "--sleep 2s..1s",
            "--slow 5ms",
            "--slow 5ms,0",
            "--pool 0",
            "--pool-queue 5",
            "--error 60% --cut 60%",
            "--delay 1%",
            "--pause 1s/1s",
            "--pause 0us/0.5us",
            "--body-file /nowhere/at/all",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
        assert!(read("--error 60% --cut 40%").is_ok());
    }
}

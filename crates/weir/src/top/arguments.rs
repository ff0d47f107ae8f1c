//! The command line of `weir top`.

use std::ffi::OsString;
use std::time::Duration;

use crate::embedded;
use crate::messages::{Reported, complain, refuse};

pub const HELP: &str = "Usage: weir top [OPTIONS] [URL]

Shows what a running server does, once a second: requests, sites, upstream
servers and slow requests. URL is that of a location with \"dashboard\" or \"api\";
that of Angie's status and of NGINX Plus's API also work, as far as they go:

  http://127.0.0.1:8080/dashboard/   the default, in the built-in configuration
  https://user:password@host/status/
  unix:/run/weir.sock:/api/9/        over a Unix socket

Options:
  --once         print what two snapshots say, without colours, and exit
  -d SECONDS     the time between two snapshots (default: 1)
  --cacert FILE  accept only certificates of these authorities; by default the
                 certificate of an https:// URL is not verified
  -h, --help     print this help

Keys: 1 to 5 or Tab choose a page, s the order, r reverses it, arrows scroll,
Space pauses, q quits. NO_COLOR=1 in the environment avoids colours.
";

const OPTIONS: [&str; 4] = ["--once", "-d", "--cacert", "--help"];

pub(super) struct TopArguments {
    pub(super) url: String,
    pub(super) once: bool,
    pub(super) delay: Duration,
    /// The file with authorities that the server's certificate must come from.
    pub(super) authorities: Option<String>,
}

const DELAY_MAX: f64 = 3600.0;

impl TopArguments {
    pub(super) fn parse(words: &[OsString]) -> Result<Self, Reported> {
        let mut url = None;
        let (mut once, mut authorities) = (false, None);
        let mut delay = Duration::from_secs(1);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            let mut value = |what: &str| match words.next() {
                Some(value) => Ok(value.to_string_lossy().into_owned()),
                None => Err(complain(format_args!("top: {text} needs {what}"))),
            };
            match &*text {
                "--once" => once = true,
                "-d" => delay = seconds(&value("a number of seconds")?)?,
                "--cacert" => authorities = Some(value("a file")?),
                other if other.starts_with('-') || url.is_some() => {
                    return Err(refuse("top", word, &OPTIONS));
                }
                other => url = Some(other.to_owned()),
            }
        }
        let default = || format!("http://127.0.0.1:{}/dashboard/", embedded::PORT);
        Ok(Self { url: url.unwrap_or_else(default), once, delay, authorities })
    }
}

fn seconds(text: &str) -> Result<Duration, Reported> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= DELAY_MAX => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(complain(format_args!("top: -d: \"{text}\" is not a number of seconds"))),
    }
}

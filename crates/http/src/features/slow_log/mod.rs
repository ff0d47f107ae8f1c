//! `slow_log`: the requests that took too long, and what their time went to.
//!
//! The phases themselves are measured by the drivers (`exchange::RequestTiming`), for servers that
//! this feature marks. Every request above the threshold is also kept in memory ([`recent`]).

mod line;
mod rate;
mod recent;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value};
use session::log::{self, LogFileCache};
use session::status::StatusBook;

use crate::exchange::{Exchange, PhaseTimes, TimedPhase};
use crate::site::LocationBuilder;
use crate::variables::{BuiltIn, Variable, VariableTable};
use line::SlowLog;
use rate::LeftOut;
use recent::SlowRequest;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Logs requests that took at least `threshold=`, and what their time went to
    /// (docs/slow-requests.md). Several lines write to several places.
    /// - `threshold=TIME`: shorter requests are not logged; the time in a tunnel (`Upgrade`) does
    ///   not count
    /// - `rate=NUMBERr/s`: the most lines a second, 10 by default, or with `r/m` a minute; the
    ///   error log tells how many were left out
    /// - `if=STRING`: the request is logged unless this is empty or `0`
    ///
    /// Syntax: PATH | syslog:server=ADDRESS[,...] [FORMAT] threshold=TIME
    /// [rate=NUMBERr/s|NUMBERr/m] [if=STRING]
    /// Syntax: off
    /// Differs: not in nginx's sources; Weir's own. See docs/slow-requests.md.
    ///
    /// ```nginx
    /// slow_log /var/log/weir/slow.log threshold=500ms rate=20r/s;
    /// ```
    slow_log: SlowLogs = "off",
}

/// The lines of a block.
#[derive(Clone)]
pub struct SlowLogs {
    is_off: bool,
    logs: Vec<Arc<SlowLog>>,
}

impl Value for SlowLogs {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut logs = Self { is_off: false, logs: Vec::new() };
        logs.repeat(from, load)?;
        Ok(logs)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        if &*from.arg(0).text != b"off" {
            self.logs.push(Arc::new(SlowLog::parse(from, load)?));
            load.own.of::<StatusBook>().show_more(recent::show);
        } else if let Some(word) = from.args.get(1) {
            return Err(from.error_at(word, format!("invalid parameter \"{word}\"")));
        } else {
            self.is_off = true;
        }
        Ok(())
    }
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_core_module",
    &[
        BuiltIn::fresh(
            TIMING,
            "The phases of the request so far, as a JSON object of milliseconds \
             (docs/slow-requests.md).",
            |x, out| {
                x.write_timing(out);
                true
            },
        )
        .not_in_nginx(),
        BuiltIn::fresh(
            SERVER_TIMING,
            "The phases of the request so far, as the value of a field `Server-Timing` \
             (docs/slow-requests.md).",
            |x, out| {
                let times = x.phase_times();
                times.inspect(|times| times.write_server_timing(x.age_ms(), out)).is_some()
            },
        )
        .not_in_nginx(),
    ],
);

const TIMING: &str = "request_timing";
const SERVER_TIMING: &str = "server_timing";

/// Whether the configuration has variables that show the phases of any request.
pub(crate) fn shows_timing(variables: &[Variable], load: &mut Load<'_>) -> bool {
    let names = [TIMING, SERVER_TIMING].map(str::as_bytes);
    variables.iter().any(|variable| names.contains(&&*variable.name))
        || log::formats_have::<Exchange>(TIMING.as_bytes(), load)
}

/// Adds the logger, and has the phases of requests measured.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let SlowLogs { is_off, logs } = &conf.slow_log;
    if *is_off {
        return Ok(());
    }
    location.core.timed = true;
    let logs: Box<[_]> = logs.clone().into();
    location.logger(move |x| note(&logs, x));
    Ok(())
}

/// Logs and keeps the request, if it is over and was slow.
fn note(logs: &[Arc<SlowLog>], x: &mut Exchange) {
    if x.is_subrequest() {
        return;
    }
    let Some(times) = x.phase_times() else { return };
    let took_ms = x.age_ms().saturating_sub(times.of(TimedPhase::Tunnel).into());
    let mut is_slow = false;
    for log in logs.iter().filter(|log| took_ms >= log.threshold_ms) {
        is_slow = true;
        write(log, x);
    }
    if is_slow {
        keep(x, times);
    }
}

#[cold]
fn keep(x: &Exchange, times: PhaseTimes) {
    recent::keep(SlowRequest::of(x, times));
}

/// Writes a line, unless there are too many, which the error log tells.
#[cold]
fn write(slow: &Arc<SlowLog>, x: &mut Exchange) {
    match slow.rate.admit(net::clock::now_ms()) {
        Ok(left_out) => {
            slow.tell_left_out(left_out, &x.location().core.error_log);
            log::write(&slow.log, &LogFileCache::OFF, x);
        }
        Err(LeftOut { is_first: false }) => {}
        Err(LeftOut { is_first: true }) => {
            let (slow, error_log) = (slow.clone(), x.location().core.error_log.clone());
            let delay = slow.rate.period();
            net::spawn_if_running(async move {
                net::sleep(delay).await;
                slow.tell_left_out(slow.rate.take_left_out(), &error_log);
            });
        }
    }
}

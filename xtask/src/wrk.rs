//! What wrk says that it saw.

use std::path::Path;
use std::process::Command;

use crate::project;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WrkSummary {
    /// Requests answered in a second, whatever the answer.
    pub(crate) rate: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    /// Answers above 399, and connections that failed.
    pub(crate) errors: f64,
}

/// Asks for a URL on so many connections.
pub(crate) fn run(url: &str, clients: usize, seconds: u64) -> Result<WrkSummary, String> {
    run_script(url, clients, seconds, None)
}

/// The same with a script in Lua, which may say what is sent.
pub(crate) fn run_script(
    url: &str,
    clients: usize,
    seconds: u64,
    script: Option<&Path>,
) -> Result<WrkSummary, String> {
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", "--latency", &format!("-c{clients}"), &format!("-d{seconds}s"), url]);
    if let Some(script) = script {
        wrk.arg("-s").arg(script);
    }
    let output = project::output(&mut wrk)?;
    let text = String::from_utf8_lossy(&output);
    parse(&text).ok_or_else(|| format!("wrk says nothing known\n{text}"))
}

fn parse(text: &str) -> Option<WrkSummary> {
    let after =
        |label: &str| text.lines().find_map(|line| line.trim().strip_prefix(label)).map(str::trim);
    let socket = after("Socket errors:").unwrap_or_default().split(',');
    let socket =
        socket.filter_map(|kind| kind.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>();
    let status = after("Non-2xx or 3xx responses:").unwrap_or("0").parse::<f64>().ok()?;
    Some(WrkSummary {
        rate: after("Requests/sec:")?.parse().ok()?,
        p50_ms: milliseconds(after("50%")?)?,
        p99_ms: milliseconds(after("99%")?)?,
        // Mean, deviation, maximum.
        max_ms: milliseconds(after("Latency ")?.split_whitespace().nth(2)?)?,
        errors: socket + status,
    })
}

/// `1.50ms`, `1.50us`, `1.50s`, `1.50m`
fn milliseconds(text: &str) -> Option<f64> {
    let units = [("ms", 1.0), ("us", 1e-3), ("s", 1e3), ("m", 6e4)];
    let (number, unit) =
        units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, ms)))?;
    Some(number.parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Running 5s test @ http://127.0.0.1:1/
  1 threads and 200 connections
    Latency    70.10ms    2.50ms   1.26s    93.38%
    Req/Sec     2.86k   120.00     3.10k    90.87%
  Latency Distribution
     50%   69.70ms
     75%   71.39ms
     90%   73.00ms
     99%    1.25s \n  14290 requests in 5.01s, 2.13MB read
Requests/sec:   2852.10
Transfer/sec:    434.30KB
";

    #[test]
    fn a_summary_is_read() {
        let expected = WrkSummary {
            rate: 2852.10,
            p50_ms: 69.70,
            p99_ms: 1250.0,
            max_ms: 1260.0,
            errors: 0.0,
        };
        assert_eq!(parse(SAID), Some(expected));
        assert_eq!(milliseconds("500.00us"), Some(0.5));
        assert_eq!(parse("unable to connect\n"), None);
    }

    #[test]
    fn errors_of_every_kind_are_added() {
        let more = "  Socket errors: connect 1, read 2, write 0, timeout 4\n\
                   \x20 Non-2xx or 3xx responses: 100\n";
        assert_eq!(parse(&format!("{SAID}{more}")).map(|summary| summary.errors), Some(107.0));
    }
}

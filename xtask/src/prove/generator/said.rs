//! wrk's text: how many requests, what went wrong, and its form without its numbers.

use std::path::Path;
use std::process::Command;

use crate::project;

/// How long a run may take, in seconds.
const RUN_MAX_S: &str = "120";

pub(super) struct GeneratorOutput {
    pub(super) requests: u64,
    /// The lines that tell of errors.
    pub(super) complaints: Vec<String>,
    /// Every line as words, numbers being `#`.
    pub(super) form: Vec<String>,
}

impl GeneratorOutput {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let line = text.lines().find(|line| line.contains(" requests in "));
        let requests = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
        let is_complaint =
            |line: &&str| line.starts_with("  Socket errors:") || line.starts_with("  Non-2xx");
        Ok(Self {
            requests: requests.ok_or_else(|| format!("it does not say how many:\n{text}"))?,
            complaints: text.lines().filter(is_complaint).map(|line| line.trim().into()).collect(),
            form: text.lines().map(form).collect(),
        })
    }
}

/// What a run says; anything but success is an error.
pub(super) fn run_bounded(program: &Path, words: &str) -> Result<String, String> {
    let mut command = Command::new("timeout");
    command.arg(RUN_MAX_S).arg(program).args(words.split_whitespace());
    project::output(&mut command).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// A line's words, each with a digit in it (or without a number where one should be) as `#`.
pub(super) fn form(line: &str) -> String {
    let is_number =
        |word: &str| word.contains("nan%") || word.contains(|c: char| c.is_ascii_digit());
    let words = line.split(' ').filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(|word| if is_number(word) { "#" } else { word }).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Running 1s test @ http://127.0.0.1:80/
  2 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   155.93us  113.41us   4.06ms   95.31%
    Req/Sec     0.00      0.00     0.00      -nan%
  14133 requests in 1.00s, 2.08MB read
  Non-2xx or 3xx responses: 14133
Requests/sec:  14110.71
";

    #[test]
    fn a_text_is_read() {
        let said = GeneratorOutput::read(TEXT).expect("wrk's text");
        assert_eq!((said.requests, said.complaints.len()), (14133, 1));
        assert_eq!(said.form[0], "Running # test @ #");
        assert_eq!(said.form[4], "Req/Sec # # # #");
        assert_eq!(said.form[5], "# requests in # # read");
        assert!(GeneratorOutput::read("unable to connect\n").is_err());
    }
}

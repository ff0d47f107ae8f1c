//! `env`: the environment of a worker process or of a new binary.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::settings::Env;

/// Kept without an `env` line: local time depends on it.
const KEPT: &[u8] = b"TZ";

/// The variables that `env` lines set, and those that they keep and this process has.
pub(super) fn of_worker_process(lines: &[Env]) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let kept = Env { name: KEPT.into(), value: None };
    let is_said = lines.iter().any(|line| *line.name == *KEPT);
    for line in lines.iter().chain((!is_said).then_some(&kept)) {
        let name = OsStr::from_bytes(&line.name);
        let value = match &line.value {
            Some(value) => Some(OsStr::from_bytes(value).to_owned()),
            None => std::env::var_os(name),
        };
        // std would panic on a name with a NUL.
        let can_be = |text: &OsStr| !text.as_bytes().contains(&0);
        if let Some(value) = value.filter(|value| can_be(value) && can_be(name) && !name.is_empty())
        {
            variables.push((name.to_owned(), value));
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_set_and_keep() {
        let line = |name: &str, value: Option<&str>| Env {
            name: name.as_bytes().into(),
            value: value.map(|value| value.as_bytes().into()),
        };
        let lines = [line("A", Some("1")), line("PATH", None), line("NO SUCH", None)];
        let variables = of_worker_process(&lines);
        assert!(variables.contains(&("A".into(), "1".into())));
        assert!(variables.iter().any(|(name, _)| name == "PATH"));
        assert!(!variables.iter().any(|(name, _)| name == "NO SUCH" || name == "HOME"));
    }
}

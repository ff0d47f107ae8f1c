//! The test backends of a study: one process with an address for each.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use processes::server::Cores;

use crate::study::StudyBackends;

/// `weir backend` while it runs.
pub(super) struct StudyBackend {
    /// None if the study has no backends.
    child: Option<Child>,
    ports: Vec<u16>,
}

impl StudyBackend {
    /// Starts the backends on the generator's processor, and waits until they listen.
    pub(super) fn start(
        weir: &Path,
        backends: &StudyBackends,
        cores: Option<&Cores>,
    ) -> Result<Self, String> {
        if backends.count == 0 {
            return Ok(Self { child: None, ports: Vec::new() });
        }
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]);
        if let Some(cores) = cores {
            command.args(["taskset", "-c", &cores.load.to_string()]);
        }
        command.arg(weir).arg("backend").args(&backends.options);
        for _ in 0..backends.count {
            command.args(["-l", "127.0.0.1:0"]);
        }
        let failed = |error: std::io::Error| format!("weir backend: {error}");
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut running = Self { child: Some(spawned.map_err(failed)?), ports: Vec::new() };
        let output = running.child.as_mut().and_then(|child| child.stdout.take());
        let lines = output.map(|output| BufReader::new(output).lines()).into_iter().flatten();
        let ports = lines.map_while(Result::ok).filter_map(|line| port(&line));
        running.ports = ports.take(backends.count).collect();
        match running.ports.len() == backends.count {
            true => Ok(running),
            false => Err(format!("weir backend {} did not start", backends.options.join(" "))),
        }
    }

    pub(super) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// The process and the port of the first.
    pub(super) fn first(&self) -> Result<(u32, u16), String> {
        let child = self.child.as_ref().map(Child::id);
        child.zip(self.ports.first().copied()).ok_or_else(|| "there is no backend".to_owned())
    }
}

/// `listening on http://127.0.0.1:8081`
fn port(line: &str) -> Option<u16> {
    line.strip_prefix("listening on http://")?.rsplit_once(':')?.1.parse().ok()
}

impl Drop for StudyBackend {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_the_backends_lines() {
        assert_eq!(port("listening on http://127.0.0.1:8081"), Some(8081));
        assert_eq!(port("weir backend: stopped"), None);
    }

    #[test]
    fn a_backend_that_does_not_start() {
        let backends = StudyBackends { count: 1, options: vec!["--x".to_owned()] };
        let told = StudyBackend::start(Path::new("false"), &backends, None).err();
        assert_eq!(told.as_deref(), Some("weir backend --x did not start"));
        let none = StudyBackend::start(Path::new("false"), &StudyBackends::default(), None);
        assert!(none.is_ok_and(|none| none.first().is_err()));
    }
}

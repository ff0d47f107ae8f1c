//! The test backends of a row.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running `weir backend`.
pub(super) struct StudyBackend {
    child: Child,
    pub(super) address: SocketAddrV4,
}

impl StudyBackend {
    /// Starts a backend behind the words that place it, and waits until it listens.
    pub(super) fn start(
        weir: &Path,
        placed: &[String],
        address: Ipv4Addr,
        options: &[String],
    ) -> Result<Self, String> {
        let mut words = placed.to_vec();
        words.extend(["setpriv", "--pdeathsig", "TERM"].map(str::to_owned));
        words.extend([weir.display().to_string(), "backend".into()]);
        words.extend_from_slice(options);
        words.extend(["-l".into(), format!("{address}:0")]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = spawned.map_err(|error| format!("{}: {error}", words[0]))?;
        let mut backend = Self { child, address: SocketAddrV4::new(address, 0) };
        let mut line = String::new();
        let output = backend.child.stdout.take();
        let read = output.map(|output| BufReader::new(output).read_line(&mut line));
        match read.and_then(Result::ok).and_then(|_| listens_on(&line)) {
            Some(address) => backend.address = address,
            None => return Err(backend.last_words(options)),
        }
        Ok(backend)
    }

    fn last_words(&mut self, options: &[String]) -> String {
        // The end of its error output comes only with the end of the process.
        let _ = self.child.kill();
        let mut said = String::new();
        let stderr = self.child.stderr.take();
        let _ = stderr.map(|mut stderr| stderr.read_to_string(&mut said));
        let told = format!("weir backend {} did not start\n{}", options.join(" "), said.trim_end());
        told.trim_end().to_owned()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// The address in the line `listening on http://127.0.0.1:8081`.
fn listens_on(line: &str) -> Option<SocketAddrV4> {
    line.trim_end().strip_prefix("listening on http://")?.parse().ok()
}

impl Drop for StudyBackend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read() {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8081);
        assert_eq!(listens_on("listening on http://127.0.0.1:8081\n"), Some(address));
        assert_eq!(listens_on("listening on unix:/tmp/x"), None);
    }

    #[test]
    fn a_backend_that_does_not_start_is_reported() {
        let options = ["--sleep".to_owned(), "x".to_owned()];
        let told = StudyBackend::start(Path::new("false"), &[], Ipv4Addr::LOCALHOST, &options);
        assert_eq!(told.err().as_deref(), Some("weir backend --sleep x did not start"));
    }
}

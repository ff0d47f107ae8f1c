//! The test backends of a row.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::study::{BackendAddress, StudyBackends};

/// A running `weir backend`.
pub(super) struct StudyBackend {
    child: Child,
    pub(super) address: BackendAddress,
}

impl StudyBackend {
    /// Starts a backend behind the words that place it, and waits until it listens.
    pub(super) fn start(
        weir: &Path,
        placed: &[String],
        address: Ipv4Addr,
        of: &StudyBackends,
    ) -> Result<Self, String> {
        let mut words = placed.to_vec();
        words.extend(["setpriv", "--pdeathsig", "TERM"].map(str::to_owned));
        words.extend([weir.display().to_string(), "backend".into()]);
        words.extend_from_slice(&of.options);
        words.extend(["-l".into(), format!("{address}:0")]);
        if of.udp {
            words.extend(["--udp-echo".into(), format!("{address}:0")]);
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = spawned.map_err(|error| format!("{}: {error}", words[0]))?;
        let address = BackendAddress::of_http(SocketAddrV4::new(address, 0));
        let mut backend = Self { child, address };
        let output = backend.child.stdout.take().map(BufReader::new);
        let mut lines = output.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let mut next = |scheme| listens_on(&lines.next()?, scheme);
        let http = next("http");
        let udp = if of.udp { next("udp") } else { http };
        match http.zip(udp) {
            Some((http, udp)) => backend.address = BackendAddress { http, udp },
            None => return Err(backend.last_words(&of.options)),
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

/// The address in a line such as `listening on http://127.0.0.1:8081`.
fn listens_on(line: &str, scheme: &str) -> Option<SocketAddrV4> {
    line.strip_prefix("listening on ")?.strip_prefix(scheme)?.strip_prefix("://")?.parse().ok()
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
        assert_eq!(listens_on("listening on http://127.0.0.1:8081", "http"), Some(address));
        assert_eq!(listens_on("listening on udp://127.0.0.1:8081", "udp"), Some(address));
        assert_eq!(listens_on("listening on unix:/tmp/x", "http"), None);
    }

    #[test]
    fn a_backend_that_does_not_start_is_reported() {
        let options = vec!["--sleep".to_owned(), "x".to_owned()];
        let of = StudyBackends { options, ..StudyBackends::default() };
        let told = StudyBackend::start(Path::new("false"), &[], Ipv4Addr::LOCALHOST, &of);
        assert_eq!(told.err().as_deref(), Some("weir backend --sleep x did not start"));
    }
}

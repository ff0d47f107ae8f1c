//! The server of a protocol.

use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to start, and to stop.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// It runs until this is dropped.
pub(super) struct ProtocolServer(Child);

impl ProtocolServer {
    /// Starts a program and waits until it accepts connections.
    pub(super) fn start(command: &mut Command, port: u16) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self(command.spawn().map_err(|err| format!("{name}: {err}"))?);
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > end || !matches!(server.0.try_wait(), Ok(None)) {
                return Err(format!("{name} does not start"));
            }
            thread::sleep(LOOK);
        }
        Ok(server)
    }
}

impl Drop for ProtocolServer {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-s", "INT", &self.0.id().to_string()]).status();
        let end = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(LOOK);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! A Redis of our own, without anything on the disk.

use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::project;
use crate::prove::free_port;

const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// It runs until this is dropped.
pub(super) struct ProofStore {
    pub(super) port: u16,
    child: Child,
}

impl ProofStore {
    pub(super) fn start() -> Result<Self, String> {
        let port = free_port()?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "redis-server", "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no", "--port", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("redis-server: {error}"))?;
        let store = Self { port, child };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > end {
                return Err("redis-server does not start".into());
            }
            thread::sleep(LOOK);
        }
        Ok(store)
    }

    pub(super) fn signal(&self, name: &str) -> Result<(), String> {
        let pid = self.child.id().to_string();
        project::succeed(Command::new("kill").args(["-s", name, &pid]))
    }
}

impl Drop for ProofStore {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The controller's end of a connection to an agent.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::handshake;
use super::line;
use super::protocol::{AgentReply, AgentRequest};
use super::token::AgentToken;

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The longest time for a request to be sent.
const SEND_MAX: Duration = Duration::from_secs(10);
/// The longest time that ssh may take to end.
const END_MAX: Duration = Duration::from_secs(10);
/// How ssh connects: it asks for no password, and notices when the other machine is gone.
const SSH: [&str; 9] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

/// A connection. Dropping it ends all that the agent started.
pub(super) struct AgentConnection {
    /// The agent as messages name it.
    name: String,
    /// `None` once it is closed.
    to: Option<Box<dyn Write>>,
    lines: Receiver<Result<String, String>>,
    end: AgentEnd,
    /// Why there are no replies any more.
    broken: Option<String>,
    asked: Instant,
}

/// What to end with a connection.
enum AgentEnd {
    Tcp(TcpStream),
    Ssh(Child),
}

impl AgentConnection {
    pub(super) fn tcp(
        name: String,
        address: SocketAddr,
        token: &AgentToken,
    ) -> Result<Self, String> {
        let of_it = |why: String| format!("agent {name}: {why}");
        let open = || {
            let stream = TcpStream::connect_timeout(&address, CONNECT_MAX)?;
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(SEND_MAX))?;
            stream.set_read_timeout(Some(CONNECT_MAX))?;
            Ok::<_, std::io::Error>((stream.try_clone()?, stream.try_clone()?, stream))
        };
        let (from, mut to, stream) = open().map_err(|error| of_it(error.to_string()))?;
        let mut from = BufReader::new(from);
        handshake::prove(&mut from, &mut to, token).map_err(of_it)?;
        stream.set_read_timeout(None).map_err(|error| of_it(error.to_string()))?;
        Ok(Self::new(name, from, Box::new(to), AgentEnd::Tcp(stream)))
    }

    /// Starts an agent on another machine; `command` is what the shell there runs.
    pub(super) fn ssh(name: String, host: &str, command: &[String]) -> Result<Self, String> {
        let mut ssh = Command::new("ssh");
        ssh.args(SSH).arg(host).args(command);
        let spawned = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("agent {name}: ssh: {error}"))?;
        match (child.stdout.take(), child.stdin.take()) {
            (Some(from), Some(to)) => {
                Ok(Self::new(name, BufReader::new(from), Box::new(to), AgentEnd::Ssh(child)))
            }
            _ => Err(format!("agent {name}: ssh has no pipes")),
        }
    }

    fn new(
        name: String,
        mut from: impl BufRead + Send + 'static,
        to: Box<dyn Write>,
        end: AgentEnd,
    ) -> Self {
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            while let Some(line) = line::next(&mut from).transpose() {
                let is_last = line.is_err();
                if sender.send(line).is_err() || is_last {
                    break;
                }
            }
        });
        Self { name, to: Some(to), lines, end, broken: None, asked: Instant::now() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The time since the last request.
    pub(super) fn rest(&self) -> Duration {
        self.asked.elapsed()
    }

    /// Asks, and waits for the reply.
    pub(super) fn ask<T: DeserializeOwned>(
        &mut self,
        request: &AgentRequest,
        limit: Duration,
    ) -> Result<T, String> {
        let reply = match &self.broken {
            Some(why) => Err(why.clone()),
            None => self.exchange(request, limit),
        };
        let reply = reply.map_err(|why| self.of_it(&why))?;
        match reply {
            AgentReply::Ok(value) => {
                serde_json::from_value(value).map_err(|error| self.of_it(&error.to_string()))
            }
            AgentReply::Error(why) => Err(self.of_it(&why)),
        }
    }

    /// Sends no more requests after a failure: a late reply would be taken for that of the next.
    fn exchange(&mut self, request: &AgentRequest, limit: Duration) -> Result<AgentReply, String> {
        let replied = self.send(request).and_then(|()| self.receive(limit));
        let reply = replied.and_then(|line| {
            serde_json::from_str(&line).map_err(|_| format!("it is no weir lab agent: {line}"))
        });
        self.asked = Instant::now();
        if let Err(why) = &reply {
            self.broken = Some(why.clone());
        }
        reply
    }

    fn send(&mut self, request: &AgentRequest) -> Result<(), String> {
        let line = serde_json::to_string(request).map_err(|error| error.to_string())? + "\n";
        if line.len() > line::LINE_BYTES_MAX {
            return Err(format!("the request has more than {} bytes", line::LINE_BYTES_MAX));
        }
        let to = self.to.as_mut().ok_or("the connection is closed")?;
        let sent = to.write_all(line.as_bytes()).and_then(|()| to.flush());
        sent.map_err(|error| match self.lines.try_recv() {
            // What the agent said last says more than a broken pipe.
            Ok(Ok(line)) => line,
            _ => format!("the connection ended: {error}"),
        })
    }

    fn receive(&mut self, limit: Duration) -> Result<String, String> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => Err("the connection ended".to_owned()),
            Err(RecvTimeoutError::Timeout) => Err(format!("no reply within {} s", limit.as_secs())),
        }
    }

    fn of_it(&self, why: &str) -> String {
        format!("agent {}: {why}", self.name)
    }
}

impl Drop for AgentConnection {
    fn drop(&mut self) {
        // Its end is what the agent waits for.
        self.to = None;
        match &mut self.end {
            AgentEnd::Tcp(stream) => {
                let _ = stream.shutdown(Shutdown::Both);
            }
            AgentEnd::Ssh(child) => {
                let begun = Instant::now();
                while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < END_MAX {
                    thread::sleep(Duration::from_millis(20));
                }
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

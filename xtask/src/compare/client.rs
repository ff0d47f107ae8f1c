//! Plays the steps of one request on a connection and keeps every byte of the answer.
//!
//! A connection that the server says it keeps is half closed at the end, so that anything sent
//! after the last reply is seen; one that it does not keep must be closed by the server itself.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::case::{CaseConnection, ConnectionStep};
use super::place::ServerEnvironment;
use super::reply::{self, Extent};

/// How long a connection may say nothing where a reply or the end is due; a busy machine and its
/// disk take seconds over a read with `directio`.
const SILENCE_MAX: Duration = Duration::from_secs(4);

/// The same where it is not known whether a reply is due.
const SETTLED_MAX: Duration = Duration::from_millis(300);

/// How long all the reading of one connection may take.
const READING_MAX: Duration = Duration::from_secs(10);

/// Everything that came back on one connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionReplies {
    pub(super) replies: Vec<Vec<u8>>,
    pub(super) ending: &'static str,
    /// The client's port.
    pub(super) port: u16,
}

/// Connects from a port that is not among `used`, plays `request`, and reads until the connection
/// is over.
pub(super) fn play(
    request: &CaseConnection,
    place: &ServerEnvironment,
    used: &[u16],
) -> Result<ConnectionReplies, String> {
    let open = |port: usize| {
        let port = place.ports.get(port).ok_or("no such port")?;
        ScriptedConnection::open(*port).map_err(|e| format!("connect: {e}"))
    };
    let mut connection = open(request.port)?;
    while used.contains(&connection.answer.port) {
        connection = open(request.port)?;
    }
    for step in &request.steps {
        match step {
            ConnectionStep::Write(bytes) => connection.write(&place.filled(bytes)),
            ConnectionStep::Read { head } => connection.read_reply(*head),
            ConnectionStep::Wait(pause) => std::thread::sleep(*pause),
            ConnectionStep::Close => connection.half_close(),
            ConnectionStep::Settle => connection.settle(),
            ConnectionStep::Curl(_) => return Err("curl has a connection of its own".into()),
            ConnectionStep::Reopen(port) => {
                let before = std::mem::replace(&mut connection, open(*port)?).finish();
                connection.answer.replies = before.replies;
                connection.answer.replies.push(format!("{}\n", before.ending).into());
            }
        }
    }
    Ok(connection.finish())
}

/// Opens and closes a connection and waits until the server has seen both.
pub(super) fn pass_through(port: u16) -> std::io::Result<()> {
    let mut connection = ScriptedConnection::open(port)?;
    connection.half_close();
    while connection.fill() {}
    Ok(())
}

struct ScriptedConnection {
    stream: TcpStream,
    unparsed: Vec<u8>,
    answer: ConnectionReplies,
    state: ClientState,
    half_closed: bool,
    deadline: Instant,
}

#[derive(Clone, Copy, PartialEq)]
enum ClientState {
    Open,
    Silent,
    Ended,
}

impl ScriptedConnection {
    fn open(port: u16) -> std::io::Result<ScriptedConnection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        // Where nobody listens on an ephemeral port, TCP may connect a socket to itself.
        let local = stream.local_addr()?;
        if local == stream.peer_addr()? {
            return Err(ErrorKind::ConnectionRefused.into());
        }
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        Ok(ScriptedConnection {
            stream,
            unparsed: Vec::new(),
            answer: ConnectionReplies { port: local.port(), ..ConnectionReplies::default() },
            state: ClientState::Open,
            half_closed: false,
            deadline: Instant::now() + READING_MAX,
        })
    }

    /// A server may refuse and close before it has read everything: what it said shows that.
    fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    fn half_close(&mut self) {
        self.half_closed = true;
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Reads once; false where there is nothing more to read. A process that was stopped and
    /// continued finds its read interrupted.
    fn fill(&mut self) -> bool {
        let mut buffer = [0; 64 << 10];
        self.state = match self.stream.read(&mut buffer) {
            _ if Instant::now() > self.deadline => ClientState::Silent,
            Ok(0) => ClientState::Ended,
            Ok(length) => {
                self.unparsed.extend_from_slice(&buffer[..length]);
                return true;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                ClientState::Silent
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => return true,
            // A reset ends the connection like a close; which of them comes is a matter of timing.
            Err(_) => ClientState::Ended,
        };
        false
    }

    fn read_reply(&mut self, head: bool) {
        while self.state == ClientState::Open {
            match reply::extent(&self.unparsed, head) {
                Extent::Whole(length) => {
                    let reply: Vec<u8> = self.unparsed.drain(..length).collect();
                    let interim = reply::is_interim(&reply);
                    self.answer.replies.push(reply);
                    if !interim {
                        return;
                    }
                }
                Extent::Partial | Extent::UntilClose => {
                    self.fill();
                }
            }
        }
    }

    /// Reads one reply, or closes the writing half where none comes.
    fn settle(&mut self) {
        let _ = self.stream.set_read_timeout(Some(SETTLED_MAX));
        self.read_reply(false);
        let _ = self.stream.set_read_timeout(Some(SILENCE_MAX));
        if self.state == ClientState::Silent {
            self.state = ClientState::Open;
            self.half_close();
        }
    }

    fn finish(mut self) -> ConnectionReplies {
        let last = self.answer.replies.last();
        let keeps = last.is_some_and(|last| reply::keeps_alive(last));
        let keeps = keeps && self.state == ClientState::Open && !self.half_closed;
        if keeps {
            self.half_close();
        }
        while self.state == ClientState::Open && self.fill() {}
        self.answer.ending = match (keeps, self.state) {
            (_, ClientState::Silent) => "(still open)",
            (true, _) => "(kept)",
            (false, _) => "(closed)",
        };
        self.split_rest();
        self.answer
    }

    fn split_rest(&mut self) {
        let rest = std::mem::take(&mut self.unparsed);
        self.answer.replies.extend(split(rest, false));
    }
}

/// The replies that bytes consist of; `head`: they answer HEAD.
pub(super) fn split(mut bytes: Vec<u8>, head: bool) -> Vec<Vec<u8>> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let length = match reply::extent(&bytes, head) {
            Extent::Whole(length) => length,
            Extent::Partial | Extent::UntilClose => bytes.len(),
        };
        replies.push(bytes.drain(..length).collect());
    }
    replies
}

//! The connections of an agent: one over standard input and output, or one at a time over TCP.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use super::handshake;
use super::line;
use super::protocol::AgentReply;
use super::rights::AgentRights;
use super::service::{AgentAddresses, AgentService, ENDED};
use super::token::AgentToken;

/// A controller that asks for nothing this long has gone.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// The longest time for a reply to be taken.
const SEND_MAX: Duration = Duration::from_secs(10);
/// Connections whose controllers are still to prove that they know the token.
const UNKNOWN_MAX: usize = 8;

/// Serves the one controller at standard input and output.
pub(super) fn stdio(rights: &AgentRights) -> Result<(), String> {
    let ssh = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let service = AgentService::new(rights, AgentAddresses::of_ssh(&ssh));
    let ended = serve(BufReader::new(io::stdin()), &mut io::stdout(), service);
    ended.map_or(Ok(()), Err)
}

/// Serves controllers at an address, one at a time.
pub(super) fn listen(
    address: SocketAddr,
    token: AgentToken,
    rights: &AgentRights,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("{address}: {error}");
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let told = writeln!(io::stdout(), "listening on {address}").and_then(|()| io::stdout().flush());
    told.map_err(|error| error.to_string())?;
    accept(&listener, token, rights)
}

/// Never returns.
pub(super) fn accept(
    listener: &TcpListener,
    token: AgentToken,
    rights: &AgentRights,
) -> Result<(), String> {
    let door = Arc::new(AgentDoor {
        token,
        rights: rights.clone(),
        unknown: AtomicUsize::new(0),
        has_controller: AtomicBool::new(false),
    });
    loop {
        match listener.accept() {
            Ok((stream, peer)) => AgentDoor::open(&door, stream, peer),
            // Out of descriptors, for instance.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// What all connections share.
struct AgentDoor {
    token: AgentToken,
    rights: AgentRights,
    unknown: AtomicUsize,
    has_controller: AtomicBool,
}

impl AgentDoor {
    fn open(door: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        if door.unknown.fetch_add(1, Ordering::SeqCst) >= UNKNOWN_MAX {
            door.unknown.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        let door = Arc::clone(door);
        thread::spawn(move || {
            tell(peer, "connects");
            let ended = door.admit(stream, peer);
            tell(peer, ended.as_deref().unwrap_or("has left"));
        });
    }

    /// Serves a controller that knows the token; returns why that ended, unless it left.
    fn admit(&self, mut stream: TcpStream, peer: SocketAddr) -> Option<String> {
        let ready =
            stream.set_write_timeout(Some(SEND_MAX)).and_then(|()| stream.set_nodelay(true));
        let proof = match ready {
            Ok(()) => handshake::await_proof(&mut stream, &self.token),
            Err(error) => Err(error.to_string()),
        };
        self.unknown.fetch_sub(1, Ordering::SeqCst);
        let admitted =
            proof.and_then(|proof| match self.has_controller.swap(true, Ordering::SeqCst) {
                true => Err("another controller is connected".to_owned()),
                false => Ok(proof),
            });
        let ended = match admitted {
            Ok(proof) => {
                let _leaves = LeavingController(&self.has_controller);
                self.serve(&mut stream, peer, proof)
            }
            Err(why) => {
                let _ = handshake::send(&mut stream, &AgentReply::Error(why.clone()));
                Some(why)
            }
        };
        let _ = stream.shutdown(Shutdown::Both);
        ended
    }

    fn serve(&self, stream: &mut TcpStream, peer: SocketAddr, proof: String) -> Option<String> {
        let begin = || {
            stream.set_read_timeout(None)?;
            Ok::<_, io::Error>((stream.try_clone()?, stream.local_addr()?))
        };
        let (from, own) = match begin() {
            Ok(begun) => begun,
            Err(error) => return Some(error.to_string()),
        };
        if let Err(why) = handshake::send(stream, &AgentReply::Ok(proof.into())) {
            return Some(why);
        }
        let addresses = AgentAddresses::of(Some(own), Some(peer));
        serve(BufReader::new(from), stream, AgentService::new(&self.rights, addresses))
    }
}

/// Lets the next controller in, however the last one leaves.
struct LeavingController<'d>(&'d AtomicBool);

impl Drop for LeavingController<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Serves one controller until it leaves, which is no error, or until it breaks a rule.
fn serve(
    from: impl BufRead + Send + 'static,
    to: &mut dyn Write,
    mut service: AgentService,
) -> Option<String> {
    let (sender, lines) = mpsc::sync_channel(1);
    let turning = service.turning();
    thread::spawn(move || read_lines(from, &sender, &turning));
    loop {
        let line = match lines.recv_timeout(IDLE_MAX) {
            Ok(Ok(line)) => line,
            Ok(Err(why)) => {
                let _ = handshake::send(to, &AgentReply::Error(why.clone()));
                return Some(why);
            }
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => return Some("asked for nothing too long".to_owned()),
        };
        let reply = service.reply(&line);
        if let Err(why) = handshake::send(to, &reply) {
            return Some(why);
        }
    }
}

/// Passes lines on. When the connection ends, so does a turn that is running.
fn read_lines(
    mut from: impl BufRead,
    lines: &SyncSender<Result<String, String>>,
    turning: &AtomicU32,
) {
    loop {
        let sent = match line::next(&mut from) {
            Ok(Some(line)) => lines.send(Ok(line)),
            Ok(None) => break,
            Err(why) => {
                let _ = lines.send(Err(why));
                break;
            }
        };
        if sent.is_err() {
            return;
        }
    }
    let pid = turning.swap(ENDED, Ordering::SeqCst);
    if pid != 0 {
        let kill = ["-KILL".to_owned(), pid.to_string()];
        let _ = Command::new("kill").args(kill).stderr(Stdio::null()).status();
    }
}

fn tell(peer: SocketAddr, what: &str) {
    let _ = writeln!(io::stderr(), "weir lab agent: {peer} {what}");
}

//! A client that sends whatever bytes it is given, over TCP or through `openssl s_client`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::frames::{ACK, GOAWAY, PING, PREFACE, RST_STREAM, SETTINGS, frame};

const LOOK: Duration = Duration::from_millis(2);
const WRITE_MAX: Duration = Duration::from_secs(5);

/// A connection of HTTP/2.
pub(super) struct Attacker {
    to: Box<dyn Write>,
    seen: Arc<Mutex<SeenFrames>>,
    _tls: Option<TlsClient>,
}

/// What has come from the server.
#[derive(Default)]
pub(super) struct SeenFrames {
    bytes: Vec<u8>,
    pub(super) went_away: Option<u32>,
    pub(super) resets: u32,
    pub(super) pongs: u32,
    pub(super) is_closed: bool,
}

struct TlsClient(Child);

impl Drop for TlsClient {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Attacker {
    pub(super) fn connect(address: SocketAddr, tls: bool) -> io::Result<Self> {
        let seen = Arc::<Mutex<SeenFrames>>::default();
        let mut attacker = if tls {
            let mut openssl = Command::new("openssl");
            openssl.args(["s_client", "-quiet", "-alpn", "h2", "-connect", &address.to_string()]);
            openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = openssl.spawn()?;
            let pipes = child.stdin.take().zip(child.stdout.take());
            let (to, from) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
            note_frames(from, seen.clone());
            Self { to: Box::new(to), seen, _tls: Some(TlsClient(child)) }
        } else {
            let socket = TcpStream::connect(address)?;
            socket.set_nodelay(true)?;
            socket.set_write_timeout(Some(WRITE_MAX))?;
            note_frames(socket.try_clone()?, seen.clone());
            Self { to: Box::new(socket), seen, _tls: None }
        };
        attacker.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat())?;
        attacker.send(&frame(SETTINGS, ACK, 0, &[]))?;
        Ok(attacker)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    /// Whether this holds within `time`.
    pub(super) fn sees(&self, time: Duration, holds: impl Fn(&SeenFrames) -> bool) -> bool {
        let end = Instant::now() + time;
        loop {
            if self.seen(&holds) {
                return true;
            }
            if Instant::now() > end {
                return false;
            }
            thread::sleep(LOOK);
        }
    }

    pub(super) fn seen<T>(&self, look: impl FnOnce(&SeenFrames) -> T) -> T {
        look(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reads in a thread of its own to the end of the connection.
fn note_frames(mut from: impl Read + Send + 'static, seen: Arc<Mutex<SeenFrames>>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        loop {
            let count = from.read(&mut buffer).unwrap_or(0);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if count == 0 {
                seen.is_closed = true;
                return;
            }
            seen.take(&buffer[..count]);
        }
    });
}

impl SeenFrames {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(head) = self.bytes.get(at..at + 9) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let (kind, flags) = (head[3], head[4]);
            let Some(payload) = self.bytes.get(at + 9..at + 9 + length) else { break };
            match (kind, payload) {
                (GOAWAY, [_, _, _, _, a, b, c, d, ..]) => {
                    self.went_away = Some(u32::from_be_bytes([*a, *b, *c, *d]));
                }
                (RST_STREAM, _) => self.resets += 1,
                (PING, _) if flags & ACK != 0 => self.pongs += 1,
                _ => {}
            }
            at += 9 + length;
        }
        self.bytes.drain(..at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_seen_in_any_split() {
        let bytes = [
            frame(PING, ACK, 0, &[0; 8]),
            frame(RST_STREAM, 0, 1, &[0, 0, 0, 1]),
            frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11]),
        ]
        .concat();
        for split in 0..bytes.len() {
            let mut seen = SeenFrames::default();
            seen.take(&bytes[..split]);
            seen.take(&bytes[split..]);
            assert_eq!((seen.pongs, seen.resets, seen.went_away), (1, 1, Some(11)), "{split}");
        }
    }
}

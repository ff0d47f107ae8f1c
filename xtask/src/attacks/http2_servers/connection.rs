//! One connection of a hostile server. It answers GETs, and attacks with each POST.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

use super::attack::{ServerAct, ServerAttack};
use super::reply::{BODY, LARGE_BYTES, head};
use super::state::{HostileState, ServerEvent};
use crate::attacks::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, WINDOW_UPDATE, frame,
};

const HALF: usize = 3;
/// Frames of a flood, unless the connection ends before.
const FLOOD: u32 = 20_000;
/// A client that does not read for so long is attacked no more.
const WRITE_MAX: Duration = Duration::from_secs(20);
const WINDOW: i64 = 65_535;
/// What large bodies leave of the connection's window, for the other replies.
const WINDOW_LEFT: i64 = 1024;

struct HostileConnection<'s> {
    socket: TcpStream,
    attack: &'static ServerAttack,
    shared: &'s HostileState,
    /// Streams whose replies wait for their second half.
    held: Vec<u32>,
    /// The window of the connection.
    window: i64,
    /// What is left of large bodies, and the windows of their streams.
    large: BTreeMap<u32, (usize, i64)>,
}

pub(super) fn serve(
    socket: TcpStream,
    attack: &'static ServerAttack,
    shared: &HostileState,
    sender: Sender<ServerEvent>,
    events: &Receiver<ServerEvent>,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(WRITE_MAX))?;
    let from = socket.try_clone()?;
    let reader = thread::spawn(move || read_frames(from, &sender));
    let (held, large) = (Vec::new(), BTreeMap::new());
    let mut connection = HostileConnection { socket, attack, shared, held, window: WINDOW, large };
    let served = connection.serve(events);
    let _ = connection.socket.shutdown(Shutdown::Both);
    drop(reader.join());
    served
}

impl HostileConnection<'_> {
    fn serve(&mut self, events: &Receiver<ServerEvent>) -> io::Result<()> {
        self.socket.write_all(&(self.attack.begin)())?;
        while !self.shared.is_over() {
            match events.recv().unwrap_or(ServerEvent::Over) {
                // `:method: GET` is the second entry of the static table, and comes first.
                ServerEvent::Request(stream, block) if block.first() == Some(&0x82) => {
                    self.answer(stream, block.get(2) == Some(&0x85))?;
                }
                ServerEvent::Request(stream, _) => {
                    if !self.attack(stream)? {
                        return Ok(());
                    }
                }
                ServerEvent::WindowUpdate(0, more) => self.window += i64::from(more),
                ServerEvent::WindowUpdate(stream, more) => {
                    if let Some((_, window)) = self.large.get_mut(&stream) {
                        *window += i64::from(more);
                    }
                }
                ServerEvent::Ping(payload) if self.attack.answers_pings => {
                    self.socket.write_all(&frame(PING, ACK, 0, &payload))?;
                }
                ServerEvent::Ping(_) => {}
                ServerEvent::Release => {
                    for stream in std::mem::take(&mut self.held) {
                        self.socket.write_all(&frame(DATA, END_STREAM, stream, &BODY[HALF..]))?;
                    }
                }
                ServerEvent::Closed | ServerEvent::Over => break,
            }
            self.pour()?;
        }
        Ok(())
    }

    /// Answers a request, with half of the body if the rest is to wait.
    fn answer(&mut self, stream: u32, waits: bool) -> io::Result<()> {
        // `:status: 200` and `content-length: 6`: the other client waits for the end of the body.
        let head = frame(HEADERS, END_HEADERS, stream, b"\x88\x0f\x0d\x016");
        self.socket.write_all(&head)?;
        self.window -= BODY.len() as i64;
        if !waits {
            return self.socket.write_all(&frame(DATA, END_STREAM, stream, BODY));
        }
        self.socket.write_all(&frame(DATA, 0, stream, &BODY[..HALF]))?;
        self.held.push(stream);
        self.shared.held.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Whether the connection goes on.
    fn attack(&mut self, stream: u32) -> io::Result<bool> {
        match self.attack.act {
            ServerAct::Sends(bytes) => self.socket.write_all(&bytes(stream))?,
            ServerAct::Closes(bytes) => {
                self.socket.write_all(&bytes(stream))?;
                return Ok(false);
            }
            ServerAct::Floods(first, again) => {
                self.socket.write_all(&first(stream))?;
                let again = again(stream);
                for _ in 0..FLOOD {
                    self.socket.write_all(&again)?;
                }
            }
            ServerAct::Pours => {
                self.socket.write_all(&head(stream))?;
                self.large.insert(stream, (LARGE_BYTES, WINDOW));
            }
        }
        Ok(true)
    }

    /// Sends as much of large bodies as the windows allow.
    fn pour(&mut self) -> io::Result<()> {
        for (stream, (left, window)) in &mut self.large {
            while *left > 0 && *window > 0 && self.window > WINDOW_LEFT {
                let room = (*window).min(self.window - WINDOW_LEFT);
                let room = usize::try_from(room).unwrap_or(0);
                let count = room.min(*left).min(16_384);
                *left -= count;
                *window -= count as i64;
                self.window -= count as i64;
                let flags = if *left == 0 { END_STREAM } else { 0 };
                self.socket.write_all(&frame(DATA, flags, *stream, &vec![b'x'; count]))?;
            }
        }
        self.large.retain(|_, (left, _)| *left > 0);
        let stalled = self.large.values().filter(|(_, window)| *window == 0).count();
        self.shared.stalled.store(stalled, Ordering::SeqCst);
        Ok(())
    }
}

/// Passes frames on to the end of the connection, without those that no server here waits for.
fn read_frames(mut from: TcpStream, events: &Sender<ServerEvent>) {
    let mut read = || -> io::Result<()> {
        from.read_exact(&mut [0; PREFACE.len()])?;
        loop {
            let mut head = [0; 9];
            from.read_exact(&mut head)?;
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            from.read_exact(&mut payload)?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let event = match (head[3], &payload[..]) {
                // A change of the table's size may come first.
                (HEADERS, [0x20..0x40, block @ ..] | block) => {
                    ServerEvent::Request(stream, block[..block.len().min(8)].to_vec())
                }
                (WINDOW_UPDATE, [a, b, c, d]) => {
                    ServerEvent::WindowUpdate(stream, u32::from_be_bytes([*a, *b, *c, *d]))
                }
                (PING, _) if head[4] & ACK == 0 => ServerEvent::Ping(payload),
                (CONTINUATION, _) => return Err(io::ErrorKind::InvalidData.into()),
                _ => continue,
            };
            if events.send(event).is_err() {
                return Ok(());
            }
        }
    };
    let _ = read();
    let _ = events.send(ServerEvent::Closed);
}

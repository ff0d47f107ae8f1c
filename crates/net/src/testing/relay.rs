//! The other end of a toy session, for clients and servers with plain sockets, which may block.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::{Duration, Instant};

use super::Toy;
use crate::{Alarm, MailboxSender, SocketProbe, Stream, mailbox};

/// The ends of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelaySide {
    /// Begins the handshake.
    Client,
    /// Answers the handshake.
    Server,
}

/// Waits by the real clock for bytes still in relays.
pub async fn pause_for_relays() {
    const PAUSE: Duration = Duration::from_millis(50);
    let mut alarm = Alarm::new().expect("a descriptor");
    alarm.wait_until(Instant::now() + PAUSE).await;
}

struct Job {
    plain: OwnedFd,
    secured: OwnedFd,
    side: RelaySide,
}

/// Forwards bytes between a plain socket and the `side` of a toy session on another one, on a
/// shared thread, until both are closed. Both sockets must be non-blocking.
pub fn relay(plain: OwnedFd, secured: OwnedFd, side: RelaySide) {
    static JOBS: OnceLock<MailboxSender<Job>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (jobs, mut mailbox) = mailbox::<Job>();
        thread::spawn(move || {
            crate::run(async move {
                while let Some(job) = mailbox.next().await {
                    crate::spawn(job.run());
                }
            })
        });
        jobs
    });
    jobs.send(Job { plain, secured, side });
}

/// One direction of a relay.
#[derive(Default)]
struct RelayDirection {
    buffer: Vec<u8>,
    written: usize,
    is_ended: bool,
    /// Whether the destination fails: further input is discarded, since closing a socket with
    /// unread bytes resets the connection.
    is_broken: bool,
    is_over: bool,
    /// Whether a reset is forwarded. Not on the server's side, where a server that closes early
    /// resets the connection because of unread bytes, although its reply counts.
    passes_resets: bool,
}

impl Job {
    async fn run(self) {
        let (mut plain, mut secured) = (Stream::new(self.plain), Stream::new(self.secured));
        let session = Box::new(Toy::new(self.side, true));
        secured.secure(session);
        // An error shows up again when the directions use the stream.
        let _ = poll_fn(|cx| secured.poll_handshake(cx)).await;
        let passes_resets = self.side == RelaySide::Client;
        let way = || RelayDirection { passes_resets, ..RelayDirection::default() };
        let (mut out, mut back) = (way(), way());
        let ended = poll_fn(|cx| {
            let (out, broken) = (out.poll(cx, &mut plain, &mut secured)?, out.is_broken);
            let back = back.poll(cx, &mut secured, &mut plain)?;
            // A failed destination ends its direction.
            let is_over = (out.is_ready() || (broken && passes_resets)) && back.is_ready();
            if is_over { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        let ended: io::Result<()> = ended.await;
        if ended.is_err() {
            let _ = (plain.reset_on_close(), secured.reset_on_close());
        }
    }
}

impl RelayDirection {
    /// Fails if a TCP connection was reset and resets are forwarded.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Stream,
        to: &mut Stream,
    ) -> Poll<io::Result<()>> {
        while !self.is_over {
            if self.written < self.buffer.len() {
                let rest = IoSlice::new(&self.buffer[self.written..]);
                match ready!(to.poll_write(cx, &[rest])) {
                    Ok(count) => self.written += count,
                    Err(_) => {
                        self.is_broken = true;
                        self.buffer.clear();
                    }
                }
            } else if self.is_ended {
                // The other end may be closed.
                let _ = ready!(to.poll_shutdown(cx));
                self.is_over = true;
            } else {
                self.buffer.clear();
                self.written = 0;
                match ready!(from.poll_read(cx, &mut self.buffer)) {
                    Ok(0) => self.is_ended = true,
                    Ok(_) if self.is_broken => self.buffer.clear(),
                    Ok(_) => {}
                    Err(error)
                        if self.passes_resets && SocketProbe::new(from).tcp_info().is_some() =>
                    {
                        return Poll::Ready(Err(error));
                    }
                    Err(_) => self.is_ended = true,
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

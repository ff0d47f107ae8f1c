//! The other end of a toy session, for clients and servers that speak through plain sockets and may
//! block.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};
use std::thread;

use super::ToyTransport;
use crate::accept::Transport as _;
use crate::{Sender, Stream, mailbox};

/// Which end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that begins.
    Client,
    /// The one that answers.
    Server,
}

struct Job {
    plain: OwnedFd,
    secured: OwnedFd,
    side: Side,
}

/// Passes bytes between a plain socket and the `side` of a toy session on another one, in a thread
/// of its own, until both are closed. Both sockets must be non-blocking.
pub fn relay(plain: OwnedFd, secured: OwnedFd, side: Side) {
    static JOBS: OnceLock<Sender<Job>> = OnceLock::new();
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

/// Bytes in one direction.
#[derive(Default)]
struct Way {
    buffer: Vec<u8>,
    written: usize,
    is_ended: bool,
    is_over: bool,
}

impl Job {
    async fn run(self) {
        let (mut plain, mut secured) = (Stream::new(self.plain), Stream::new(self.secured));
        let session = ToyTransport(self.side).session().expect("there is no reason to refuse");
        secured.secure(session, &[]).expect("nothing was received");
        let (mut out, mut back) = (Way::default(), Way::default());
        let ended = poll_fn(|cx| {
            let out = out.poll(cx, &mut plain, &mut secured)?;
            let back = back.poll(cx, &mut secured, &mut plain)?;
            if out.is_ready() && back.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        let ended: io::Result<()> = ended.await;
        if ended.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset) {
            let _ = (plain.reset_on_close(), secured.reset_on_close());
        }
    }
}

impl Way {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Stream,
        to: &mut Stream,
    ) -> Poll<io::Result<()>> {
        while !self.is_over {
            if self.written < self.buffer.len() {
                let rest = IoSlice::new(&self.buffer[self.written..]);
                self.written += ready!(to.poll_write(cx, &[rest]))?;
            } else if self.is_ended {
                ready!(to.poll_shutdown(cx))?;
                self.is_over = true;
            } else {
                self.buffer.clear();
                self.written = 0;
                self.is_ended = ready!(from.poll_read(cx, &mut self.buffer))? == 0;
            }
        }
        Poll::Ready(Ok(()))
    }
}

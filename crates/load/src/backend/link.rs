//! A connection as bytes: heads and bodies come out of it, replies go into it.
//!
//! What they mean is not known here. A buffer is held only while there are bytes in it.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use net::{Alarm, Stream, buffers};
use wire::http1::framing::RequestFraming;
use wire::http1::request::{HeadError, HeadProgress, RequestHeadParser};
use wire::request::{HeadLimits, RequestHead};

use super::body::RemainingBody;
use super::complain;
use super::reply::{BackendReply, PIECES_MAX};

/// Why a connection ends early.
pub(super) enum EarlyEnd {
    /// The other end is gone.
    Gone,
    /// What it sent is not HTTP, or too much: the status says so.
    Refused(u16),
}

impl From<io::Error> for EarlyEnd {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<HeadError> for EarlyEnd {
    fn from(error: HeadError) -> Self {
        // nginx's own 494 says which of its pages is meant.
        Self::Refused(if error.status() == 494 { 431 } else { error.status() })
    }
}

/// How much of a reply is written, and how fast.
#[derive(Clone, Copy)]
pub(super) struct ReplyPart {
    /// Its end.
    pub(super) upto: u64,
    /// The head's, ...
    pub(super) head: u64,
    /// ... after which so many bytes go out in a second; `None`: all that the other end takes.
    pub(super) trickle: Option<u64>,
}

/// What trickles goes out in so many writes a second, if there are as many bytes.
const DRIPS: u64 = 20;

impl ReplyPart {
    /// All up to there, at once.
    pub(super) fn at_once(upto: u64) -> Self {
        Self { upto, head: 0, trickle: None }
    }

    /// How far the next write goes.
    fn next(self, at: u64) -> u64 {
        match self.trickle {
            Some(_) if at < self.head => self.head.min(self.upto),
            Some(rate) => at.saturating_add((rate / DRIPS).max(1)).min(self.upto),
            None => self.upto,
        }
    }

    /// When it is due, since the reply began; `None`: now.
    fn due(self, at: u64) -> Option<Duration> {
        let rate = self.trickle.filter(|_| at > self.head)?;
        Some(Duration::from_secs_f64((at - self.head) as f64 / rate as f64))
    }
}

/// A connection.
pub(super) struct BackendLink {
    stream: Stream,
    /// What has arrived, and how far it is used up.
    received: Vec<u8>,
    at: usize,
    /// The head that was read last. It speaks of [`BackendLink::input`] until that is used.
    pub(super) head: RequestHead,
    /// There is one from the first wait on.
    alarm: Option<Alarm>,
}

impl BackendLink {
    /// Takes a connected socket.
    pub(super) fn new(fd: OwnedFd) -> Self {
        let stream = Stream::new(fd);
        stream.set_nodelay();
        Self { stream, received: Vec::new(), at: 0, head: RequestHead::default(), alarm: None }
    }

    /// What has arrived and is not used up.
    pub(super) fn input(&self) -> &[u8] {
        &self.received[self.at..]
    }

    /// So much of it is used up.
    pub(super) fn use_up(&mut self, length: usize) {
        self.at += length;
    }

    /// Waits for a head; how long it is, or `None` at the end of the connection.
    pub(super) async fn read_head(&mut self) -> Result<Option<usize>, EarlyEnd> {
        self.head.reset();
        let (mut parser, limits) = (RequestHeadParser::default(), HeadLimits::default());
        loop {
            if self.at < self.received.len() {
                let input = &self.received[self.at..];
                if let HeadProgress::Complete { len } =
                    parser.parse(&mut self.head, input, &limits)?
                {
                    return Ok(Some(len));
                }
            }
            if self.read().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads a body to its end, and hands out its bytes.
    pub(super) async fn read_body(
        &mut self,
        framing: &RequestFraming,
        mut take: impl FnMut(&[u8]) -> Result<(), EarlyEnd>,
    ) -> Result<(), EarlyEnd> {
        let mut rest = RemainingBody::of(framing.body);
        if framing.expects_continue && !rest.is_over() && self.input().is_empty() {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        while !rest.is_over() {
            if self.input().is_empty() && self.read().await? == 0 {
                return Err(EarlyEnd::Gone);
            }
            let (part, used) = rest.next(self.input()).map_err(|_| EarlyEnd::Refused(400))?;
            take(&self.input()[part])?;
            self.at += used;
        }
        Ok(())
    }

    /// Writes a part of a reply and reports how many bytes were sent. `at_last` comes before the
    /// last of it is written: the other end may act on it before this one is told.
    pub(super) async fn send(
        &mut self,
        reply: &BackendReply,
        part: ReplyPart,
        at_last: impl FnOnce(),
        mut went: impl FnMut(u64),
    ) -> io::Result<()> {
        let (mut at, mut at_last, begun) = (0, Some(at_last), Instant::now());
        while at < part.upto {
            if let Some(due) = part.due(at) {
                self.wait_until(begun + due).await?;
            }
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let (count, bytes) = reply.pieces(at..part.next(at), &mut pieces);
            if at + bytes == part.upto
                && let Some(at_last) = at_last.take()
            {
                at_last();
            }
            let write = |cx: &mut Context<'_>| self.stream.poll_write(cx, &pieces[..count]);
            let written = poll_fn(write).await? as u64;
            at += written;
            went(written);
        }
        Ok(())
    }

    /// Writes all of it.
    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let pieces = [IoSlice::new(bytes)];
            bytes = &bytes[poll_fn(|cx| self.stream.poll_write(cx, &pieces)).await?..];
        }
        Ok(())
    }

    /// Sends back whatever comes, until the other end closes. `went` is told how many bytes did.
    pub(super) async fn send_back(&mut self, mut went: impl FnMut(u64)) -> io::Result<()> {
        loop {
            while self.at < self.received.len() {
                let (stream, pieces) =
                    (&mut self.stream, [IoSlice::new(&self.received[self.at..])]);
                let written = poll_fn(|cx| stream.poll_write(cx, &pieces)).await?;
                self.at += written;
                went(written as u64);
            }
            if self.read().await? == 0 {
                return Ok(());
            }
        }
    }

    /// Says that nothing more is written.
    pub(super) async fn end(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.stream.poll_shutdown(cx)).await
    }

    /// Resets the connection, when it is dropped.
    pub(super) fn reset(&self) -> io::Result<()> {
        self.stream.reset_on_close()
    }

    /// Waits until then.
    pub(super) async fn wait_until(&mut self, at: Instant) -> io::Result<()> {
        let alarm = match &mut self.alarm {
            Some(alarm) => alarm,
            none => {
                let told = |error: &io::Error| complain(&format!("an alarm: {error}"));
                none.insert(Alarm::new().inspect_err(told)?)
            }
        };
        alarm.wait_until(at).await;
        Ok(())
    }

    /// Reads more behind what is there; 0 is the end.
    async fn read(&mut self) -> io::Result<usize> {
        if self.at == self.received.len() {
            buffers::give_back(std::mem::take(&mut self.received));
            self.at = 0;
        }
        poll_fn(|cx| self.poll_read(cx)).await
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.received.is_empty() {
            self.received = buffers::lend();
        } else if self.received.len() == self.received.capacity() {
            self.received.drain(..self.at);
            self.at = 0;
            // Nothing, unless all of it is one head, which ends somewhere: it has its limits.
            self.received.reserve(1);
        }
        let read = self.stream.poll_read(cx, &mut self.received);
        if self.received.is_empty() {
            buffers::give_back(std::mem::take(&mut self.received));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_trickles_behind_its_head() {
        let part = ReplyPart { upto: 300, head: 100, trickle: Some(200) };
        let mut steps = Vec::new();
        let mut at = 0;
        while at < part.upto {
            steps.push((at, part.due(at).map_or(0, |due| due.as_millis())));
            at = part.next(at);
        }
        assert_eq!(steps[..4], [(0, 0), (100, 0), (110, 50), (120, 100)]);
        assert_eq!(steps.last(), Some(&(290, 950)));
        let slow = ReplyPart { trickle: Some(1), ..part };
        assert_eq!((slow.next(100), slow.due(103)), (101, Some(Duration::from_secs(3))));
        assert_eq!(ReplyPart::at_once(300).next(0), 300);
    }
}

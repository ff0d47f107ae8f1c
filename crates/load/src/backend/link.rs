//! A connection as bytes: reads heads and bodies, writes replies.
//!
//! It does not interpret them. A buffer is held only while there are bytes in it.

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
use super::complaint::complain;
use super::reply::{BackendReply, PIECES_MAX};

pub(super) enum EarlyEnd {
    /// The other end is gone.
    Gone,
    /// The other end sent something that is not HTTP, or too much; with the status of the reply.
    Refused(u16),
}

impl From<io::Error> for EarlyEnd {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<HeadError> for EarlyEnd {
    fn from(error: HeadError) -> Self {
        // 494 is nginx's own status; clients are sent 431.
        Self::Refused(if error.status() == 494 { 431 } else { error.status() })
    }
}

/// The part of a reply to write, and its rate.
#[derive(Clone, Copy)]
pub(super) struct ReplyPart {
    pub(super) upto: u64,
    /// The end of the head, ...
    pub(super) head: u64,
    /// ... after which this many bytes per second are written; `None` for no limit.
    pub(super) trickle: Option<u64>,
}

/// The number of writes per second of a trickling reply, if there are as many bytes.
const DRIPS: u64 = 20;

impl ReplyPart {
    /// Everything up to `upto`, at once.
    pub(super) fn at_once(upto: u64) -> Self {
        Self { upto, head: 0, trickle: None }
    }

    /// The end of the next write.
    fn next(self, at: u64) -> u64 {
        match self.trickle {
            Some(_) if at < self.head => self.head.min(self.upto),
            Some(rate) => at.saturating_add((rate / DRIPS).max(1)).min(self.upto),
            None => self.upto,
        }
    }

    /// When it is due, from the beginning of the reply; `None` for now.
    fn due(self, at: u64) -> Option<Duration> {
        let rate = self.trickle.filter(|_| at > self.head)?;
        Some(Duration::from_secs_f64((at - self.head) as f64 / rate as f64))
    }
}

pub(super) struct BackendLink {
    stream: Stream,
    /// The received bytes, and how many of them are consumed.
    received: Vec<u8>,
    at: usize,
    /// The last head. Its offsets refer to [`BackendLink::input`] until that is consumed.
    pub(super) head: RequestHead,
    /// Created at the first wait.
    alarm: Option<Alarm>,
}

impl BackendLink {
    pub(super) fn new(fd: OwnedFd) -> Self {
        let stream = Stream::new(fd);
        stream.set_nodelay();
        Self { stream, received: Vec::new(), at: 0, head: RequestHead::default(), alarm: None }
    }

    /// The received bytes that are not consumed.
    pub(super) fn input(&self) -> &[u8] {
        &self.received[self.at..]
    }

    pub(super) fn consume(&mut self, length: usize) {
        self.at += length;
    }

    /// Waits for a head. Returns its length, or `None` at the end of the connection.
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

    /// Reads a body to its end, and passes its bytes on.
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

    /// Writes a part of a reply and returns the number of bytes sent. `at_last` is called before
    /// the last byte is written, because the other end may act on it before this call returns.
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

    /// Writes all bytes.
    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let pieces = [IoSlice::new(bytes)];
            bytes = &bytes[poll_fn(|cx| self.stream.poll_write(cx, &pieces)).await?..];
        }
        Ok(())
    }

    /// Echoes input until the other end closes. `went` is called with numbers of bytes.
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

    /// Shuts down writing.
    pub(super) async fn end(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.stream.poll_shutdown(cx)).await
    }

    /// Makes dropping the connection a reset.
    pub(super) fn reset(&self) -> io::Result<()> {
        self.stream.reset_on_close()
    }

    pub(super) async fn wait_until(&mut self, at: Instant) -> io::Result<()> {
        let alarm = match &mut self.alarm {
            Some(alarm) => alarm,
            none => {
                let report = |error: &io::Error| complain(&format!("an alarm: {error}"));
                none.insert(Alarm::new().inspect_err(report)?)
            }
        };
        alarm.wait_until(at).await;
        Ok(())
    }

    /// Reads more input; returns 0 at the end.
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
            // The buffer only grows within a head, whose length is limited.
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

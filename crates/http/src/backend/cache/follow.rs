//! Following a reply that another request is fetching (`cache_read_while_writing`): what is in its
//! file already, then the rest as it comes.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use cache::FileHead;
use cache::progress::{FillFollower, FillProgress, FollowedPart};
use net::Timer;
use observe::{Errno, Level};

use super::super::head::{self, ReplySource};
use super::super::protocol::ReplyLength;
use super::ReplyRules;
use super::attempt::CacheAttempt;
use super::state::{CacheState, CacheStatus};
use crate::exchange::{Body, BodyError, BodyLog, BodyStream, Chunk, Exchange, FileSlice, Flow};

/// Bytes of the file that are given at once.
const PIECE_MAX: u64 = 256 * 1024;

impl CacheAttempt {
    /// Answers with a reply that is being fetched; `None`: it is not for this request.
    pub(super) fn follow(
        &self,
        x: &mut Exchange,
        rules: ReplyRules<'_>,
        progress: &Arc<FillProgress>,
    ) -> Option<Flow> {
        if progress.begun_ns() != self.store.zone.newest_purge_ns() {
            return None;
        }
        let read = FileHead::read(progress.head(), u64::MAX, &self.key).ok()?;
        let variant = || self.cache.variant_of(x, self.key.digest(), read.vary);
        if !read.vary.is_empty() && variant() != read.variant {
            return None;
        }
        let (start, end) = (usize::from(read.head_start), usize::from(read.body_start));
        let mut input = progress.head().get(start..end)?.to_vec();
        let mut head = std::mem::take(&mut x.backends.head);
        head.reset();
        let parsed = self.cache.terms.form.read(&mut input, &mut head, self.cache.is_to_head(x));
        x.backends.head = head;
        let (bytes, length) = parsed?;
        x.backends.note_head(&input[..bytes]);
        let (follower, file) = match progress.follow() {
            Ok(followed) => followed,
            Err(error) => {
                x.log(Level::Crit, format_args!("dup() failed{}", Errno(&error)));
                return None;
            }
        };
        CacheState::set(x, CacheStatus::Hit);
        if metrics::are_wanted() {
            let bytes = if let ReplyLength::Known(length) = length { length } else { 0 };
            self.store.counts.own().answered(CacheStatus::Hit, bytes);
        }
        x.action = "sending response to client";
        head::drop_duplicates(x);
        let mut buffering = true;
        let ReplyRules { conf, filter, rewriter } = rules;
        if let Some(flow) = head::apply_accel_fields(x, conf, rewriter, &mut buffering) {
            return Some(flow);
        }
        head::copy(x, conf, filter, rewriter, ReplySource::Cache);
        x.reply.content_length = match length {
            ReplyLength::Known(length) => Some(length),
            ReplyLength::None => head::announced_length(x),
            ReplyLength::Unknown => None,
        };
        x.reply.body = match length {
            ReplyLength::None => Body::Empty,
            _ => Body::Stream(Box::new(FollowedBody {
                file: Rc::new(file),
                at: end as u64,
                follower,
                // Whoever fetches has one of them; it ends first.
                timeout_ms: conf.read_timeout.0.saturating_mul(2),
                timer: Timer::new(),
                is_waiting: false,
            })),
        };
        Some(Flow::Done)
    }
}

struct FollowedBody {
    file: Rc<std::fs::File>,
    /// The position in the file.
    at: u64,
    follower: FillFollower,
    timeout_ms: u64,
    timer: Timer,
    is_waiting: bool,
}

impl BodyStream for FollowedBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        _: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let part = match self.follower.poll(cx, self.at) {
            Poll::Ready(part) => part,
            Poll::Pending => {
                if !std::mem::replace(&mut self.is_waiting, true) {
                    self.timer.set(self.timeout_ms);
                }
                return self.timer.poll(cx).map(|()| Err(BodyError::UpstreamTimedOut));
            }
        };
        self.is_waiting = false;
        Poll::Ready(match part {
            FollowedPart::UpTo(size) => {
                let (start, end) = (self.at, size.min(self.at + PIECE_MAX));
                self.at = end;
                Ok(Some(Chunk::File(FileSlice { file: self.file.clone(), start, end })))
            }
            FollowedPart::Whole => Ok(None),
            FollowedPart::Cut => Err(BodyError::UpstreamClosed),
        })
    }
}

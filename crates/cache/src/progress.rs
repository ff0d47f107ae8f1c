//! How far a reply has come that is being stored, for requests that follow it.
//!
//! Whoever stores it tells the length of the file after each write; those who follow read the file
//! up to there, through descriptors of their own, and wait for more.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A reply that is being stored and may be followed.
#[derive(Debug)]
pub struct FillProgress {
    file: File,
    /// What the file begins with, up to the body.
    head: Box<[u8]>,
    /// The newest purge when the request for it began.
    begun_ns: u64,
    is_followed: AtomicBool,
    state: Mutex<ProgressState>,
}

#[derive(Debug, Default)]
struct ProgressState {
    /// The bytes of the file that are there.
    size: u64,
    /// Whether it is whole; `None`: more follows.
    end: Option<bool>,
    waiting: HashMap<u64, Waker>,
    next_follower: u64,
}

/// The writing end. Dropping it before `complete` ends the reply as cut.
#[derive(Debug)]
pub struct ProgressWriter(Arc<FillProgress>);

/// The reading end.
#[derive(Debug)]
pub struct FillFollower {
    progress: Arc<FillProgress>,
    number: u64,
}

/// What there is from a position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowedPart {
    /// Bytes up to this position.
    UpTo(u64),
    /// Nothing, for the reply is complete.
    Whole,
    /// Nothing, for the rest did not come.
    Cut,
}

impl FillProgress {
    /// What the file begins with, up to the body.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The newest purge when the request for it began: it is not for requests after a later one.
    pub fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// Follows it, with the file to read.
    pub fn follow(self: &Arc<Self>) -> io::Result<(FillFollower, File)> {
        let file = self.file.try_clone()?;
        self.is_followed.store(true, Ordering::Relaxed);
        let mut state = self.state();
        state.next_follower += 1;
        let number = state.next_follower;
        drop(state);
        Ok((FillFollower { progress: self.clone(), number }, file))
    }

    fn change(&self, change: impl FnOnce(&mut ProgressState)) {
        let mut state = self.state();
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_values().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressWriter {
    /// A reply whose file begins with `head`. The head is only in memory so far.
    pub fn new(file: File, head: Box<[u8]>, begun_ns: u64) -> Self {
        let (is_followed, state) = (AtomicBool::new(false), Mutex::default());
        Self(Arc::new(FillProgress { file, head, begun_ns, is_followed, state }))
    }

    /// For those who follow.
    pub fn progress(&self) -> &Arc<FillProgress> {
        &self.0
    }

    /// Whether somebody follows, or has.
    pub fn is_followed(&self) -> bool {
        self.0.is_followed.load(Ordering::Relaxed)
    }

    /// The file has so many bytes now.
    pub fn advance(&self, size: u64) {
        self.0.change(|state| state.size = size);
    }

    /// The reply is complete.
    pub fn complete(self) {
        self.0.change(|state| state.end = Some(true));
    }
}

impl Drop for ProgressWriter {
    fn drop(&mut self) {
        self.0.change(|state| _ = state.end.get_or_insert(false));
    }
}

impl FillFollower {
    /// What there is from a position on; pending while there is nothing, but may be.
    pub fn poll(&self, cx: &mut Context<'_>, at: u64) -> Poll<FollowedPart> {
        let mut state = self.progress.state();
        if state.size > at {
            return Poll::Ready(FollowedPart::UpTo(state.size));
        }
        match state.end {
            Some(true) => return Poll::Ready(FollowedPart::Whole),
            Some(false) => return Poll::Ready(FollowedPart::Cut),
            None => {}
        }
        let waker = state.waiting.entry(self.number).or_insert_with(|| cx.waker().clone());
        waker.clone_from(cx.waker());
        Poll::Pending
    }
}

impl Drop for FillFollower {
    fn drop(&mut self) {
        let waker = self.progress.state().waiting.remove(&self.number);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_follow_are_told_of_each_piece_and_of_the_end() {
        let folder = testing::Folder::new();
        let file = || File::create(folder.join("a")).unwrap();
        let cx = &mut Context::from_waker(Waker::noop());
        let writer = ProgressWriter::new(file(), b"head".as_slice().into(), 0);
        let (follower, _) = writer.progress().follow().unwrap();
        assert!(writer.is_followed() && writer.progress().head() == b"head");
        assert_eq!(follower.poll(cx, 4), Poll::Pending);
        writer.advance(10);
        assert_eq!(follower.poll(cx, 4), Poll::Ready(FollowedPart::UpTo(10)));
        assert_eq!(follower.poll(cx, 10), Poll::Pending);
        writer.complete();
        assert_eq!(follower.poll(cx, 4), Poll::Ready(FollowedPart::UpTo(10)));
        assert_eq!(follower.poll(cx, 10), Poll::Ready(FollowedPart::Whole));
        let cut = ProgressWriter::new(file(), Box::default(), 0);
        let (follower, _) = cut.progress().follow().unwrap();
        assert_eq!(follower.poll(cx, 0), Poll::Pending);
        drop(cut);
        assert_eq!(follower.poll(cx, 0), Poll::Ready(FollowedPart::Cut));
    }
}

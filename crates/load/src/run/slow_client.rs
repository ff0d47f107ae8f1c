//! A client that reads its replies slowly, as one at the end of a slow line does.
//!
//! It has a small receive buffer, so that the server cannot hand over a reply at once, and no
//! timeout. Between turns it rests.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::{Duration, Instant};

use net::{Address, Stream, Timer};

use super::background_exchange::{IncomingReply, send};
use super::failure::RunFailure;
use super::opener::Opener;
use super::plan::BackgroundPlan;
use super::shared::ThreadShared;

/// The receive buffer of a socket, which the kernel doubles.
const RECEIVE_BUFFER: usize = 16 * 1024;
/// The reads of a second.
const READS_PER_SECOND: u64 = 20;
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct SlowClient {
    shared: Rc<ThreadShared>,
    opener: Opener,
    stream: Option<Stream>,
    /// Set while a connection is opened; replies have no timeout.
    timer: Timer,
    /// When the next bytes may be read.
    next_read: Instant,
}

impl SlowClient {
    /// Client `number`, counted over all threads.
    pub(super) fn new(shared: Rc<ThreadShared>, address: Rc<Address>, number: u64) -> Self {
        shared.pace.add_client();
        let opener = Opener::new(Rc::clone(&shared), address, number);
        Self {
            opener: opener.with_receive_buffer(RECEIVE_BUFFER),
            stream: None,
            timer: Timer::new(),
            next_read: Instant::now(),
            shared,
        }
    }

    /// Requests one reply after the other until it is stopped.
    pub(super) async fn run(mut self) {
        let opened = self.open().await;
        self.shared.pace.done();
        self.note(opened).await;
        loop {
            self.measured().await;
            let done = self.exchange().await;
            self.note(done).await;
        }
    }

    async fn note(&mut self, done: Result<(), RunFailure>) {
        if done.is_err() {
            self.stream = None;
            self.shared.count_beside(|stats| stats.slow.failed += 1);
            net::sleep(PAUSE).await;
        }
    }

    async fn measured(&self) {
        poll_fn(|cx| self.shared.background.poll_measured(cx)).await;
    }

    async fn open(&mut self) -> Result<(), RunFailure> {
        let _slot = poll_fn(|cx| self.shared.background.poll_slot(cx)).await;
        self.timer.set(self.shared.plan.timeout_ms());
        let opened = self.opener.open(&self.timer).await;
        self.timer.clear();
        self.stream = Some(opened?);
        Ok(())
    }

    async fn exchange(&mut self) -> Result<(), RunFailure> {
        if self.stream.is_none() {
            self.open().await?;
        }
        let shared = Rc::clone(&self.shared);
        let plan: &BackgroundPlan = &shared.plan.background;
        let (rate, request) = (plan.slow_bytes_per_s, &plan.request);
        let most = (rate / READS_PER_SECOND).max(1) as usize;
        let mut stream = self.stream.take().ok_or(RunFailure::Closed)?;
        send(&mut stream, request, &self.timer).await?;
        let mut reply = IncomingReply::default();
        loop {
            net::sleep(self.next_read.saturating_duration_since(Instant::now())).await;
            self.measured().await;
            let (read, is_kept) = reply.read(&mut stream, request, most, &self.timer).await?;
            let time = Duration::from_secs_f64(read as f64 / rate as f64);
            self.next_read = self.next_read.max(Instant::now()) + time;
            shared.count_beside(|stats| stats.slow.bytes += read as u64);
            if let Some(is_kept) = is_kept {
                shared.count_beside(|stats| stats.slow.replies += 1);
                self.stream = Some(stream).filter(|_| is_kept);
                return Ok(());
            }
        }
    }
}

//! An idle connection: it has had one reply, and stays open in silence.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use net::{Address, Stream, Timer};

use super::background_exchange::{IncomingReply, send};
use super::failure::RunFailure;
use super::opener::Opener;
use super::plan::BackgroundPlan;
use super::shared::ThreadShared;

/// The pause before a connection is opened again.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct IdleClient {
    shared: Rc<ThreadShared>,
    opener: Opener,
}

impl IdleClient {
    /// Client `number`, counted over all threads.
    pub(super) fn new(shared: Rc<ThreadShared>, address: Rc<Address>, number: u64) -> Self {
        shared.pace.add_client();
        Self { opener: Opener::new(Rc::clone(&shared), address, number), shared }
    }

    /// Keeps a connection open until it is stopped.
    pub(super) async fn run(self) {
        let shared = &self.shared;
        let background = &shared.background;
        let mut opened = Box::pin(self.open()).await;
        shared.pace.done();
        loop {
            match opened {
                Some(Ok(mut stream)) => {
                    poll_fn(|cx| stream.poll_disturbed(cx)).await;
                    background.note_closed();
                    shared.count_beside(|stats| stats.idle.closed += 1);
                }
                Some(Err(_)) => shared.count_beside(|stats| stats.idle.failed += 1),
                None => return,
            }
            net::sleep(PAUSE).await;
            opened = Box::pin(self.open()).await;
        }
    }

    /// Opens a connection and waits for the reply to one request; `None`: nobody can any more.
    async fn open(&self) -> Option<Result<Stream, RunFailure>> {
        let background = &self.shared.background;
        let _slot = poll_fn(|cx| background.poll_slot(cx)).await;
        if background.has_given_up() {
            return None;
        }
        let opened = self.open_now().await;
        background.note_opened(opened.is_ok());
        Some(opened)
    }

    async fn open_now(&self) -> Result<Stream, RunFailure> {
        let plan: &BackgroundPlan = &self.shared.plan.background;
        let timer = Timer::new();
        timer.set(self.shared.plan.timeout_ms());
        let mut stream = self.opener.open(&timer).await?;
        send(&mut stream, &plan.request, &timer).await?;
        let mut reply = IncomingReply::default();
        loop {
            match reply.read(&mut stream, &plan.request, usize::MAX, &timer).await? {
                (_, Some(true)) => return Ok(stream),
                (_, Some(false)) => return Err(RunFailure::Closed),
                (_, None) => {}
            }
        }
    }
}

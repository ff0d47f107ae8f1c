//! A client: one connection at a time, one turn at a time.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use net::{Address, Timer};

use super::failure::{RunFailure, rest_after};
use super::link::{ClientLink, LinkProgress, PendingRequests};
use super::opener::Opener;
use super::pace::{PaceClient, SendPermit};
use super::shared::ThreadShared;
use crate::script::ScriptError;

pub(super) struct LoadClient {
    shared: Rc<ThreadShared>,
    client: Rc<PaceClient>,
    opener: Opener,
    link: ClientLink,
    timer: Timer,
}

enum TurnError {
    /// The connection or a request failed.
    Failure(RunFailure),
    Script(ScriptError),
}

impl LoadClient {
    /// Client `number`, counted over all threads.
    pub(super) fn new(shared: Rc<ThreadShared>, address: Rc<Address>, number: u64) -> Self {
        Self {
            client: shared.pace.add_client(),
            opener: Opener::new(Rc::clone(&shared), address, number),
            link: ClientLink::default(),
            timer: Timer::new(),
            shared,
        }
    }

    /// Runs turns until it is stopped.
    pub(super) async fn run(mut self) {
        if self.shared.plan.per_connection.is_none() {
            self.set_timer();
            if let Err(failure) = self.open().await {
                self.fail(failure, 0);
                rest_after(failure).await;
            }
        }
        self.shared.pace.done();
        loop {
            let turn = self.turn().await;
            match self.take(turn).await {
                Ok(()) => self.shared.pace.done(),
                Err(TurnError::Failure(failure)) => {
                    self.fail(failure, turn.requests);
                    self.shared.pace.done();
                    rest_after(failure).await;
                }
                Err(TurnError::Script(error)) => return self.shared.halt(Err(error)),
            }
        }
    }

    /// Waits for a turn. A connection that the server closes meanwhile is reopened when it is
    /// needed.
    async fn turn(&mut self) -> SendPermit {
        poll_fn(|cx| {
            let turn = self.shared.pace.poll_turn(&self.client, cx);
            if turn.is_pending() {
                self.link.watch(cx);
            }
            turn
        })
        .await
    }

    /// Runs a turn: sends its requests and counts their replies.
    async fn take(&mut self, turn: SendPermit) -> Result<(), TurnError> {
        // Time before the request is that of the script and the server.
        if let Some(intended) = turn.intended.filter(|_| turn.in_time) {
            self.shared.is_late(intended.elapsed());
        }
        self.pause().await?;
        self.set_timer();
        let mut begun = turn.intended.unwrap_or_else(Instant::now);
        if !self.link.is_open() {
            self.reopen().await.map_err(TurnError::Failure)?;
            // As in wrk, the time of opening a persistent connection does not count.
            if turn.intended.is_none() && self.shared.plan.per_connection.is_none() {
                begun = Instant::now();
            }
        }
        self.exchange(begun, turn.requests).await?;
        if self.shared.plan.per_connection.is_some_and(|most| self.link.requests() >= most) {
            self.link.close();
        }
        Ok(())
    }

    /// Waits for the script's delay.
    async fn pause(&self) -> Result<(), TurnError> {
        if let Some(script) = &self.shared.script {
            let delay = script.delay().map_err(TurnError::Script)?;
            if !delay.is_zero() {
                net::sleep(delay).await;
            }
        }
        Ok(())
    }

    async fn exchange(&mut self, begun: Instant, requests: u64) -> Result<(), TurnError> {
        let exchange = self.link.begin(&self.shared, begun, requests);
        let mut exchange = exchange.map_err(TurnError::Script)?;
        // Every iteration answers a request.
        while let LinkProgress::Unanswered =
            self.poll_exchange(&mut exchange).await.map_err(TurnError::Failure)?
        {
            self.reopen().await.map_err(TurnError::Failure)?;
            self.link.resume(&mut exchange, &self.shared);
        }
        Ok(())
    }

    async fn poll_exchange(
        &mut self,
        exchange: &mut PendingRequests,
    ) -> Result<LinkProgress, RunFailure> {
        let Self { link, shared, timer, .. } = self;
        poll_fn(|cx| match link.poll(exchange, shared, cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => timer.poll(cx).map(|()| Err(RunFailure::Timeout)),
        })
        .await
    }

    /// Opens a connection within the time of a turn. With `--requests-per-connection`, it does not
    /// wait until a connection without TLS is established: the first request finds out.
    async fn reopen(&mut self) -> Result<(), RunFailure> {
        if self.shared.plan.per_connection.is_none() || self.opener.is_secure() {
            return self.open().await;
        }
        self.link.open(self.opener.begin()?);
        Ok(())
    }

    async fn open(&mut self) -> Result<(), RunFailure> {
        let stream = self.opener.open(&self.timer).await?;
        self.link.open(stream);
        Ok(())
    }

    /// Counts a failure, for the requests in progress or those that were not sent.
    fn fail(&mut self, failure: RunFailure, not_begun: u64) {
        let lost = match self.link.close() {
            0 => not_begun,
            lost => lost,
        };
        failure.count(lost, &mut self.shared.tally.borrow_mut().errors);
    }

    fn set_timer(&self) {
        self.timer.set(self.shared.plan.timeout_ms());
    }
}

//! The unsigned half of a conversation: requests with a budget, waits, and what the driver does.

use alloc::string::String;
use alloc::vec::Vec;

use super::challenge::AcmeChallenge;
use super::failure::{AcmeActivity, AcmeFailure, AcmeFailureKind};
use super::reply::{AcmeReply, REPLY_BYTES_MAX};
use super::run::DriverLine;
use super::step::{AcmeInput, AcmeRecord, AcmeRequest, AcmeStep};
use crate::Method;

/// The most requests of a run, without those for each name: twice what a run needs that polls as
/// often as it may.
pub const REQUESTS_MAX: usize = 120;
/// The most requests for each name on top of them: twice what a name needs.
const REQUESTS_PER_NAME_MAX: usize = 6;

/// The most polls of an order, before it is ready and again before it is valid.
const POLLS_MAX: u32 = 24;
/// The most seconds of waiting between those polls.
const POLL_WAIT_S_MAX: u64 = 600;
/// The longest pause that the run makes unless the server asks for more.
const POLL_PAUSE_S_MAX: u64 = 30;
/// The most failed polls in a row.
const POLL_FAILURES_MAX: u32 = 3;

pub(super) struct Conversation {
    line: DriverLine,
    requests_left: usize,
}

impl Conversation {
    pub(super) fn new(line: DriverLine, names: usize) -> Self {
        Self { line, requests_left: REQUESTS_MAX + REQUESTS_PER_NAME_MAX * names }
    }

    /// The reply, whatever its status.
    pub(super) async fn send(
        &mut self,
        request: AcmeRequest,
        activity: AcmeActivity,
    ) -> Result<AcmeReply, AcmeFailure> {
        self.requests_left = self.requests_left.checked_sub(1).ok_or_else(|| {
            AcmeFailure::new(AcmeFailureKind::TooManyRequests, activity, String::new())
        })?;
        match self.line.ask(AcmeStep::Send(request)).await {
            AcmeInput::Reply(reply) if reply.body.len() <= REPLY_BYTES_MAX => Ok(reply),
            AcmeInput::Reply(_) => {
                Err(AcmeFailure::new(AcmeFailureKind::InvalidReply, activity, "too large a body"))
            }
            AcmeInput::Failed(why) => {
                Err(AcmeFailure::new(AcmeFailureKind::Unreachable, activity, why))
            }
            AcmeInput::Done => unreachable!("a request has a reply or fails"),
        }
    }

    pub(super) async fn get(
        &mut self,
        url: &str,
        activity: AcmeActivity,
    ) -> Result<AcmeReply, AcmeFailure> {
        let (url, body) = (url.into(), Vec::new());
        let request = AcmeRequest { method: Method::Get, url, content_type: None, body };
        self.send(request, activity).await
    }

    pub(super) async fn publish(&self, challenges: &[AcmeChallenge]) -> Result<(), AcmeFailure> {
        let outcome = self.line.ask(AcmeStep::Publish(challenges.to_vec())).await;
        done(outcome, AcmeFailureKind::Publication, AcmeActivity::Publication)
    }

    pub(super) async fn withdraw(&self, challenges: Vec<AcmeChallenge>) {
        self.line.ask(AcmeStep::Withdraw(challenges)).await;
    }

    pub(super) async fn store(
        &self,
        record: AcmeRecord,
        activity: AcmeActivity,
    ) -> Result<(), AcmeFailure> {
        let outcome = self.line.ask(AcmeStep::Store(record)).await;
        done(outcome, AcmeFailureKind::Storage, activity)
    }
}

fn done(
    outcome: AcmeInput,
    kind: AcmeFailureKind,
    activity: AcmeActivity,
) -> Result<(), AcmeFailure> {
    match outcome {
        AcmeInput::Failed(why) => Err(AcmeFailure::new(kind, activity, why)),
        _ => Ok(()),
    }
}

/// The polls of one resource.
pub(super) struct Polls {
    activity: AcmeActivity,
    count: u32,
    waited_s: u64,
    /// In a row.
    failures: u32,
}

impl Polls {
    pub(super) fn new(activity: AcmeActivity) -> Self {
        Self { activity, count: 0, waited_s: 0, failures: 0 }
    }

    /// Waits before the next poll. Fails when there have been enough.
    pub(super) async fn pause(
        &mut self,
        conversation: &Conversation,
        retry_after_s: Option<u64>,
    ) -> Result<(), AcmeFailure> {
        let pause_s = retry_after_s.unwrap_or(u64::from(self.count) + 1).max(1);
        let pause_s = if retry_after_s.is_some() { pause_s } else { pause_s.min(POLL_PAUSE_S_MAX) };
        self.waited_s = self.waited_s.saturating_add(pause_s);
        self.count += 1;
        if self.count > POLLS_MAX || self.waited_s > POLL_WAIT_S_MAX {
            let kind = AcmeFailureKind::StillProcessing;
            let detail = alloc::format!("not done after {} polls", self.count - 1);
            let failure = AcmeFailure::new(kind, self.activity, detail);
            return Err(AcmeFailure { retry_after_s, ..failure });
        }
        conversation.line.ask(AcmeStep::Wait(pause_s)).await;
        Ok(())
    }

    /// A poll has failed. Fails, too, unless the next one may well succeed.
    pub(super) fn survive(&mut self, failure: AcmeFailure) -> Result<(), AcmeFailure> {
        self.failures += 1;
        let may_pass =
            matches!(failure.kind, AcmeFailureKind::Server | AcmeFailureKind::Unreachable);
        if may_pass && self.failures < POLL_FAILURES_MAX { Ok(()) } else { Err(failure) }
    }

    pub(super) fn succeed(&mut self) {
        self.failures = 0;
    }
}

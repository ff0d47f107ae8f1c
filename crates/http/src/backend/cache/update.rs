//! Updates of expired replies that no client waits for.
//!
//! The update is a subrequest for the same resource, which belongs to the worker: it neither holds
//! the client's connection nor ends with it.

use super::ReplyRules;
use super::attempt::CacheAttempt;
use super::state::CacheStatus;
use crate::exchange::{Exchange, FeatureState, Flow};

/// The update that a subrequest is for.
#[derive(Default)]
pub(super) struct CacheUpdate(Option<Box<CacheAttempt>>);

impl FeatureState for CacheUpdate {
    fn clear(&mut self) {
        self.0 = None;
    }
}

/// Takes the update that the exchange is for, if it is for one.
pub(super) fn take(x: &mut Exchange) -> Option<Box<CacheAttempt>> {
    x.states.find::<CacheUpdate>()?;
    x.states.of::<CacheUpdate>().0.take()
}

/// Answers with the expired reply, whose head was parsed, and begins to update it.
pub(super) fn begin(x: &mut Exchange, rules: ReplyRules<'_>, attempt: Box<CacheAttempt>) -> Flow {
    let (Some(stale), Some(mut copy)) = (attempt.stale.clone(), x.copy_of_request()) else {
        return Flow::Status(500);
    };
    let store = attempt.store.clone();
    copy.x.states.of::<CacheUpdate>().0 = Some(attempt);
    x.ask_backend_in_background(copy);
    stale.answer(x, rules, &store, CacheStatus::Stale)
}

//! Changes at run time: the master decides on them, and tells every worker process.

use std::collections::BTreeMap;
use std::time::Duration;

use session::steering::{SteeringCall, SteeringReply, SteeringRequest};

use super::Master;
use super::event::MasterEvent;
use super::reload::{PendingReload, PendingSockets};
use crate::event::later;
use crate::ipc::{Message, MessageKind};
use crate::steering::{
    AcceptedChange, AcceptedWhat, StateWrite, Steering, StoredState, WorkerChange, apply_to_table,
    write_all,
};

/// How long worker processes may take to make a change before it is answered as pending.
const CHANGE_MAX: Duration = Duration::from_secs(5);

/// The master's part of changes.
#[derive(Default)]
pub(super) struct MasterSteering {
    pub(super) steering: Steering,
    /// The number of the last change sent to worker processes.
    last_change: u64,
    /// Changes that worker processes have not made yet, by the number of the last one.
    unmade: BTreeMap<u64, UnmadeChanges>,
}

/// Changes that were sent together.
struct UnmadeChanges {
    /// The worker processes that have not reported.
    awaited: Vec<i32>,
    /// Each with the number of its last part.
    changes: Vec<(u64, AcceptedChange)>,
    /// The number of the last change that a worker process has reported.
    reported: u64,
}

impl UnmadeChanges {
    /// Answers them. What only worker processes keep is lost if none of them has made it: each may
    /// have ended before.
    fn answer(self) {
        for (last, mut change) in self.changes {
            if last > self.reported && change.is_kept_by_workers() {
                change.not_made();
            }
            change.answer(self.awaited.len());
        }
    }
}

impl Master {
    /// Takes a request of the API about groups of servers or tables.
    pub(super) fn steer(&mut self, call: SteeringCall) {
        if self.upgrade.is_running() {
            // Another master owns the state files now. The sender ends, and with it the wait.
            return drop(call);
        }
        let (sites, rosters) = (&self.plan.loaded.sites, &self.plan.rosters);
        let writes = self.changes.steering.call(call, sites, rosters);
        self.store(writes);
    }

    /// Takes the request of a worker.
    pub(super) fn steer_for(&mut self, pid: i32, message: &Message) {
        let child = self.children.iter().find(|child| child.pid == pid);
        let request = SteeringRequest::from_bytes(&message.bytes);
        let Some((child, request)) = child.zip(request) else { return };
        let (reply, mut answers) = net::mailbox::<SteeringReply>();
        let (outbox, number) = (child.outbox(), message.number);
        net::spawn(async move {
            let unanswered = SteeringReply { status: 503, ..SteeringReply::default() };
            let reply = answers.next().await.unwrap_or(unanswered);
            let answer = Message::new(MessageKind::Answer, number);
            outbox.send(Message { bytes: reply.to_bytes(), ..answer });
        });
        self.steer(SteeringCall { request, reply });
    }

    /// Writes state files on another thread.
    fn store(&self, writes: Option<Vec<StateWrite>>) {
        let Some(writes) = writes else { return };
        let events = self.events.clone();
        net::spawn(async move { events.send(MasterEvent::Stored(write_all(writes).await)) });
    }

    /// Makes the changes whose state files are written.
    pub(super) fn state_stored(&mut self, stored: Vec<StoredState>) {
        let changes = self.changes.steering.stored(stored);
        let before = self.changes.last_change;
        let mut made = Vec::with_capacity(changes.len());
        for change in changes {
            change.log();
            change.whats.iter().for_each(|what| self.apply(what));
            made.push((self.changes.last_change, change));
        }
        let (number, changes) = (self.changes.last_change, made);
        if number == before {
            changes.into_iter().for_each(|(_, change)| change.answer(0));
        } else {
            let awaited = self.children.iter().map(|child| child.pid).collect();
            let unmade = UnmadeChanges { awaited, changes, reported: before };
            self.changes.unmade.insert(number, unmade);
            later(&self.events, CHANGE_MAX, MasterEvent::ChangeOverdue(number));
            self.answer_made();
        }
        self.change_binary_if_wanted();
        self.decide_changes();
    }

    /// Decides what waits, unless state files are being written.
    pub(super) fn decide_changes(&mut self) {
        if self.upgrade.is_running() {
            return self.changes.steering.drop_waiting();
        }
        let (sites, rosters) = (&self.plan.loaded.sites, &self.plan.rosters);
        let writes = self.changes.steering.next(sites, rosters);
        self.store(writes);
    }

    /// Makes a change in the current configuration, in one that is to come, and everywhere else.
    pub(super) fn apply(&mut self, what: &AcceptedWhat) {
        let opening = self.opening.as_mut().map(PendingSockets::plan_mut);
        let pending = self.pending.as_mut().map(PendingReload::plan_mut);
        for plan in [Some(&mut self.plan), opening, pending].into_iter().flatten() {
            plan.rosters.apply(what, &plan.loaded.sites);
            if let AcceptedWhat::Workers(WorkerChange::Keyval(change)) = what {
                apply_to_table(change, &plan.loaded.sites);
            }
        }
        let AcceptedWhat::Workers(change) = what else { return };
        self.changes.last_change += 1;
        let number = self.changes.last_change;
        let bytes = change.to_bytes();
        for child in &self.children {
            let bytes = bytes.clone();
            child.send(Message { bytes, ..Message::new(MessageKind::Change, number) });
        }
    }

    /// Called when a worker process has made a change that does not outlive it: `why` is not
    /// empty.
    pub(super) fn change_not_kept(&mut self, number: u64, why: &[u8]) {
        if why.is_empty() {
            return;
        }
        let sent_together = self.changes.unmade.range_mut(number..).next();
        let changes = sent_together.into_iter().flat_map(|(_, unmade)| &mut unmade.changes);
        let mut from = changes.skip_while(|(last, _)| *last < number);
        if let Some((_, change)) = from.next() {
            change.not_kept(&String::from_utf8_lossy(why));
        }
    }

    /// Called when a worker process has made the changes up to a number.
    pub(super) fn change_made(&mut self, pid: i32, number: u64) {
        for unmade in self.changes.unmade.values_mut() {
            unmade.reported = unmade.reported.max(number);
        }
        self.await_no_more(pid, number);
    }

    fn await_no_more(&mut self, pid: i32, number: u64) {
        for (_, unmade) in self.changes.unmade.range_mut(..=number) {
            unmade.awaited.retain(|awaited| *awaited != pid);
        }
        self.answer_made();
    }

    /// Called when a worker process has ended.
    pub(super) fn makes_no_change(&mut self, pid: i32) {
        self.await_no_more(pid, u64::MAX);
    }

    fn answer_made(&mut self) {
        let is_made = |_: &u64, unmade: &mut UnmadeChanges| unmade.awaited.is_empty();
        let made: Vec<_> = self.changes.unmade.extract_if(.., is_made).collect();
        made.into_iter().for_each(|(_, made)| made.answer());
    }

    /// Answers changes that some worker process has not made in time. It will: they are queued.
    pub(super) fn change_overdue(&mut self, number: u64) {
        if let Some(unmade) = self.changes.unmade.remove(&number) {
            unmade.answer();
        }
    }
}

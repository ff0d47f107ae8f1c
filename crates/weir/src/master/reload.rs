//! Reading the configuration again: it becomes current once a worker process serves it.
//!
//! ```text
//! HUP -> read -> Opening: an address is in use, and tried again
//!          `-------+-> Pending: sent to the worker process, or to a new one --> current
//!                         `--no report in time--> Pending, with a new worker process
//! ```
//!
//! If any step fails, the current configuration stays in use and no client notices.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use conf::Recorder;
use net::channel;
use net::signals::SIGKILL;
use observe::{Errno, Level};

use super::child::{self, Child, ChildStage};
use super::event::MasterEvent;
use super::{Master, WorkerPlan};
use crate::config_snapshot::{ConfigSnapshot, SlotEntry};
use crate::event::later;
use crate::ipc::{Message, MessageKind};
use crate::load::{self, LoadedConfig};
use crate::log::alert;
use crate::messages::Reported;
use crate::settings::ProgramSettings;
use crate::sockets::{PAUSE, Prepared, TRIES_MAX};
use crate::steering::WorkerChange;
use crate::subsystems::Sites;
use crate::{pid_file, ready, steering};

/// How long a worker process may take to switch to a configuration before this is logged.
const WAIT_UNTOLD_MAX: Duration = Duration::from_secs(5);
/// A worker process reads the same configuration as the master, and may take this many times as
/// long, in addition to `worker_reload_timeout`.
const READING_FACTOR: u32 = 10;

/// A configuration that was read.
pub(super) struct Candidate {
    number: u64,
    plan: WorkerPlan,
    /// How long reading it took.
    reading: Duration,
}

/// A configuration that waits for an address.
pub(super) struct PendingSockets {
    candidate: Candidate,
    tries_left: u32,
}

/// A configuration that is about to become current.
pub(super) struct PendingReload {
    candidate: Candidate,
    /// The worker process that is to serve it.
    pid: i32,
    /// Whether that process was started for it.
    fresh: bool,
    /// HUP came again meanwhile.
    again: bool,
}

impl PendingSockets {
    pub(super) fn plan_mut(&mut self) -> &mut WorkerPlan {
        &mut self.candidate.plan
    }
}

impl PendingReload {
    pub(super) fn plan_mut(&mut self) -> &mut WorkerPlan {
        &mut self.candidate.plan
    }
}

impl Candidate {
    /// How long a worker process may take to switch to it.
    fn wait_max(&self) -> Duration {
        let settings = &self.plan.loaded.settings;
        let timeout = Duration::from_millis(settings.worker_reload_timeout_ms);
        timeout.saturating_add(self.reading.saturating_mul(READING_FACTOR))
    }

    fn pid_file(&self) -> &std::path::Path {
        &self.plan.loaded.settings.pid
    }
}

impl Master {
    /// Reads the configuration, and sends it to the worker process or to a new one.
    pub(super) fn reload(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.again = true;
            return;
        }
        // The files as they are now replace a configuration that waits for an address.
        if self.opening.take().is_some() {
            self.sockets.roll_back();
        }
        self.calls.reload_begins();
        self.service.reload_begins(self.number);
        // Otherwise the error has been reported, and nothing has changed.
        if let Ok(candidate) = self.read_again() {
            self.open(candidate, TRIES_MAX - 1);
        }
    }

    fn read_again(&mut self) -> Result<Candidate, Reported> {
        let begun = Instant::now();
        let mut files = Recorder::new(self.plan.origin.files());
        let WorkerPlan { origin, loaded, .. } = &self.plan;
        let loaded = load::load_after(&loaded.zones, origin, &mut files)?;
        ready::make_ready(&loaded, origin)?;
        self.last_number += 1;
        let (origin, recording) = (self.plan.origin.clone(), files.to_bytes());
        let before = &self.plan;
        let rosters = before.rosters.carried_over(&before.loaded.sites, &loaded.sites);
        let plan = WorkerPlan { origin, loaded, recording, rosters };
        Ok(Candidate { number: self.last_number, plan, reading: begun.elapsed() })
    }

    fn open(&mut self, candidate: Candidate, tries_left: u32) {
        let loaded = &candidate.plan.loaded;
        let workers = loaded.settings.worker_processes;
        match self.sockets.prepare(&loaded.sites.listens(), workers, tries_left) {
            Prepared::Ready => self.opened(candidate),
            Prepared::Taken => {
                later(&self.events, PAUSE, MasterEvent::TryAgain(candidate.number));
                self.opening = Some(PendingSockets { candidate, tries_left });
            }
            Prepared::Failed => {}
        }
    }

    /// Tries again to get the addresses of a configuration.
    pub(super) fn try_again(&mut self, number: u64) {
        let waits = |opening: &mut PendingSockets| opening.candidate.number == number;
        if let Some(PendingSockets { candidate, tries_left }) = self.opening.take_if(waits) {
            self.open(candidate, tries_left.saturating_sub(1));
        }
    }

    fn opened(&mut self, candidate: Candidate) {
        let (old, new) = (&self.plan.loaded.settings.pid, candidate.pid_file());
        if old != new {
            if pid_file::write(new, &self.plan.origin.defaults).is_err() {
                return self.sockets.roll_back();
            }
            pid_file::remove(old);
        }
        self.hand_over(candidate);
    }

    fn hand_over(&mut self, candidate: Candidate) {
        let alive = self.children.iter().find(|child| child.stage != ChildStage::Leaving);
        let Some(child) = alive.filter(|_| can_change_in_place(&self.plan, &candidate.plan)) else {
            return self.hand_to_new(candidate, false);
        };
        let held = self.sockets.numbers(&self.plan.loaded.sites.listens());
        let known = Some(&self.plan.loaded.sites);
        match self.pack_new(&candidate, known, |slot| !held.contains(&slot)) {
            Some(message) => {
                child.send(message);
                let pid = child.pid;
                self.await_report(PendingReload { candidate, pid, fresh: false, again: false });
            }
            None => self.give_up(&candidate),
        }
    }

    /// Sends a configuration to a new worker process, which replaces any other.
    fn hand_to_new(&mut self, candidate: Candidate, again: bool) {
        let message = self.pack_new(&candidate, None, |_| true);
        match message.and_then(|message| self.spawn(&candidate.plan, message)) {
            Some(child) => {
                let pid = child.pid;
                self.children.push(child);
                self.await_report(PendingReload { candidate, pid, fresh: true, again });
            }
            None => self.give_up(&candidate),
        }
    }

    /// Packs a configuration; `known`: the one that the worker process serves.
    fn pack_new(
        &self,
        candidate: &Candidate,
        known: Option<&Sites>,
        is_new: impl Fn(u32) -> bool,
    ) -> Option<Message> {
        let wanted = candidate.plan.loaded.sites.listens();
        let entries = self.sockets.entries(&wanted, is_new);
        let copies = self.sockets.copies(&entries);
        let mut changes = candidate.plan.rosters.changes();
        changes.extend(steering::table_snapshots(&candidate.plan.loaded.sites, known));
        pack(&candidate.plan, candidate.number, &changes, entries, copies)
    }

    fn await_report(&mut self, pending: PendingReload) {
        let Candidate { number, .. } = pending.candidate;
        let first = pending.candidate.wait_max().min(WAIT_UNTOLD_MAX);
        later(&self.events, first, MasterEvent::StillPending(number, first));
        self.pending = Some(pending);
    }

    /// Called when a worker process serves a generation.
    pub(super) fn reload_done(&mut self, number: u64) {
        let Some(pending) = self.take_pending(number) else { return };
        let PendingReload { candidate: Candidate { plan, .. }, pid, fresh, again } = pending;
        self.sockets.keep(&plan.loaded.sites.listens());
        ready::use_log(plan.loaded.main_log.clone());
        self.plan = plan;
        net::memory::give_back();
        self.number = number;
        self.calls.reload_done();
        self.changes.steering.new_files();
        self.decide_changes();
        self.open_control_socket(false);
        self.not_accepting = false;
        for child in self.children.iter_mut().filter(|child| fresh && child.pid != pid) {
            if child.stage != ChildStage::Leaving {
                child.stage = ChildStage::Leaving;
                child.send(Message::new(MessageKind::Quit, number));
            }
        }
        if again {
            self.reload();
        }
    }

    /// Called when a worker process cannot serve a generation.
    pub(super) fn reload_failed(&mut self, number: u64) {
        let Some(pending) = self.take_pending(number) else { return };
        self.give_up(&pending.candidate);
        if pending.again {
            self.reload();
        }
    }

    /// Also reopens the logs of a configuration that is not in use yet.
    pub(super) fn reopen_logs_to_come(&self) {
        let reopen = |candidate: &Candidate| {
            let LoadedConfig { log_files, settings, .. } = &candidate.plan.loaded;
            ready::reopen(log_files, settings.user.as_ref());
        };
        if let Some(PendingSockets { candidate, .. }) = &self.opening {
            reopen(candidate);
        }
        let Some(PendingReload { candidate, pid, .. }) = &self.pending else { return };
        reopen(candidate);
        let (number, descriptors) =
            (candidate.number, child::copies(&candidate.plan.loaded.log_files));
        if let Some(child) = self.children.iter().find(|child| child.pid == *pid) {
            child.send(Message { descriptors, ..Message::new(MessageKind::Reopen, number) });
        }
    }

    fn take_pending(&mut self, number: u64) -> Option<PendingReload> {
        self.pending.take_if(|pending| pending.candidate.number == number)
    }

    /// Restores the state before the configuration was read.
    fn give_up(&mut self, candidate: &Candidate) {
        self.sockets.roll_back();
        let (old, new) = (&self.plan.loaded.settings.pid, candidate.pid_file());
        if old != new && pid_file::write(old, &self.plan.origin.defaults).is_ok() {
            pid_file::remove(new);
        }
    }

    /// Gives up the configuration that an ended worker process was to serve. Returns whether the
    /// process was started only for that.
    pub(super) fn reload_failed_with(&mut self, child: &Child) -> bool {
        let pending = self.pending.as_ref().filter(|pending| pending.pid == child.pid);
        let Some((number, fresh)) = pending.map(|p| (p.candidate.number, p.fresh)) else {
            return false;
        };
        self.reload_failed(number);
        fresh
    }

    /// Called when a worker process has not switched to a configuration for this long.
    pub(super) fn still_pending(&mut self, number: u64, waited: Duration) {
        let Some(pending) = self.pending.as_ref().filter(|p| p.candidate.number == number) else {
            return;
        };
        let (pid, wait_max) = (pending.pid, pending.candidate.wait_max());
        if waited >= wait_max {
            return self.replace_hung(number);
        }
        let text = format_args!(
            "worker process {pid} has not switched to the new configuration after \
             {waited:?}; it counts as hung after {wait_max:.0?}"
        );
        observe::log(Level::Error, text);
        later(&self.events, wait_max - waited, MasterEvent::StillPending(number, wait_max));
    }

    /// Starts a new worker process in place of one that does not react. It accepts from copies of
    /// the same sockets, so it serves the connections queued for the hung process.
    fn replace_hung(&mut self, number: u64) {
        let Some(PendingReload { mut candidate, pid, fresh, again }) = self.take_pending(number)
        else {
            return;
        };
        let wait_max = candidate.wait_max();
        let hangs = format!("worker process {pid} hangs: no answer about the new configuration");
        if !fresh {
            alert!("{hangs} within {wait_max:.0?}; starting a new one");
            self.last_number += 1;
            candidate.number = self.last_number;
            return self.hand_to_new(candidate, again);
        }
        alert!("{hangs} within {wait_max:.0?}; killing it and keeping the old configuration");
        for child in self.children.iter_mut().filter(|child| child.pid == pid) {
            child.stage = ChildStage::Leaving;
            child.signal(SIGKILL);
        }
        self.give_up(&candidate);
        match again {
            true => self.reload(),
            false => self.respawn(),
        }
    }
}

/// Packs a configuration for a worker process.
pub(super) fn pack(
    plan: &WorkerPlan,
    number: u64,
    changes: &[WorkerChange],
    slots: Vec<SlotEntry>,
    sockets: Vec<(u32, OwnedFd)>,
) -> Option<Message> {
    let logs = child::copies(&plan.loaded.log_files);
    let snapshot = ConfigSnapshot {
        number,
        origin: plan.origin.clone(),
        recording: plan.recording.clone(),
        identity: plan.loaded.settings.user.clone(),
        logs: logs.len() as u32,
        slots,
        changes: changes.iter().map(|one| one.to_bytes().into()).collect(),
    };
    let sealed = channel::sealed(&snapshot.to_bytes());
    let file = sealed.map_err(|error| alert!("memfd_create() failed{}", Errno(&error))).ok()?;
    let descriptors = std::iter::once(file).chain(logs);
    let descriptors = descriptors.chain(sockets.into_iter().map(|(_, socket)| socket)).collect();
    Some(Message { descriptors, ..Message::new(MessageKind::Serve, number) })
}

/// Whether a worker process can switch from one configuration to another: settings that a process
/// cannot change in itself are the same in both.
fn can_change_in_place(old: &WorkerPlan, new: &WorkerPlan) -> bool {
    let (old, new) = (&old.loaded.settings, &new.loaded.settings);
    let fixed = |settings: &ProgramSettings| {
        let ProgramSettings {
            worker_processes,
            user,
            worker_priority,
            worker_cpu_affinity,
            worker_rlimit_nofile,
            worker_rlimit_core,
            working_directory,
            env,
            ..
        } = settings;
        let limits = (*worker_priority, *worker_rlimit_nofile, *worker_rlimit_core);
        let who = (user.clone(), working_directory.clone(), env.clone());
        (*worker_processes, worker_cpu_affinity.clone(), limits, who)
    };
    fixed(old) == fixed(new)
}

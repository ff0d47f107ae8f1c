//! Reading the configuration again: it holds once a worker process serves it, and not before.

use std::os::fd::OwnedFd;

use conf::Recorder;
use net::channel;
use observe::Errno;

use super::child::{self, Child, Stage};
use super::{Master, Plan};
use crate::bundle::{Bundle, SlotEntry};
use crate::load;
use crate::log::alert;
use crate::parcel::{Kind, Parcel};
use crate::settings::Settings;
use crate::start::listens;
use crate::{Told, pid_file, ready};

/// A configuration on its way into force.
pub(super) struct Pending {
    number: u64,
    plan: Plan,
    /// The worker process that is to serve it.
    pid: i32,
    /// Whether that process was started for it.
    fresh: bool,
    /// HUP came again meanwhile.
    again: bool,
}

impl Master {
    /// Reads the configuration, and hands it to the worker process, or to a new one.
    pub(super) fn reload(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.again = true;
            return;
        }
        // Else what is wrong has been said, and everything is as before.
        if let Ok(plan) = self.read_again() {
            self.hand_over(plan);
        }
    }

    fn read_again(&mut self) -> Result<Plan, Told> {
        let mut files = Recorder::new(self.plan.origin.files());
        let Plan { origin, loaded, .. } = &self.plan;
        let loaded = load::load_after(&loaded.zones, origin, &mut files)?;
        ready::make_ready(&loaded)?;
        let workers = loaded.settings.worker_processes;
        self.sockets.prepare(&listens(&loaded.site), workers)?;
        let (old, new) = (&self.plan.loaded.settings.pid, &loaded.settings.pid);
        if old != new {
            pid_file::write(new).inspect_err(|Told| self.sockets.roll_back())?;
            pid_file::remove(old);
        }
        let (origin, recording) = (self.plan.origin.clone(), files.to_bytes());
        Ok(Plan { origin, loaded, recording })
    }

    fn hand_over(&mut self, plan: Plan) {
        self.last_number += 1;
        let number = self.last_number;
        let wanted = listens(&plan.loaded.site);
        let alive = self.children.iter().find(|child| child.stage != Stage::Leaving);
        let same = alive.filter(|_| can_change_in_place(&self.plan, &plan));
        let held = same.map(|_| listens(&self.plan.loaded.site));
        let is_new = |slot: u32| match &held {
            Some(held) => !held.iter().any(|(address, _)| self.sockets.slot(address) == Some(slot)),
            None => true,
        };
        let entries = self.sockets.entries(&wanted, is_new);
        let copies = self.sockets.copies(&entries);
        let parcel = pack(&plan, number, entries, copies);
        let (pid, fresh) = match (parcel, same) {
            (None, _) => return self.sockets.roll_back(),
            (Some(parcel), Some(child)) => {
                child.send(parcel);
                (child.pid, false)
            }
            (Some(parcel), None) => match self.spawn(&plan, parcel) {
                Some(child) => {
                    let pid = child.pid;
                    self.children.push(child);
                    (pid, true)
                }
                None => return self.sockets.roll_back(),
            },
        };
        self.pending = Some(Pending { number, plan, pid, fresh, again: false });
    }

    /// A worker process serves a generation.
    pub(super) fn reload_done(&mut self, number: u64) {
        let Some(pending) = self.pending.take_if(|pending| pending.number == number) else {
            return;
        };
        let Pending { plan, pid, fresh, again, .. } = pending;
        self.sockets.keep(&listens(&plan.loaded.site));
        ready::use_log(plan.loaded.main_log.clone());
        self.plan = plan;
        self.number = number;
        self.not_accepting = false;
        for child in self.children.iter_mut().filter(|child| fresh && child.pid != pid) {
            if child.stage != Stage::Leaving {
                child.stage = Stage::Leaving;
                child.send(Parcel::new(Kind::Quit, number));
            }
        }
        if again {
            self.reload();
        }
    }

    /// A worker process cannot serve a generation.
    pub(super) fn reload_failed(&mut self, number: u64) {
        let Some(pending) = self.pending.take_if(|pending| pending.number == number) else {
            return;
        };
        self.sockets.roll_back();
        let (old, new) = (&self.plan.loaded.settings.pid, &pending.plan.loaded.settings.pid);
        if old != new && pid_file::write(old).is_ok() {
            pid_file::remove(new);
        }
        if pending.again {
            self.reload();
        }
    }

    /// A worker process is over, and with it what it was to serve.
    pub(super) fn reload_failed_with(&mut self, child: &Child) {
        let pending = self.pending.as_ref().filter(|pending| pending.pid == child.pid);
        if let Some(number) = pending.map(|pending| pending.number) {
            self.reload_failed(number);
        }
    }
}

/// Packs a configuration for a worker process.
pub(super) fn pack(
    plan: &Plan,
    number: u64,
    slots: Vec<SlotEntry>,
    sockets: Vec<(u32, OwnedFd)>,
) -> Option<Parcel> {
    let logs = child::copies(&plan.loaded.log_files);
    let bundle = Bundle {
        number,
        origin: plan.origin.clone(),
        recording: plan.recording.clone(),
        identity: plan.loaded.settings.user.clone(),
        logs: logs.len() as u32,
        slots,
    };
    let sealed = channel::sealed(&bundle.to_bytes());
    let file = sealed.map_err(|error| alert!("memfd_create() failed{}", Errno(&error))).ok()?;
    let descriptors = std::iter::once(file).chain(logs);
    let descriptors = descriptors.chain(sockets.into_iter().map(|(_, socket)| socket)).collect();
    Some(Parcel { kind: Kind::Serve, number, descriptors })
}

/// Whether a worker process can go from one configuration to another: what a process cannot change
/// in itself is the same in both.
fn can_change_in_place(old: &Plan, new: &Plan) -> bool {
    let (old, new) = (&old.loaded.settings, &new.loaded.settings);
    let fixed = |settings: &Settings| {
        let Settings {
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

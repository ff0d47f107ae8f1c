//! The state of a serving process: its workers, the generation it serves, its logs, and the jobs
//! that its own thread does for all workers.
//!
//! The jobs are a list (`subsystems::control_jobs`). Which they are is unknown here.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use net::{MailboxSender, Timer, listening};
use observe::{Errno, LogFiles};
use session::keyval::{KeyvalChange, KeyvalZone};
use session::status::{Program, ProgramFacts};
use session::steering::SteeringCall;
use session::{ControlJobs, JOBS_FINISH_MAX};
use upstream::roster::GroupChange;
use zones::Zones;

use crate::acceptor::AcceptLimits;
use crate::config_snapshot::{SlotEntry, SlotOwners};
use crate::event::Event;
use crate::load::LoadedConfig;
use crate::log::{self, emerg, notice};
use crate::messages::Reported;
use crate::name::name;
use crate::ready;
use crate::steering::{WorkerChange, apply_purge, apply_to_table};
use crate::subsystems::{self, Sites};
use crate::workers::{NextGeneration, Workers};

/// The running workers.
pub struct Control {
    workers: Workers,
    number: u64,
    log_files: LogFiles,
    zones: Zones,
    jobs: ControlJobs<Sites>,
    /// Whether the workers have been told to end.
    is_leaving: bool,
    /// The sites of generations that have not ended. Freeing a large one takes time, so it happens
    /// here and not in a worker, whose clients would wait.
    sites: BTreeMap<u64, Sites>,
    workers_left: usize,
}

impl Control {
    /// Starts workers that serve a first generation.
    pub fn start(
        number: u64,
        is_ready: bool,
        loaded: LoadedConfig,
        slots: &[SlotEntry],
        sockets: Vec<(u32, OwnedFd)>,
        events: &MailboxSender<Event>,
    ) -> Result<Self, Reported> {
        log::panics_are_alerts();
        let build = concat!("weir-", env!("CARGO_PKG_VERSION"));
        ProgramFacts::settle(name().version, build, built_ms());
        ProgramFacts::get().is_draining.store(!is_ready, Relaxed);
        let jobs = subsystems::control_jobs();
        let control = Self::with_jobs(jobs, number, loaded, slots, sockets, events)?;
        control.workers.set_draining(!is_ready);
        Ok(control)
    }

    /// The same with the given jobs.
    fn with_jobs(
        jobs: ControlJobs<Sites>,
        number: u64,
        loaded: LoadedConfig,
        slots: &[SlotEntry],
        sockets: Vec<(u32, OwnedFd)>,
        events: &MailboxSender<Event>,
    ) -> Result<Self, Reported> {
        let mut control = Self {
            workers: Workers::start(&loaded.settings, events),
            number,
            log_files: LogFiles::default(),
            zones: Zones::default(),
            jobs,
            is_leaving: false,
            sites: BTreeMap::new(),
            workers_left: 0,
        };
        control.serve(number, loaded, slots, sockets)?;
        Ok(control)
    }

    /// Serves another generation. Its log files are open, and its sockets are bound at least.
    pub fn serve(
        &mut self,
        number: u64,
        loaded: LoadedConfig,
        slots: &[SlotEntry],
        sockets: Vec<(u32, OwnedFd)>,
    ) -> Result<(), Reported> {
        let LoadedConfig { settings, sites, main_log, log_files, zones, .. } = loaded;
        let owners = SlotOwners::of(slots, &sites);
        listen(&sockets, slots, &sites)?;
        ready::use_log(main_log);
        self.number = number;
        self.log_files = log_files;
        self.zones = zones;
        // Jobs set timers, and reading the configuration took time.
        net::clock::refresh();
        self.jobs.iter_mut().for_each(|job| job.adopt(&sites, &self.zones));
        Program::loaded();
        self.sites.insert(number, sites.clone());
        self.workers.serve(NextGeneration {
            number,
            owners,
            sites,
            sockets,
            limits: AcceptLimits::of(&settings),
            shutdown_timeout: Duration::from_millis(settings.worker_shutdown_timeout_ms),
        });
        // Returns the memory that reading the configuration needed.
        net::memory::give_back();
        Ok(())
    }

    /// Makes a change in every generation that serves, the newest last. `Err`: why the change does
    /// not outlive this process.
    pub fn change(&mut self, change: &WorkerChange) -> Result<(), String> {
        match change {
            WorkerChange::Servers(change) => self.change_servers(change),
            WorkerChange::Keyval(change) => self.change_table(change),
            // Generations before the newest have the same index, unless its size has changed.
            WorkerChange::Purge(change) => {
                let made = self.sites.values().map(|sites| apply_purge(change, sites));
                return made.fold(Ok(()), Result::and);
            }
        }
        Ok(())
    }

    fn change_servers(&mut self, change: &GroupChange) {
        for (number, sites) in &self.sites {
            let is_newest = *number == self.number;
            let Some(group) = sites.group(change.subsystem, &change.group) else { continue };
            if group.change(&change.operation, is_newest) && is_newest {
                self.jobs.iter_mut().for_each(|job| job.changed(group));
            }
        }
    }

    fn change_table(&self, change: &KeyvalChange) {
        let mut changed: Vec<&KeyvalZone> = Vec::new();
        for sites in self.sites.values() {
            let Some(zone) = sites.keyval_zone(change.subsystem, &change.zone) else { continue };
            // Most generations have the table of the one before.
            if !changed.iter().any(|known| known.has_table_of(zone)) {
                apply_to_table(change, sites);
                changed.push(zone);
            }
        }
    }

    /// Lets the jobs look at a request of the control socket. Returns it if it is none of theirs.
    pub fn called(&mut self, call: SteeringCall) -> Option<SteeringCall> {
        self.jobs.iter_mut().try_fold(call, |call, job| job.called(call))
    }

    /// The newest generation's sites.
    pub fn sites(&self) -> Option<&Sites> {
        self.sites.get(&self.number)
    }

    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Has `ready` tell load balancers whether to send clients here, and connections end or stay.
    pub fn turn_readiness(&self, is_on: bool) {
        let is_draining = !is_on || self.is_leaving;
        ProgramFacts::get().is_draining.store(is_draining, Relaxed);
        self.workers.set_draining(is_draining);
    }

    /// Lets the workers end gracefully.
    pub fn leave(&mut self) {
        if !std::mem::replace(&mut self.is_leaving, true) {
            ProgramFacts::get().is_draining.store(true, Relaxed);
            self.jobs.iter_mut().for_each(|job| job.leave());
        }
        self.workers.leave();
    }

    /// Lets the jobs finish, after the last worker has ended.
    pub async fn finish(&mut self) {
        let timer = Timer::new();
        timer.set(JOBS_FINISH_MAX.as_millis() as u64);
        let finishing = async {
            for job in &mut self.jobs {
                job.finish().await;
            }
        };
        timer.limit(finishing).await;
    }

    /// The newest generation.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The newest generation's logs.
    pub fn log_files(&self) -> &LogFiles {
        &self.log_files
    }

    /// The newest generation's zones.
    pub fn zones(&self) -> &Zones {
        &self.zones
    }

    /// Called when a worker has ended. Returns whether it was the last.
    pub fn worker_left(&mut self) -> bool {
        self.workers_left += 1;
        self.workers_left >= self.workers.len()
    }

    /// Called when a generation has ended, while the process continues.
    pub fn generation_over(&mut self, number: u64) {
        if number != self.number {
            self.sites.remove(&number);
            self.workers.generation_over();
            // The text, the tables and the certificates of a generation are many small pieces.
            net::memory::give_back();
            let pid = net::process::id();
            notice!("generation {number} of worker process {pid} exited with code 0");
        }
    }
}

/// Starts to listen on sockets that were only bound so far, now that there are workers to accept.
fn listen(sockets: &[(u32, OwnedFd)], slots: &[SlotEntry], sites: &Sites) -> Result<(), Reported> {
    let options: HashMap<_, _> = sites.listens().into_iter().collect();
    let addresses: HashMap<_, _> = slots.iter().map(|entry| (entry.slot, &entry.address)).collect();
    for (slot, socket) in sockets {
        let Some(address) = addresses.get(slot) else { continue };
        let Some(options) = options.get(address) else { continue };
        listening::begin(socket.as_fd(), address, options).map_err(|failed| {
            emerg!("{}{}", failed.what, Errno(&failed.error));
            Reported
        })?;
    }
    Ok(())
}

/// When the program was built, in milliseconds since 1970, if the build says so.
fn built_ms() -> Option<u64> {
    env!("WEIR_BUILT_S").parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests;

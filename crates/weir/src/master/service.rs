//! The master as the main process of a service: what it tells the service manager, and how a new
//! binary becomes the main process.
//!
//! ```text
//! first master --USR2--> both run; the first tells --QUIT, TERM--> MAINPID=, closes the channel
//!                        new master: silent until the channel closes --> READY=1
//! ```
//!
//! If the first master crashes, the channel closes as well.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use net::MailboxSender;
use net::channel::{self, Channel};
use net::process::Launch;

use super::child::{Child, ChildStage};
use super::event::MasterEvent;
use super::{Ending, Master};
use crate::event::later;
use crate::service_manager::{self, ServiceManager, ServicePhase, ServiceState};

/// The variable that has the number of a new binary's end of the channel.
const CHANNEL: &str = "WEIR_MAIN_PROCESS";

/// The service manager, once this master is the main process.
#[derive(Default)]
pub(super) struct MasterService {
    manager: Option<ServiceManager>,
    /// The generation that was in use when the last reload began.
    number_before: Option<u64>,
    /// Both ends of the channel to a new binary. Closing the first makes it the main process.
    channel: Option<(OwnedFd, OwnedFd)>,
}

impl MasterService {
    /// Connects to the manager, if there is one: now, or when an older master hands over.
    pub(super) fn start(events: &MailboxSender<MasterEvent>) -> Self {
        if service_manager::is_there() {
            let number = std::env::var(CHANNEL).ok().and_then(|number| number.parse().ok());
            match number.and_then(net::process::inherited).map(Channel::new) {
                Some(Ok(channel)) => await_turn(channel, events.clone()),
                _ => events.send(MasterEvent::MainProcess),
            }
        }
        Self::default()
    }

    /// Prepares the channel to a new binary.
    pub(super) fn prepare_successor(&mut self) -> std::io::Result<()> {
        if self.manager.is_some() {
            self.channel = Some(channel::pair()?);
        }
        Ok(())
    }

    /// Passes the channel, and the way to the manager, to a new binary.
    pub(super) fn hand_to(&self, launch: Launch) -> Launch {
        let Some((_, far)) = &self.channel else { return launch };
        let launch = launch.variable(CHANNEL, far.as_raw_fd().to_string()).inherit(far.as_fd());
        service_manager::variables().fold(launch, |l, (name, value)| l.variable(name, value))
    }

    /// The new binary is gone.
    pub(super) fn no_successor(&mut self) {
        self.channel = None;
    }

    /// Called when a configuration is about to be read.
    pub(super) fn reload_begins(&mut self, number: u64) {
        self.number_before = Some(number);
        self.resume_begins();
    }

    /// Called when the configuration that was in use is used again.
    pub(super) fn resume_begins(&mut self) {
        if let Some(manager) = &mut self.manager {
            manager.reloading();
        }
    }
}

/// Waits until the older master closes the channel.
fn await_turn(channel: Channel, events: MailboxSender<MasterEvent>) {
    net::spawn(async move {
        while let Ok(Some(_)) = channel.receive().await {}
        events.send(MasterEvent::MainProcess);
    });
}

impl Master {
    /// Called when this master is the main process of the service.
    pub(super) fn is_main_process(&mut self) {
        if self.plan.origin.is_trial {
            return;
        }
        self.service.manager = ServiceManager::of_environment();
        self.show_life();
    }

    /// Tells the manager that clients are served, if they are, and again after a pause.
    pub(super) fn show_life(&self) {
        let Some(manager) = &self.service.manager else { return };
        let Some(pause) = manager.watchdog() else { return };
        if self.lives() {
            manager.alive();
        }
        later(&self.events, pause, MasterEvent::ShowLife);
    }

    /// Whether a worker process is alive, or none is to be.
    fn lives(&self) -> bool {
        let is_ending = self.ending != Ending::Not;
        let counts = |child: &Child| child.stage == ChildStage::Serving || is_ending;
        self.not_accepting || self.children.iter().any(counts)
    }

    /// Tells the manager what has changed.
    pub(super) fn tell_service(&mut self) {
        let Some(told) = self.service.manager.as_ref().map(ServiceManager::phase) else { return };
        let phase = self.phase(told);
        let state = ServiceState { phase, status: self.status_line(phase) };
        if let Some(manager) = &mut self.service.manager {
            manager.tell(state);
        }
    }

    fn phase(&self, told: ServicePhase) -> ServicePhase {
        let serves = self.children.iter().any(|child| child.stage == ChildStage::Serving);
        match told {
            _ if self.ending != Ending::Not || self.readiness.is_end_delayed() => {
                ServicePhase::Stopping
            }
            ServicePhase::Starting if !serves => ServicePhase::Starting,
            _ if self.is_reloading() => ServicePhase::Reloading,
            _ => ServicePhase::Ready,
        }
    }

    fn status_line(&self, phase: ServicePhase) -> String {
        let of_stage = |stage| self.children.iter().filter(move |child| child.stage == stage);
        let mut line = match (phase, of_stage(ChildStage::Serving).next()) {
            (ServicePhase::Stopping, _) if self.ending == Ending::Fast => "Ending".to_owned(),
            (ServicePhase::Stopping, _) if self.ending == Ending::Not => {
                "Waiting until load balancers have noticed the end".to_owned()
            }
            (ServicePhase::Stopping, _) => "Finishing the requests in progress".to_owned(),
            (ServicePhase::Starting, None) => "Starting a worker process".to_owned(),
            (_, None) if self.not_accepting => "Told to serve nothing".to_owned(),
            (_, None) => "No worker process serves".to_owned(),
            (_, Some(child)) => {
                format!("Serving configuration {}, worker process {}", self.number, child.pid)
            }
        };
        if phase == ServicePhase::Reloading {
            line += "; a newer one is about to be used";
        } else if phase == ServicePhase::Ready && self.service.number_before == Some(self.number) {
            line += "; the last reload failed, see the error log";
        }
        if let Some(pid) = self.upgrade.pid() {
            line += &format!("; new binary process {pid}");
        }
        line
    }

    /// Makes a new binary, if one runs, the main process.
    pub(super) fn hand_service_over(&mut self) {
        let Some(pid) = self.upgrade.pid() else { return };
        if let Some(manager) = self.service.manager.take() {
            manager.hand_over(pid);
        }
        self.service.no_successor();
    }
}

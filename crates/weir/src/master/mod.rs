//! The master process: it keeps the privileges and the sockets, and watches over a worker process.
//!
//! ```text
//!            HUP: same process              HUP: another user, limits, number of workers
//! Serving --------------------> Serving     Serving + Starting --serving--> Leaving + Serving
//! ```
//!
//! It never waits for a worker process: everything it does follows from an event.

mod calls;
mod child;
mod environment;
mod event;
mod reload;
mod service;
mod steer;
mod upgrade;

use std::time::Duration;

use net::process::Exit;
use net::signals::{
    SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, Signal, Signals,
};
use net::{Mailbox, MailboxSender};
use observe::{Errno, Level};
use session::status::Program;

use crate::arguments::Arguments;
use crate::config_origin::ConfigOrigin;
use crate::control_socket::ControlPlace;
use crate::event::{from_signals, later, log_signal};
use crate::ipc::{Message, MessageKind};
use crate::load::LoadedConfig;
use crate::log::{alert, emerg, notice};
use crate::messages::Reported;
use crate::readiness::Readiness;
use crate::shared_limits::SharedLimits;
use crate::sockets::ListenSockets;
use crate::steering::Rosters;
use crate::{pid_file, ready, steering};
use calls::MasterCalls;
use child::{Child, ChildStage};
use event::MasterEvent;
use service::MasterService;
use steer::MasterSteering;
use upgrade::Upgrade;

/// The first pause between two signals to end worker processes; it doubles.
const TERMINATION_PAUSE: Duration = Duration::from_millis(50);
/// After a pause longer than this they are killed.
const TERMINATION_PAUSE_MAX: Duration = Duration::from_secs(1);
/// A worker process that ends sooner than this is started again after a pause.
const LIFE_MIN: Duration = Duration::from_secs(1);
const RESPAWN_PAUSE: Duration = Duration::from_millis(100);

/// A configuration, and the files it was read from, for worker processes yet to come.
pub struct WorkerPlan {
    pub origin: ConfigOrigin,
    pub loaded: LoadedConfig,
    pub recording: Vec<u8>,
    /// The changes of groups since it was read.
    pub rosters: Rosters,
}

struct Master {
    arguments: Arguments,
    in_background: bool,
    events: MailboxSender<MasterEvent>,
    sockets: ListenSockets,
    limits: SharedLimits,
    /// The current configuration, and its generation's number.
    plan: WorkerPlan,
    number: u64,
    /// The largest number given out.
    last_number: u64,
    /// A configuration that waits for an address.
    opening: Option<reload::PendingSockets>,
    /// A configuration that a worker process has received and does not serve yet.
    pending: Option<reload::PendingReload>,
    children: Vec<Child>,
    upgrade: Upgrade,
    ending: Ending,
    readiness: Readiness,
    /// The pause before worker processes are signalled again to end.
    pause: Duration,
    /// WINCH: no worker process runs or is to be started.
    not_accepting: bool,
    changes: MasterSteering,
    calls: MasterCalls,
    service: MasterService,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Not,
    Graceful,
    Fast,
}

/// Manages worker processes until a signal ends the master.
pub fn run(
    plan: WorkerPlan,
    mut sockets: ListenSockets,
    limits: SharedLimits,
    signals: Signals,
    arguments: &Arguments,
    in_background: bool,
    control: ControlPlace,
) -> Result<(), Reported> {
    net::title::set(&arguments.master_title());
    let pid = plan.loaded.settings.pid.clone();
    sockets.keep(&plan.loaded.sites.listens());
    let arguments = arguments.clone();
    limits.join_metrics();
    let done = net::run(async move {
        let (events, mailbox) = net::mailbox();
        from_signals(signals, &events, MasterEvent::Signal);
        let service = MasterService::start(&events);
        let master = Master {
            arguments,
            in_background,
            events,
            sockets,
            limits,
            plan,
            number: 1,
            last_number: 1,
            opening: None,
            pending: None,
            children: Vec::new(),
            upgrade: Upgrade::default(),
            ending: Ending::Not,
            readiness: Readiness::default(),
            pause: Duration::ZERO,
            not_accepting: false,
            changes: MasterSteering::default(),
            calls: MasterCalls::new(control),
            service,
        };
        master.watch(mailbox).await;
    });
    done.map_err(|error| {
        emerg!("the runtime cannot start{}", Errno(&error));
        pid_file::remove(&pid);
        Reported
    })
}

impl Master {
    async fn watch(mut self, mut events: Mailbox<MasterEvent>) {
        self.start_worker_process();
        self.open_control_socket(false);
        net::memory::give_back();
        while let Some(event) = events.next().await {
            match event {
                MasterEvent::Signal(signal) => self.signal(signal),
                MasterEvent::Report(pid, report) => self.report(pid, report),
                MasterEvent::DelayOver => self.quit_now(),
                MasterEvent::AskAgain => self.ask_again(),
                MasterEvent::Respawn => self.respawn(),
                MasterEvent::TryAgain(number) => self.try_again(number),
                MasterEvent::StillPending(number, waited) => self.still_pending(number, waited),
                MasterEvent::Asked(call) => self.called(call),
                MasterEvent::Stored(stored) => self.state_stored(stored),
                MasterEvent::ChangeOverdue(number) => self.change_overdue(number),
                MasterEvent::PageOverdue(number) => self.page_overdue(number),
                MasterEvent::MainProcess => self.is_main_process(),
                MasterEvent::ShowLife => self.show_life(),
            }
            self.finish_reload();
            self.tell_service();
            if self.ending != Ending::Not && self.children.is_empty() {
                break;
            }
        }
        pid_file::remove(&self.upgrade.pid_file(&self.plan.loaded.settings.pid));
        notice!("exit");
        self.sockets.close_all(self.upgrade.is_running());
    }

    fn signal(&mut self, signal: Signal) {
        let number = signal.number;
        log_signal(signal, self.action(number));
        match number {
            SIGCHLD => self.reap(),
            SIGHUP => self.hang_up(),
            SIGUSR1 => self.reopen_logs(),
            SIGUSR2 => self.change_binary(),
            SIGQUIT => self.quit(),
            SIGTERM | SIGINT => self.terminate(),
            SIGWINCH if self.in_background => {
                self.not_accepting = true;
                self.tell_all(MessageKind::Quit);
            }
            _ => {}
        }
    }

    /// The action of a signal, in nginx's words.
    fn action(&self, number: i32) -> &'static str {
        match number {
            SIGHUP if self.plan.origin.is_trial => "exiting",
            SIGHUP => "reconfiguring",
            SIGUSR1 => "reopening logs",
            SIGUSR2 if self.may_not_upgrade() => "ignoring",
            SIGUSR2 => "changing binary",
            SIGQUIT => "shutting down",
            SIGTERM | SIGINT => "exiting",
            SIGWINCH if self.in_background => "stop accepting connections",
            _ => "",
        }
    }

    fn hang_up(&mut self) {
        if self.plan.origin.is_trial {
            return self.terminate();
        }
        if self.upgrade.is_running() {
            // The old master resumes, with the configuration that it had.
            self.not_accepting = false;
            self.service.resume_begins();
            return self.start_worker_process();
        }
        notice!("reconfiguring");
        self.reload();
    }

    fn reopen_logs(&mut self) {
        notice!("reopening logs");
        let LoadedConfig { log_files, settings, .. } = &self.plan.loaded;
        ready::reopen(log_files, settings.user.as_ref());
        let copies = child::copies(log_files);
        for child in &self.children {
            let descriptors = copies.iter().filter_map(|copy| copy.try_clone().ok()).collect();
            let reopen = Message::new(MessageKind::Reopen, self.number);
            child.send(Message { descriptors, ..reopen });
        }
        self.reopen_logs_to_come();
    }

    /// Ends gracefully, after `shutdown_delay`. A new binary serves the same sockets, so there is
    /// nothing to wait for.
    fn quit(&mut self) {
        let delay_ms = self.plan.loaded.settings.shutdown_delay_ms;
        let delay_ms = if self.upgrade.is_running() { 0 } else { delay_ms };
        let Some(left) = self.readiness.delay_end(Duration::from_millis(delay_ms)) else {
            return self.quit_now();
        };
        notice!("shutting down in {left:.1?}");
        self.tell_readiness();
        later(&self.events, left, MasterEvent::DelayOver);
    }

    fn quit_now(&mut self) {
        if self.ending == Ending::Not {
            self.ending = Ending::Graceful;
            self.hand_service_over();
            self.opening = None;
            self.tell_all(MessageKind::Quit);
            self.sockets.close_all(self.upgrade.is_running());
        }
    }

    /// Tells all worker processes whether the server is ready.
    fn tell_readiness(&self) {
        for child in &self.children {
            child.send(child::readiness(&self.readiness));
        }
    }

    fn terminate(&mut self) {
        if self.ending != Ending::Fast {
            self.ending = Ending::Fast;
            self.hand_service_over();
            self.opening = None;
            self.pause = TERMINATION_PAUSE;
            self.tell_all(MessageKind::Terminate);
            later(&self.events, self.pause, MasterEvent::AskAgain);
        }
    }

    fn ask_again(&mut self) {
        self.pause *= 2;
        let number = if self.pause > TERMINATION_PAUSE_MAX { SIGKILL } else { SIGTERM };
        for child in &self.children {
            child.signal(number);
        }
        later(&self.events, self.pause, MasterEvent::AskAgain);
    }

    fn tell_all(&mut self, kind: MessageKind) {
        for child in &mut self.children {
            child.stage = ChildStage::Leaving;
            child.send(Message::new(kind, self.number));
        }
    }

    /// Starts a worker process for the current configuration.
    fn start_worker_process(&mut self) {
        notice!("start worker processes");
        let wanted = self.plan.loaded.sites.listens();
        let entries = self.sockets.entries_in_force(&wanted);
        let copies = self.sockets.copies(&entries);
        let mut changes = self.plan.rosters.changes();
        changes.extend(steering::table_snapshots(&self.plan.loaded.sites, None));
        let message = reload::pack(&self.plan, self.number, &changes, entries, copies);
        if let Some(child) = message.and_then(|message| self.spawn(&self.plan, message)) {
            self.children.push(child);
        }
    }

    fn spawn(&self, plan: &WorkerPlan, message: Message) -> Option<Child> {
        let variables = environment::of_worker_process(&plan.loaded.settings.env);
        let launch = self.arguments.worker_process();
        let launch = variables.into_iter().fold(launch, |l, (name, value)| l.variable(name, value));
        let readiness = child::readiness(&self.readiness);
        match Child::start(self.limits.hand_to(launch), readiness, message, &self.events) {
            Ok(child) => {
                notice!("start worker process {}", child.pid);
                Some(child)
            }
            Err(error) => {
                alert!("fork() failed while spawning \"worker process\"{}", Errno(&error));
                None
            }
        }
    }

    fn reap(&mut self) {
        loop {
            match net::process::reap() {
                Ok(Some((pid, exit))) => self.over(pid, exit),
                Ok(None) => return,
                Err(error) => return alert!("waitpid() failed{}", Errno(&error)),
            }
        }
    }

    fn over(&mut self, pid: i32, exit: Exit) {
        let child = self.children.iter().position(|child| child.pid == pid);
        let child = child.map(|at| self.children.swap_remove(at));
        self.makes_no_change(pid);
        let name = match child {
            Some(_) => "worker process",
            None if self.upgrade.is(pid) => "new binary process",
            None => "unknown process",
        };
        match exit {
            Exit::Code(code) => notice!("{name} {pid} exited with code {code}"),
            Exit::Signal { number, core } => {
                let core = if core { " (core dumped)" } else { "" };
                alert!("{name} {pid} exited on signal {number}{core}");
            }
        }
        match child {
            Some(child) => self.child_over(&child, exit),
            None if self.upgrade.is(pid) => self.upgrade_over(),
            None => {}
        }
    }

    fn child_over(&mut self, child: &Child, exit: Exit) {
        let for_nothing_else = self.reload_failed_with(child);
        if child.stage == ChildStage::Leaving || self.ending != Ending::Not || self.not_accepting {
            return;
        }
        Program::metric().own().lost_processes().add(1);
        if exit == Exit::Code(2) {
            let pid = child.pid;
            alert!("worker process {pid} exited with fatal code 2 and cannot be respawned");
            if !for_nothing_else {
                return;
            }
        }
        match child.started.elapsed() < LIFE_MIN {
            true => later(&self.events, RESPAWN_PAUSE, MasterEvent::Respawn),
            false if for_nothing_else => self.respawn(),
            false => self.start_worker_process(),
        }
    }

    fn respawn(&mut self) {
        let served = self.children.iter().any(|child| child.stage != ChildStage::Leaving);
        if self.ending == Ending::Not && !self.not_accepting && !served {
            self.start_worker_process();
        }
    }

    fn report(&mut self, pid: i32, report: Option<Message>) {
        let Some(message) = report else { return self.makes_no_change(pid) };
        let Message { kind, number, .. } = message;
        if let Some(child) = self.children.iter_mut().find(|child| child.pid == pid)
            && kind == MessageKind::Serving
            && child.stage == ChildStage::Starting
        {
            child.stage = ChildStage::Serving;
        }
        match kind {
            MessageKind::Serving => self.reload_done(number),
            MessageKind::Changed => {
                self.change_not_kept(number, &message.bytes);
                self.change_made(pid, number);
            }
            MessageKind::Ask => self.steer_for(pid, &message),
            MessageKind::Answer => self.shown(&message),
            _ => {
                observe::log(Level::Error, format_args!("worker process {pid} refused to reload"));
                self.reload_failed(number);
            }
        }
    }
}

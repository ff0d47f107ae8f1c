//! Serving without a master: this process reads, opens, controls and serves.

use std::path::PathBuf;
use std::time::Duration;

use net::signals::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, Signal, Signals};
use net::{Mailbox, MailboxSender};
use observe::Errno;
use session::status::Program;
use session::steering::{self, SteeringCall, SteeringReply, SteeringRequest};

use crate::config_origin::ConfigOrigin;
use crate::control::Control;
use crate::control_socket::replies::{self, LastReload};
use crate::control_socket::{ControlPlace, ControlSocket};
use crate::event::{Event, from_signals, later, log_signal};
use crate::load::{self, LoadedConfig};
use crate::log::{emerg, notice};
use crate::messages::Reported;
use crate::readiness::Readiness;
use crate::service_manager::{ServiceManager, ServicePhase, ServiceState};
use crate::sockets::{ListenSockets, PAUSE, Prepared, TRIES_MAX};
use crate::steering::{
    AcceptedWhat, Rosters, StateWrite, Steering, StoredState, catch_up, listing, refusal, write_all,
};
use crate::{pid_file, ready};

/// How long workers may take to flush their logs when told to stop.
const STOP_MAX: Duration = Duration::from_millis(500);

/// Serves until a signal ends it.
pub fn run(
    origin: ConfigOrigin,
    loaded: LoadedConfig,
    mut sockets: ListenSockets,
    signals: Signals,
    control: ControlPlace,
) -> Result<(), Reported> {
    ready::set_limits(&loaded.settings);
    let pid = loaded.settings.pid.clone();
    let served = net::run(async move {
        let (events, mailbox) = net::mailbox();
        from_signals(signals, &events, Event::Signal);
        let asks = events.clone();
        steering::pass_on_by(move |call| asks.send(Event::Asked(call)));
        let serve = |place| ControlSocket::serve(place, &events, Event::Called);
        let _socket = control.open.and_then(serve);
        sockets.keep(&loaded.sites.listens());
        let slots = sockets.entries(&loaded.sites.listens(), |_| true);
        let copies = sockets.copies(&slots);
        let pid = loaded.settings.pid.clone();
        let shutdown_delay_ms = loaded.settings.shutdown_delay_ms;
        let control = Control::start(1, true, loaded, &slots, copies, &events)?;
        let (rosters, steering) = (Rosters::default(), Steering::default());
        let service = ServiceManager::of_environment().filter(|_| !origin.is_trial);
        let single = Single {
            origin,
            control,
            sockets,
            events,
            pid,
            opening: None,
            rosters,
            steering,
            service,
            ending: false,
            readiness: Readiness::default(),
            shutdown_delay_ms,
            last_reload: None,
        };
        single.serve(mailbox).await;
        Ok(())
    });
    let served = served.unwrap_or_else(|error| {
        emerg!("the runtime cannot start{}", Errno(&error));
        Err(Reported)
    });
    served.inspect_err(|Reported| pid_file::remove(&pid))
}

struct Single {
    origin: ConfigOrigin,
    control: Control,
    sockets: ListenSockets,
    events: MailboxSender<Event>,
    pid: PathBuf,
    /// A configuration that waits for an address, and the number of tries left.
    opening: Option<(LoadedConfig, u32)>,
    /// The changes of groups since the configuration was read.
    rosters: Rosters,
    steering: Steering,
    service: Option<ServiceManager>,
    ending: bool,
    readiness: Readiness,
    shutdown_delay_ms: u64,
    last_reload: Option<LastReload>,
}

impl Single {
    async fn serve(mut self, mut events: Mailbox<Event>) {
        self.tell_service();
        self.show_life();
        while let Some(event) = events.next().await {
            match event {
                Event::Signal(signal) => self.signal(signal),
                Event::GenerationOver(number) => self.control.generation_over(number),
                Event::CutBefore(number) => self.control.workers().cut_before(number),
                Event::TryAgain => self.try_again(),
                Event::Called(call) => self.called(call),
                Event::Asked(call) => self.steer(call),
                Event::Stored(stored) => self.state_stored(stored),
                Event::ShowLife => self.show_life(),
                Event::DelayOver => self.quit_now(),
                Event::WorkerLeft if !self.control.worker_left() => {}
                Event::WorkerLeft | Event::Stop | Event::Message(_) => break,
            }
            self.tell_service();
        }
        self.control.finish().await;
        pid_file::remove(&self.pid);
        notice!("exit");
        self.sockets.close_all(false);
    }

    fn signal(&mut self, signal: Signal) {
        match signal.number {
            SIGHUP if !self.origin.is_trial => {
                log_signal(signal, "reconfiguring");
                self.hang_up("reconfiguring");
            }
            SIGUSR1 => {
                log_signal(signal, "reopening logs");
                notice!("reopening logs");
                ready::reopen(self.control.log_files(), None);
                self.control.workers().reopened();
            }
            SIGQUIT => {
                log_signal(signal, "shutting down");
                self.quit();
            }
            SIGTERM | SIGINT | SIGHUP => {
                log_signal(signal, "exiting");
                self.ending = true;
                self.control.workers().stop();
                later(&self.events, STOP_MAX, Event::Stop);
            }
            _ => log_signal(signal, ""),
        }
    }

    fn quit(&mut self) {
        let delay = Duration::from_millis(self.shutdown_delay_ms);
        let Some(left) = self.readiness.delay_end(delay) else { return self.quit_now() };
        notice!("shutting down in {left:.1?}");
        self.control.turn_readiness(false);
        later(&self.events, left, Event::DelayOver);
    }

    fn quit_now(&mut self) {
        self.ending = true;
        self.control.leave();
    }

    /// Reads the configuration again, and notes the result.
    fn hang_up(&mut self, told: &str) -> LastReload {
        observe::begin_copies();
        notice!("{told}");
        let reloaded = self.reload();
        let is_done = reloaded.is_ok() && self.opening.is_none();
        let last = LastReload::over(is_done, observe::take_copies());
        if reloaded.is_err() {
            Program::refused(last.message());
        }
        self.last_reload = Some(last.clone());
        last
    }

    fn status(&self) -> String {
        let (name, pid) = (crate::name::name(), net::process::id());
        format!(
            "{{\"name\":\"{}\",\"version\":\"{}\",\"pid\":{pid},\"generation\":{},\"reloading\":{},\
             \"upgrading\":false,\"last_reload\":{},\
             \"worker_processes\":[{{\"pid\":{pid},\"stage\":\"serving\"}}]}}",
            name.word,
            name.version,
            self.control.number(),
            self.opening.is_some(),
            LastReload::to_json(self.last_reload.as_ref()),
        )
    }

    /// Answers a request at the control socket.
    fn called(&mut self, call: SteeringCall) {
        let Some(mut call) = self.control.called(call) else { return };
        let path = call.request.path.clone();
        let reply = match (&*call.request.method, &*path) {
            (b"GET" | b"HEAD", b"/ready") => self.is_ready(),
            (b"POST" | b"DELETE", b"/ready") => self.turn_readiness(&call.request),
            (b"GET" | b"HEAD", b"/upstreams") => {
                let listing = self.control.sites().map(|sites| listing(sites, &self.rosters));
                replies::json(200, listing.unwrap_or_default())
            }
            (b"GET" | b"HEAD", b"/status") => replies::json(200, self.status()),
            (b"POST", b"/reload") if !self.origin.is_trial => {
                let who = String::from_utf8_lossy(&call.request.who);
                let last = self.hang_up(&format!("reconfiguring, by {who}"));
                replies::reloaded(&last, self.control.number())
            }
            (b"GET" | b"HEAD", path) if !replies::is_of_servers(path) => {
                replies::page(&call.request)
            }
            _ => match replies::api_path(&path) {
                Ok(rest) => {
                    call.request.path = rest.into();
                    return self.steer(call);
                }
                Err(refused) => refusal(&refused, &call.request),
            },
        };
        call.reply.send(reply);
    }

    fn is_ready(&self) -> SteeringReply {
        let is_ready = !self.ending && self.readiness.is_on();
        replies::readiness(is_ready, self.control.number())
    }

    fn turn_readiness(&mut self, request: &SteeringRequest) -> SteeringReply {
        if let Err(foreign) = replies::turn_readiness(request, &mut self.readiness) {
            return foreign;
        }
        self.control.turn_readiness(self.readiness.is_on());
        SteeringReply { status: 200, ..self.is_ready() }
    }

    /// Takes a request of the API.
    fn steer(&mut self, call: SteeringCall) {
        if let Some(sites) = self.control.sites() {
            let writes = self.steering.call(call, sites, &self.rosters);
            self.store(writes);
        }
    }

    fn store(&self, writes: Option<Vec<StateWrite>>) {
        let Some(writes) = writes else { return };
        let events = self.events.clone();
        net::spawn(async move { events.send(Event::Stored(write_all(writes).await)) });
    }

    fn state_stored(&mut self, stored: Vec<StoredState>) {
        for mut change in self.steering.stored(stored) {
            change.log();
            let mut made = Ok(());
            for what in &change.whats {
                made = made.and(self.make(what));
            }
            if let Err(why) = made {
                change.not_kept(&why);
            }
            change.answer(0);
        }
        self.decide_changes();
    }

    fn make(&mut self, what: &AcceptedWhat) -> Result<(), String> {
        if let Some(sites) = self.control.sites() {
            self.rosters.apply(what, sites);
        }
        match what {
            AcceptedWhat::Workers(change) => self.control.change(change),
            AcceptedWhat::Owner(_) | AcceptedWhat::Version(_) => Ok(()),
        }
    }

    /// Decides what waits, unless state files are being written.
    fn decide_changes(&mut self) {
        if let Some(sites) = self.control.sites() {
            let writes = self.steering.next(sites, &self.rosters);
            self.store(writes);
        }
    }

    /// Tells the service manager what has changed.
    fn tell_service(&mut self) {
        let Some(service) = &mut self.service else { return };
        let phase = match () {
            () if self.ending || self.readiness.is_end_delayed() => ServicePhase::Stopping,
            () if self.opening.is_some() => ServicePhase::Reloading,
            () => ServicePhase::Ready,
        };
        let status = format!("Serving configuration {}", self.control.number());
        service.tell(ServiceState { phase, status });
    }

    /// Tells the service manager that this thread runs, and again after a pause.
    fn show_life(&self) {
        let Some(service) = &self.service else { return };
        if let Some(pause) = service.watchdog() {
            service.alive();
            later(&self.events, pause, Event::ShowLife);
        }
    }

    fn reload(&mut self) -> Result<(), Reported> {
        if let Some(service) = &mut self.service {
            service.reloading();
        }
        if self.opening.take().is_some() {
            self.sockets.roll_back();
        }
        let loaded =
            load::load_after(self.control.zones(), &self.origin, &mut *self.origin.files())?;
        ready::make_ready(&loaded, &self.origin)?;
        self.open(loaded, TRIES_MAX - 1)
    }

    fn try_again(&mut self) {
        if let Some((loaded, tries_left)) = self.opening.take() {
            // The error has been reported; nothing has changed.
            let _ = self.open(loaded, tries_left.saturating_sub(1));
        }
    }

    fn open(&mut self, loaded: LoadedConfig, tries_left: u32) -> Result<(), Reported> {
        let workers = self.control.workers().len();
        match self.sockets.prepare(&loaded.sites.listens(), workers, tries_left) {
            Prepared::Ready => {
                self.replace(loaded).inspect_err(|Reported| self.sockets.roll_back())
            }
            Prepared::Taken => {
                self.opening = Some((loaded, tries_left));
                later(&self.events, PAUSE, Event::TryAgain);
                Ok(())
            }
            Prepared::Failed => Err(Reported),
        }
    }

    fn replace(&mut self, loaded: LoadedConfig) -> Result<(), Reported> {
        let sites = loaded.sites.clone();
        let before = self.control.sites().cloned().unwrap_or_default();
        let rosters = self.rosters.carried_over(&before, &sites);
        catch_up(&rosters.changes(), &sites);
        let (wanted, pid) = (sites.listens(), loaded.settings.pid.clone());
        if pid != self.pid {
            pid_file::write(&pid, &self.origin.defaults)?;
        }
        let slots = self.sockets.entries(&wanted, |slot| !self.control.workers().has(slot));
        let copies = self.sockets.copies(&slots);
        let number = self.control.number() + 1;
        let shutdown_delay_ms = loaded.settings.shutdown_delay_ms;
        let served = self.control.serve(number, loaded, &slots, copies);
        let gone = if served.is_ok() { std::mem::replace(&mut self.pid, pid) } else { pid };
        if gone != self.pid {
            pid_file::remove(&gone);
        }
        if served.is_ok() {
            self.sockets.keep(&wanted);
            self.rosters = rosters;
            self.shutdown_delay_ms = shutdown_delay_ms;
            self.steering.new_files();
            self.decide_changes();
        }
        served
    }
}

//! The worker process: it is handed configurations and serves them, as an ordinary user.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use conf::{Replay, Zones};
use net::channel::{self, Channel};
use net::signals::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, Signal, Signals};
use net::{Mailbox, Sender};
use observe::{Errno, tell};

use crate::Told;
use crate::bundle::Bundle;
use crate::control::Control;
use crate::event::{Event, from_signals, later, log_signal};
use crate::load::{self, Loaded};
use crate::log::{alert, emerg, notice};
use crate::name::name;
use crate::parcel::{Kind, Parcel};
use crate::ready;
use crate::shared_limits::SharedLimits;

/// The master takes this for a mistake that starting again would repeat.
const FATAL: u8 = 2;
/// How long workers may take to flush their logs when told to stop.
const STOP_MAX: Duration = Duration::from_millis(500);

/// Serves until the master or a signal ends it.
pub fn run() -> ExitCode {
    let limits = SharedLimits::inherit(None);
    observe::stderr_copies(false);
    net::title::set(&format!("{}: worker process", name().word));
    // It was started as /proc/self/exe, so the kernel calls it "exe".
    if let Err(error) = net::process::set_name(name().word) {
        alert!("prctl(PR_SET_NAME) failed{}", Errno(&error));
    }
    let numbers = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];
    let begun = Signals::take(&numbers)
        .and_then(|signals| Ok((signals, net::process::take_stdin()?)))
        .and_then(|(signals, fd)| net::run(serve(signals, fd, limits)));
    match begun {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(Told)) => ExitCode::from(FATAL),
        Err(error) => {
            emerg!("the worker process cannot run{}", Errno(&error));
            ExitCode::FAILURE
        }
    }
}

async fn serve(signals: Signals, fd: OwnedFd, limits: SharedLimits) -> Result<(), Told> {
    let not_called = |error| {
        let name = name().word;
        tell(format_args!(
            "{name}: only a master process can start a worker process{}\n",
            Errno(&error)
        ));
        Told
    };
    let channel = Rc::new(Channel::new(fd).map_err(not_called)?);
    let Some(first) = Parcel::receive(&channel).await.map_err(not_called)? else { return Ok(()) };
    let number = first.number;
    let (events, mailbox) = net::mailbox();
    // Before a configuration is read, and with the rights of the master.
    limits.join();
    let control = begin(first, &events)?;
    from_signals(signals, &events, Event::Signal);
    listen_to(channel.clone(), &events);
    let process = WorkerProcess { channel, control, events };
    process.report(Kind::Serving, number);
    process.serve(mailbox).await;
    Ok(())
}

/// Makes events of what the master says.
fn listen_to(channel: Rc<Channel>, events: &Sender<Event>) {
    let events = events.clone();
    net::spawn(async move {
        while let Ok(Some(parcel)) = Parcel::receive(&channel).await {
            events.send(Event::Parcel(Some(parcel)));
        }
        events.send(Event::Parcel(None));
    });
}

/// Switches to the configured user and starts to serve.
fn begin(first: Parcel, events: &Sender<Event>) -> Result<Control, Told> {
    let unpacked = unpack(first, &Zones::default())?;
    let Unpacked { bundle, loaded, sockets } = unpacked;
    ready::use_log(loaded.main_log.clone());
    ready::set_limits(&loaded.settings);
    if let Some(identity) = &bundle.identity {
        net::users::become_identity(identity).map_err(|failed| {
            emerg!("{}{}", failed.what, Errno(&failed.error));
            Told
        })?;
        if let Err(error) = net::process::allow_core_files() {
            alert!("prctl(PR_SET_DUMPABLE) failed{}", Errno(&error));
        }
    }
    if let Some(directory) = &loaded.settings.working_directory
        && let Err(error) = std::env::set_current_dir(directory)
    {
        alert!("chdir(\"{}\") failed{}", directory.display(), Errno(&error));
        return Err(Told);
    }
    Control::start(bundle.number, loaded, &bundle.slots, sockets, events)
}

/// A configuration read from its bundle, with its logs open.
struct Unpacked {
    bundle: Bundle,
    loaded: Loaded,
    sockets: Vec<(u32, OwnedFd)>,
}

fn unpack(parcel: Parcel, before: &Zones) -> Result<Unpacked, Told> {
    let mut descriptors = parcel.descriptors.into_iter();
    // The kernel drops the descriptors of a message that a process has no room for.
    let Some(file) = descriptors.next() else { return Err(no_room()) };
    let contents = channel::contents(file);
    let Some(bundle) = contents.ok().and_then(|bytes| Bundle::from_bytes(&bytes)) else {
        emerg!("the configuration from the master process cannot be read");
        return Err(Told);
    };
    if bundle.descriptors() != descriptors.len() {
        return Err(no_room());
    }
    let mut files = Replay::from_bytes(&bundle.recording).map_err(|error| {
        emerg!("{}", error.message);
        Told
    })?;
    let loaded = load::load_quietly(before, &bundle.origin, &mut files)?;
    if loaded.log_files.iter().count() != bundle.logs as usize {
        emerg!("the master process sent {} log files", bundle.logs);
        return Err(Told);
    }
    for (file, open) in loaded.log_files.iter().zip(descriptors.by_ref().take(bundle.logs as usize))
    {
        file.put(File::from(open));
    }
    let slots = bundle.slots.iter();
    let slots = slots.flat_map(|entry| std::iter::repeat_n(entry.slot, entry.sockets as usize));
    let sockets = slots.zip(descriptors).collect();
    Ok(Unpacked { bundle, loaded, sockets })
}

fn no_room() -> Told {
    emerg!(
        "recvmsg() lost the log files and sockets of the new configuration: too many open files \
         in the worker process; raise \"worker_rlimit_nofile\""
    );
    Told
}

struct WorkerProcess {
    channel: Rc<Channel>,
    control: Control,
    events: Sender<Event>,
}

impl WorkerProcess {
    async fn serve(mut self, mut events: Mailbox<Event>) {
        while let Some(event) = events.next().await {
            match event {
                Event::Signal(signal) => self.signal(signal),
                Event::Parcel(Some(parcel)) => self.parcel(parcel),
                // It continues to serve: another master may be started.
                Event::Parcel(None) => alert!("the master process is gone"),
                Event::GenerationOver(number) => self.control.generation_over(number),
                Event::CutBefore(number) => self.control.crew().cut_before(number),
                Event::WorkerLeft if !self.control.worker_left() => {}
                Event::TryAgain => {}
                Event::WorkerLeft | Event::Stop => break,
            }
        }
        notice!("exiting");
        observe::flush_all();
        notice!("exit");
    }

    fn parcel(&mut self, parcel: Parcel) {
        match parcel.kind {
            Kind::Serve => {
                let number = parcel.number;
                let served = self.replace(parcel);
                let kind = if served.is_ok() { Kind::Serving } else { Kind::Refused };
                self.report(kind, number);
            }
            Kind::Reopen => self.reopen(parcel),
            Kind::Quit => self.quit(),
            Kind::Terminate => self.stop(),
            Kind::Serving | Kind::Refused => {}
        }
    }

    fn replace(&mut self, parcel: Parcel) -> Result<(), Told> {
        let Unpacked { bundle, loaded, sockets } = unpack(parcel, self.control.zones())?;
        self.control.serve(bundle.number, loaded, &bundle.slots, sockets)
    }

    fn report(&self, kind: Kind, number: u64) {
        let channel = self.channel.clone();
        net::spawn(async move {
            if let Err(error) = Parcel::new(kind, number).send(&channel).await {
                alert!("sendmsg() to the master process failed{}", Errno(&error));
            }
        });
    }

    /// The master reopened the logs with its rights.
    fn reopen(&self, parcel: Parcel) {
        notice!("reopening logs");
        if parcel.number != self.control.number() {
            return;
        }
        for (file, open) in self.control.log_files().iter().zip(parcel.descriptors) {
            file.put(File::from(open));
        }
        ready::use_log(observe::main_log());
        self.control.crew().reopened();
    }

    fn quit(&self) {
        notice!("gracefully shutting down");
        net::title::set(&format!("{}: worker process is shutting down", name().word));
        self.control.leave();
    }

    fn stop(&self) {
        self.control.crew().stop();
        later(&self.events, STOP_MAX, Event::Stop);
    }

    fn signal(&self, signal: Signal) {
        match signal.number {
            SIGQUIT | SIGWINCH => {
                log_signal(signal, "shutting down");
                self.quit();
            }
            SIGTERM | SIGINT => {
                log_signal(signal, "exiting");
                self.stop();
            }
            SIGUSR1 => {
                log_signal(signal, "reopening logs");
                notice!("reopening logs");
                ready::reopen(self.control.log_files(), None);
                self.control.crew().reopened();
            }
            _ => log_signal(signal, "ignoring"),
        }
    }
}

//! The worker process: receives configurations and serves them, as an ordinary user.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use conf::Replay;
use net::channel::{self, Channel};
use net::signals::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, Signal, Signals};
use net::{Mailbox, MailboxSender};
use observe::{Errno, tell};
use session::steering::{self, SteeringCall, SteeringReply, SteeringRequest};
use zones::Zones;

use crate::config_snapshot::ConfigSnapshot;
use crate::control::Control;
use crate::control_socket::replies;
use crate::event::{Event, from_signals, later, log_signal};
use crate::ipc::{Message, MessageKind};
use crate::load::{self, LoadedConfig};
use crate::log::{alert, emerg, notice};
use crate::messages::Reported;
use crate::name::name;
use crate::ready;
use crate::shared_limits::SharedLimits;
use crate::steering::{WorkerChange, catch_up};

/// The exit code of an error that starting again would repeat.
const FATAL: u8 = 2;
/// How long workers may take to flush their logs when told to stop.
const STOP_MAX: Duration = Duration::from_millis(500);

/// Serves until the master or a signal ends it.
pub fn run() -> ExitCode {
    let limits = SharedLimits::inherit(None);
    observe::stderr_copies(false);
    net::title::set(&format!("{}: worker process", name().word));
    // Started as /proc/self/exe, its name in the kernel is "exe".
    if let Err(error) = net::process::set_name(name().word) {
        alert!("prctl(PR_SET_NAME) failed{}", Errno(&error));
    }
    let numbers = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];
    let begun = Signals::take(&numbers)
        .and_then(|signals| Ok((signals, net::process::take_stdin()?)))
        .and_then(|(signals, fd)| net::run(serve(signals, fd, limits)));
    match begun {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(Reported)) => ExitCode::from(FATAL),
        Err(error) => {
            emerg!("the worker process cannot run{}", Errno(&error));
            ExitCode::FAILURE
        }
    }
}

async fn serve(signals: Signals, fd: OwnedFd, limits: SharedLimits) -> Result<(), Reported> {
    let not_called = |error| {
        let name = name().word;
        tell(format_args!(
            "{name}: only a master process can start a worker process{}\n",
            Errno(&error)
        ));
        Reported
    };
    let channel = Rc::new(Channel::new(fd).map_err(not_called)?);
    let (outbox, messages) = net::mailbox();
    let receive = async || Message::receive(&channel).await.map_err(not_called);
    let Some(readiness) = receive().await? else { return Ok(()) };
    let Some(first) = receive().await? else { return Ok(()) };
    let number = first.number;
    let (events, mailbox) = net::mailbox();
    let asks = events.clone();
    steering::pass_on_by(move |call| asks.send(Event::Asked(call)));
    // Needs the rights of the master, and has to precede reading a configuration.
    limits.join();
    let (control, is_trial) = begin(first, readiness.number > 0, &events)?;
    from_signals(signals, &events, Event::Signal);
    listen_to(channel.clone(), &events);
    net::spawn(deliver(channel, messages));
    let process = WorkerProcess {
        outbox,
        control,
        events,
        is_trial,
        asked: HashMap::new(),
        last_asked: 0,
        has_master: true,
    };
    process.report(MessageKind::Serving, number);
    process.serve(mailbox).await;
    Ok(())
}

/// Converts messages of the master to events.
fn listen_to(channel: Rc<Channel>, events: &MailboxSender<Event>) {
    let events = events.clone();
    net::spawn(async move {
        while let Ok(Some(message)) = Message::receive(&channel).await {
            events.send(Event::Message(Some(message)));
        }
        events.send(Event::Message(None));
    });
}

/// Sends messages to the master, one after another.
async fn deliver(channel: Rc<Channel>, mut messages: Mailbox<Message>) {
    while let Some(message) = messages.next().await {
        if let Err(error) = message.send(&channel).await {
            alert!("sendmsg() to the master process failed{}", Errno(&error));
        }
    }
}

/// Switches to the configured user and starts to serve. Also returns whether it is a trial.
fn begin(
    first: Message,
    is_ready: bool,
    events: &MailboxSender<Event>,
) -> Result<(Control, bool), Reported> {
    let unpacked = unpack(first, &Zones::default())?;
    let Unpacked { snapshot, loaded, sockets } = unpacked;
    ready::use_log(loaded.main_log.clone());
    ready::set_limits(&loaded.settings);
    if let Some(identity) = &snapshot.identity {
        net::users::become_identity(identity).map_err(|failed| {
            emerg!("{}{}", failed.what, Errno(&failed.error));
            Reported
        })?;
        if let Err(error) = net::process::allow_core_files() {
            alert!("prctl(PR_SET_DUMPABLE) failed{}", Errno(&error));
        }
    }
    if let Some(directory) = &loaded.settings.working_directory
        && let Err(error) = std::env::set_current_dir(directory)
    {
        alert!("chdir(\"{}\") failed{}", directory.display(), Errno(&error));
        return Err(Reported);
    }
    let control =
        Control::start(snapshot.number, is_ready, loaded, &snapshot.slots, sockets, events)?;
    Ok((control, snapshot.origin.is_trial))
}

/// A configuration read from its snapshot, with its logs open.
struct Unpacked {
    snapshot: ConfigSnapshot,
    loaded: LoadedConfig,
    sockets: Vec<(u32, OwnedFd)>,
}

fn unpack(message: Message, before: &Zones) -> Result<Unpacked, Reported> {
    let mut descriptors = message.descriptors.into_iter();
    // The kernel drops descriptors of a message that exceed the process's limit.
    let Some(file) = descriptors.next() else { return Err(no_room()) };
    let contents = channel::contents(file);
    let Some(snapshot) = contents.ok().and_then(|bytes| ConfigSnapshot::from_bytes(&bytes)) else {
        emerg!("the configuration from the master process cannot be read");
        return Err(Reported);
    };
    if snapshot.descriptors() != descriptors.len() {
        return Err(no_room());
    }
    let mut files = Replay::from_bytes(&snapshot.recording).map_err(|error| {
        emerg!("{}", error.message);
        Reported
    })?;
    let loaded = load::load_quietly(before, &snapshot.origin, &mut files)?;
    if loaded.log_files.iter().count() != snapshot.logs as usize {
        emerg!("the master process sent {} log files", snapshot.logs);
        return Err(Reported);
    }
    for (file, open) in
        loaded.log_files.iter().zip(descriptors.by_ref().take(snapshot.logs as usize))
    {
        file.put(File::from(open));
    }
    let slots = snapshot.slots.iter();
    let slots = slots.flat_map(|entry| std::iter::repeat_n(entry.slot, entry.sockets as usize));
    let sockets = slots.zip(descriptors).collect();
    let changes = snapshot.changes.iter().filter_map(|bytes| WorkerChange::from_bytes(bytes));
    catch_up(&changes.collect::<Vec<_>>(), &loaded.sites);
    Ok(Unpacked { snapshot, loaded, sockets })
}

fn no_room() -> Reported {
    emerg!(
        "recvmsg() lost the log files and sockets of the new configuration: too many open files \
         in the worker process; raise \"worker_rlimit_nofile\""
    );
    Reported
}

struct WorkerProcess {
    outbox: MailboxSender<Message>,
    control: Control,
    events: MailboxSender<Event>,
    is_trial: bool,
    /// The requests that the master has not answered, by their numbers.
    asked: HashMap<u64, MailboxSender<SteeringReply>>,
    last_asked: u64,
    has_master: bool,
}

/// The most requests of a process that wait for the master's answer.
const ASKED_MAX: usize = 1000;

impl WorkerProcess {
    async fn serve(mut self, mut events: Mailbox<Event>) {
        while let Some(event) = events.next().await {
            match event {
                Event::Signal(signal) => self.signal(signal),
                Event::Message(Some(message)) => self.message(message),
                Event::Message(None) => self.master_gone(),
                Event::GenerationOver(number) => self.control.generation_over(number),
                Event::CutBefore(number) => self.control.workers().cut_before(number),
                Event::WorkerLeft if !self.control.worker_left() => {}
                Event::TryAgain | Event::Stored(_) | Event::Called(_) => {}
                Event::ShowLife | Event::DelayOver => {}
                Event::Asked(call) => self.ask(call),
                Event::WorkerLeft | Event::Stop => break,
            }
        }
        self.control.finish().await;
        notice!("exiting");
        observe::flush_all();
        notice!("exit");
    }

    /// A server continues without its master, because another one may be started; a trial ends.
    fn master_gone(&mut self) {
        alert!("the master process is gone");
        // Their senders end, and with them the wait.
        self.asked.clear();
        self.has_master = false;
        if self.is_trial {
            self.stop();
        }
    }

    fn message(&mut self, message: Message) {
        match message.kind {
            MessageKind::Serve => {
                let number = message.number;
                let served = self.replace(message);
                let kind = if served.is_ok() { MessageKind::Serving } else { MessageKind::Refused };
                self.report(kind, number);
            }
            MessageKind::Reopen => self.reopen(message),
            MessageKind::Quit => self.quit(),
            MessageKind::Terminate => self.stop(),
            MessageKind::Change => self.change(&message),
            MessageKind::Answer => self.answered(&message),
            MessageKind::Ask => self.show(&message),
            MessageKind::Readiness => self.control.turn_readiness(message.number > 0),
            MessageKind::Serving | MessageKind::Refused | MessageKind::Changed => {}
        }
    }

    fn replace(&mut self, message: Message) -> Result<(), Reported> {
        let Unpacked { snapshot, loaded, sockets } = unpack(message, self.control.zones())?;
        self.control.serve(snapshot.number, loaded, &snapshot.slots, sockets)
    }

    fn report(&self, kind: MessageKind, number: u64) {
        self.outbox.send(Message::new(kind, number));
    }

    fn change(&mut self, message: &Message) {
        let made = match WorkerChange::from_bytes(&message.bytes) {
            Some(change) => self.control.change(&change),
            None => {
                alert!("a change from the master process cannot be read");
                Ok(())
            }
        };
        let bytes = made.err().unwrap_or_default().into_bytes();
        let changed = Message::new(MessageKind::Changed, message.number);
        self.outbox.send(Message { bytes, ..changed });
    }

    /// Passes a request of the API on to the master.
    fn ask(&mut self, call: SteeringCall) {
        // Without an entry, the sender ends, and with it the wait.
        if self.asked.len() < ASKED_MAX && self.has_master {
            self.last_asked += 1;
            self.asked.insert(self.last_asked, call.reply);
            let bytes = call.request.to_bytes();
            let ask = Message { bytes, ..Message::new(MessageKind::Ask, self.last_asked) };
            self.outbox.send(ask);
        }
    }

    /// Answers a request that the master has received for a job, or for a page about the program.
    fn show(&mut self, message: &Message) {
        let Some(request) = SteeringRequest::from_bytes(&message.bytes) else { return };
        let (reply, mut answers) = net::mailbox();
        if let Some(call) = self.control.called(SteeringCall { request, reply }) {
            call.reply.send(replies::page(&call.request));
        }
        let (outbox, number) = (self.outbox.clone(), message.number);
        net::spawn(async move {
            let unanswered = SteeringReply { status: 503, ..SteeringReply::default() };
            let bytes = answers.next().await.unwrap_or(unanswered).to_bytes();
            outbox.send(Message { bytes, ..Message::new(MessageKind::Answer, number) });
        });
    }

    fn answered(&mut self, message: &Message) {
        let reply = self.asked.remove(&message.number);
        if let Some((to, reply)) = reply.zip(SteeringReply::from_bytes(&message.bytes)) {
            to.send(reply);
        }
    }

    /// The master reopened the logs with its rights.
    fn reopen(&self, message: Message) {
        notice!("reopening logs");
        if message.number != self.control.number() {
            return;
        }
        for (file, open) in self.control.log_files().iter().zip(message.descriptors) {
            file.put(File::from(open));
        }
        ready::use_log(observe::main_log());
        self.control.workers().reopened();
    }

    fn quit(&mut self) {
        notice!("gracefully shutting down");
        net::title::set(&format!("{}: worker process is shutting down", name().word));
        self.control.leave();
    }

    fn stop(&self) {
        self.control.workers().stop();
        later(&self.events, STOP_MAX, Event::Stop);
    }

    fn signal(&mut self, signal: Signal) {
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
                self.control.workers().reopened();
            }
            _ => log_signal(signal, "ignoring"),
        }
    }
}

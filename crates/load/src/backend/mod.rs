//! `weir backend`: a backend for tests and measurements.
//!
//! Its options decide whether it answers normally, late, incorrectly or not at all; it counts
//! requests.
//! It is cheap: its replies are prepared in advance. Deliberately absent: files, routes, TLS.
//!
//! ```text
//! settings -> sockets -> threads: accept -> serve (place: counts, pool) -> reply
//! ```

mod body;
mod complaint;
mod echo;
mod faults;
mod link;
mod log;
mod pause;
mod place;
mod pool;
mod reply;
mod serve;
mod settings;
mod sockets;
mod stats;
mod table;
mod work;

use std::ffi::OsString;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use net::{Datagrams, Listener, Mailbox, MailboxSender, signals};

use complaint::complain;
use log::ThreadLog;
use place::{BackendShared, ServedAddress};
use settings::BackendSettings;
use sockets::{OpenAddress, Sort, ThreadSocket};

/// Descriptors to reserve from the start. More are not an error.
const DESCRIPTORS: u64 = 16 * 1024;
/// The pause of accepting when there are no descriptors left.
const RELIEF: Duration = Duration::from_millis(100);

/// The text of `--version` or `--help`.
fn answer(arguments: &[OsString]) -> String {
    match arguments.iter().any(|word| word == "-v" || word == "--version") {
        true => format!("weir backend {}\n", env!("CARGO_PKG_VERSION")),
        false => table::help(),
    }
}

/// Runs the backend with these arguments until a signal ends it.
pub fn run(arguments: &[OsString]) -> Result<(), String> {
    let Some(mut settings) = BackendSettings::read(arguments)? else {
        return print(&answer(arguments));
    };
    settings.work.spin.calibrate();
    // Signals that are blocked here are blocked in every thread.
    let ends = signals::Signals::take(&[signals::SIGINT, signals::SIGTERM])
        .map_err(|error| format!("signalfd(): {error}"))?;
    let _ = net::process::raise_open_files_limit();
    let _ = net::process::reserve_descriptors(DESCRIPTORS);
    let log = settings.log.as_deref().map(ThreadLog::create).transpose()?;
    let open = sockets::open(&settings)?;
    let names: Vec<_> = open.iter().map(|open| open.name.clone()).collect();
    let backend = Arc::new(BackendShared::new(settings, names.clone()));
    let crew = start(&backend, &open, log.as_ref())?;
    names.iter().try_for_each(|name| print(&format!("listening on {name}\n")))?;
    wait_for_end(ends)?;
    for (orders, thread) in crew {
        orders.send(());
        thread.join().map_err(|_| "a thread panicked")?;
    }
    open.iter().for_each(OpenAddress::close);
    crate::tell(&format!("{}\n", backend.stats.text()));
    Ok(())
}

/// Prints to standard output, without buffering.
fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| format!("standard output: {error}"))
}

fn wait_for_end(ends: signals::Signals) -> Result<(), String> {
    let waited = net::run(async {
        let (sender, mut came) = net::mailbox();
        let _reader = net::spawn(async move {
            let _ = ends.each(|_| sender.send(())).await;
        });
        came.next().await;
    });
    waited.map_err(|error| format!("epoll: {error}"))
}

/// A thread, and the channel to end it.
type BackendThread = (MailboxSender<()>, JoinHandle<()>);

fn start(
    backend: &Arc<BackendShared>,
    open: &[OpenAddress],
    log: Option<&ThreadLog>,
) -> Result<Vec<BackendThread>, String> {
    let mut crew = Vec::new();
    for number in 0..backend.settings.threads {
        let sockets: Vec<_> =
            open.iter().map(|open| open.share(number)).collect::<Result<_, _>>()?;
        let log = log.map(ThreadLog::share).transpose()?;
        let (sender, orders) = net::mailbox();
        let backend = backend.clone();
        let work = move || {
            if let Err(error) = net::run(work(backend, number, sockets, log, orders)) {
                complain(&format!("thread {number}: {error}"));
            }
        };
        let thread = std::thread::Builder::new().name(format!("backend {number}")).spawn(work);
        crew.push((sender, thread.map_err(|error| format!("a thread: {error}"))?));
    }
    Ok(crew)
}

/// Runs a thread: serves every address until it is told to end.
async fn work(
    backend: Arc<BackendShared>,
    thread: usize,
    sockets: Vec<Option<ThreadSocket>>,
    log: Option<ThreadLog>,
    mut orders: Mailbox<()>,
) {
    let log = log.map(Rc::new);
    if let Some(log) = log.clone() {
        net::at_turn_end(move || log.flush());
    }
    for (socket, port) in sockets.into_iter().zip(0..) {
        let place = ServedAddress { backend: backend.clone(), port, thread, log: log.clone() };
        if let Some(socket) = socket {
            net::spawn(attend(socket, Rc::new(place)));
        }
    }
    orders.next().await;
}

/// Serves the connections or datagrams of a socket.
async fn attend(socket: ThreadSocket, place: Rc<ServedAddress>) {
    let result = match socket.sort {
        Sort::Udp => match Datagrams::new(socket.fd) {
            Ok(datagrams) => return echo::datagrams(datagrams, place).await,
            Err(error) => Err(error),
        },
        Sort::Http | Sort::Tcp => Listener::new(socket.fd),
    };
    let listener = match result {
        Ok(listener) => listener,
        Err(error) => return complain(&format!("epoll_ctl(): {error}")),
    };
    loop {
        match (listener.accept().await, socket.sort) {
            (Ok((fd, _)), Sort::Http) => drop(net::spawn(serve::serve(fd, place.clone()))),
            (Ok((fd, _)), _) => drop(net::spawn(echo::serve(fd, place.clone()))),
            (Err(error), _) => {
                complain(&format!("accept(): {error}"));
                net::sleep(RELIEF).await;
            }
        }
    }
}

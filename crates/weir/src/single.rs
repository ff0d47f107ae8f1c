//! Serving in this process: its first thread controls, the others work.

use std::sync::Arc;

use net::signals::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, Signals};

use crate::command_line::CommandLine;
use crate::load::Loaded;
use crate::log::{Log, reason};
use crate::{Told, pid_file};

/// The listening sockets, by worker.
pub type Sockets = Vec<Vec<std::os::fd::OwnedFd>>;

/// Opens one socket for each address and worker.
pub fn open_sockets(loaded: &Loaded, log: &mut Log) -> Result<Sockets, Told> {
    let mut sockets = Sockets::new();
    for _ in 0..loaded.settings.worker_processes.max(1) {
        let mut own = Vec::new();
        for listen in loaded.site.listens() {
            let socket = net::listen(&listen.address, &listen.options).map_err(|error| {
                log.emerg(format!("bind() to {} failed ({})", listen.address, reason(&error)));
                Told
            })?;
            own.push(socket);
        }
        sockets.push(own);
    }
    Ok(sockets)
}

/// Serves until a signal ends it.
pub fn run(
    _command: &CommandLine,
    loaded: Loaded,
    sockets: Sockets,
    mut log: Log,
) -> Result<(), Told> {
    let signals = Signals::take(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1]).map_err(|error| {
        log.emerg(format!("signalfd() failed ({})", reason(&error)));
        Told
    })?;
    log.notice("start worker processes");
    for own in sockets {
        let site = loaded.site.clone();
        std::thread::spawn(move || work(site, own));
    }
    use std::os::fd::AsFd;
    loop {
        let _ = net::process::wait_readable(&[signals.as_fd()], None);
        while let Ok(Some(signal)) = signals.next() {
            match signal.number {
                SIGINT | SIGTERM | SIGQUIT => {
                    pid_file::remove(&loaded.settings.pid, &mut log);
                    log.notice("exit");
                    return Ok(());
                }
                SIGUSR1 => log.reopen(),
                _ => {}
            }
        }
    }
}

fn work(site: Arc<http::Site>, sockets: Vec<std::os::fd::OwnedFd>) {
    let _ = net::run(async move {
        let worker = http::Worker::new(http::Generation::new(site, 1));
        for (number, socket) in sockets.into_iter().enumerate() {
            if let Ok(listener) = net::Listener::new(socket) {
                net::spawn(worker.clone().accept(listener, number as u32));
            }
        }
        std::future::pending::<()>().await;
    });
}

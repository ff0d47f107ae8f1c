//! From a configuration to a running server, and `-s`, which talks to one.

use crate::command_line::{CommandLine, Request};
use crate::load::Loaded;
use crate::log::{Log, reason};
use crate::name::name;
use crate::settings::Settings;
use crate::{Told, pid_file, single};

/// Sends a running master what `-s` asks.
pub fn signal(request: Request, settings: &Settings, log: &mut Log) -> Result<(), Told> {
    log.notice("signal process started");
    let process = pid_file::read(&settings.pid, log)?;
    let number = request.number();
    net::signals::send(process, number).map_err(|error| {
        log.alert(format!("kill({process}, {number}) failed ({})", reason(&error)));
        Told
    })
}

/// Becomes the server.
pub fn start(command: &CommandLine, loaded: Loaded, mut log: Log) -> Result<(), Told> {
    let sockets = single::open_sockets(&loaded, &mut log)?;
    let mut log = loaded.settings.open_logs(command, &mut log)?;
    log.notice(format!("{}/{}", name().word, name().version));
    if loaded.settings.daemon {
        net::process::daemonize().map_err(|error| {
            log.emerg(format!("fork() failed ({})", reason(&error)));
            Told
        })?;
    }
    pid_file::write(&loaded.settings.pid, &mut log)?;
    log.also_stderr = false;
    single::run(command, loaded, sockets, log)
}

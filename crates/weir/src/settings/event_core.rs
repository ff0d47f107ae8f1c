//! `events {}`: nginx's event core and epoll modules.

use std::sync::Arc;

use conf::{Directive, Load, Milliseconds, Number, Result, Value};

use super::ProgramSettings;
use super::debug_connection::Clients;
use super::values::{NoEffect, OffOnly};

conf::directives! {
    in EVENTS;

    /// The largest number of connections that one worker holds, to clients and to servers together.
    ///
    /// Syntax: NUMBER
    ///
    /// ```nginx
    /// events {
    ///     worker_connections 4096;
    /// }
    /// ```
    worker_connections: WorkerConnections = "512",
    /// How the server waits for events.
    ///
    /// Syntax: epoll
    /// Default: epoll
    /// Differs: epoll is the only method; any other is an error.
    ///
    /// ```nginx
    /// use epoll;
    /// ```
    r#use: Option<EventMethod>,
    /// Whether a worker accepts every waiting connection when it wakes up, instead of one.
    ///
    /// Differs: no effect; it always accepts all.
    ///
    /// ```nginx
    /// multi_accept on;
    /// ```
    multi_accept: bool = "off",
    /// Whether workers take turns to accept connections.
    ///
    /// Syntax: on | off
    /// Differs: `on` has no effect, because each worker has its own listening sockets.
    accept_mutex: OffOnly = "off",
    /// How long a worker that has run out of descriptors waits before it accepts again.
    ///
    /// Differs: in nginx this is also how long a worker waits for its turn to accept.
    accept_mutex_delay: Milliseconds = "500ms",
    /// Logs connections from these addresses at the level `debug`.
    ///
    /// Syntax: ADDRESS | CIDR | unix:
    ///
    /// ```nginx
    /// debug_connection 127.0.0.1;
    /// ```
    debug_connection: Vec<Clients>,
    /// How many events are read from the kernel at once.
    ///
    /// Syntax: NUMBER
    /// Differs: no effect; the number is fixed.
    epoll_events: Option<NoEffect<Number>>,
    /// The largest number of asynchronous disk operations in progress.
    ///
    /// Syntax: NUMBER
    /// Differs: no effect; threads read files.
    worker_aio_requests: Option<NoEffect<Number>>,
}

#[derive(Clone, Copy)]
pub struct WorkerConnections(usize);

impl Value for WorkerConnections {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let number = conf::units::number(&word.text).and_then(|n| usize::try_from(n).ok());
        number.map(Self).ok_or_else(|| from.error_at(word, format!("invalid number \"{word}\"")))
    }
}

/// `use`.
#[derive(Clone, Copy)]
pub struct EventMethod;

impl Value for EventMethod {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        if &*word.text != b"epoll" {
            let error = from.error_at(word, format!("invalid event type \"{word}\""));
            return Err(error.help("on Linux the event type is always \"epoll\"; remove this line"));
        }
        Ok(Self)
    }
}

/// Passes the settings to the program.
pub fn install(conf: &Arc<Conf>, settings: &mut ProgramSettings) -> Result<()> {
    settings.worker_connections = conf.worker_connections.0;
    settings.accept_mutex_delay_ms = conf.accept_mutex_delay.0;
    settings.debug_connections = conf.debug_connection.iter().flat_map(|c| c.0.clone()).collect();
    Ok(())
}

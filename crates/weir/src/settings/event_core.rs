//! `events {}`: nginx's event core and epoll modules.

use std::sync::Arc;

use conf::{Directive, Load, Milliseconds, Number, Result, Value};

use super::Settings;
use super::debug_connection::Clients;
use super::values::{NoEffect, OffOnly};

conf::directives! {
    in EVENTS;

    /// Connections that one worker holds at most.
    worker_connections: Connections = "512",
    /// The system's way to wait for events: epoll.
    r#use: Option<Method>,
    /// Whether a worker takes every connection that waits when it wakes.
    multi_accept: bool = "off",
    /// Whether workers take turns to accept. Here each has sockets of its own.
    accept_mutex: OffOnly = "off",
    /// How long a worker waits for its turn, or after it ran out of descriptors.
    accept_mutex_delay: Milliseconds = "500ms",
    /// Addresses whose connections are logged in all detail.
    debug_connection: Vec<Clients>,
    /// Events taken from the kernel at once. Here the number is fixed.
    epoll_events: Option<NoEffect<Number>>,
    /// Outstanding asynchronous disk operations. Here threads read, as many as there are.
    worker_aio_requests: Option<NoEffect<Number>>,
}

/// `worker_connections`.
#[derive(Clone, Copy)]
pub struct Connections(usize);

impl Value for Connections {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let number = conf::units::number(&word.text).and_then(|n| usize::try_from(n).ok());
        number.map(Self).ok_or_else(|| from.error_at(word, format!("invalid number \"{word}\"")))
    }
}

/// `use`.
#[derive(Clone, Copy)]
pub struct Method;

/// Methods of other systems and builds.
const OTHERS: [&[u8]; 6] = [b"select", b"poll", b"kqueue", b"/dev/poll", b"eventport", b"iocp"];

impl Value for Method {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        if OTHERS.contains(&&*word.text) {
            let message = format!("event type \"{word}\" is not supported, \"epoll\" is used");
            load.warn(from.error_at(word, message));
        } else if &*word.text != b"epoll" {
            return Err(from.error_at(word, format!("invalid event type \"{word}\"")));
        }
        Ok(Self)
    }
}

/// Hands the settings to the program.
pub fn install(conf: &Arc<Conf>, settings: &mut Settings) -> Result<()> {
    settings.worker_connections = conf.worker_connections.0;
    settings.accept_mutex_delay_ms = conf.accept_mutex_delay.0;
    settings.debug_connections = conf.debug_connection.iter().flat_map(|c| c.0.clone()).collect();
    Ok(())
}

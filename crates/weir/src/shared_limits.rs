//! Memory that worker processes share: upstream limits, the secret of session tickets, metrics.
//!
//! The first master creates it. Worker processes inherit its descriptors, and so does the program
//! that replaces this one in an upgrade; environment variables have the numbers. Without it each
//! worker process has its own limits and its own secret, and the log says so.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use net::process::Launch;
use net::tls::RotatingTicketKeys;
use observe::{Errno, Level};
use session::limits;

use crate::log::{alert, notice};

/// The variables that have the numbers of the descriptors.
const LIMITS: &str = "WEIR_LIMITS";
const TICKETS: &str = "WEIR_TICKETS";
const METRICS: &str = "WEIR_METRICS";

/// The memory, if there is any.
#[derive(Default)]
pub struct SharedLimits {
    limits: Option<OwnedFd>,
    tickets: Option<OwnedFd>,
    metrics: Option<OwnedFd>,
}

impl SharedLimits {
    /// The memory that this program has inherited. Call it before any file is opened. `sockets` are
    /// the descriptors that are inherited as sockets: `5;6;`.
    pub fn inherit(sockets: Option<&str>) -> Self {
        let is_socket = |number: &i32| {
            let mut names = sockets.unwrap_or_default().split([';', ':']);
            names.any(|name| name.parse() == Ok(*number))
        };
        let descriptor = |variable| {
            let number = std::env::var(variable).ok()?.parse::<i32>().ok();
            number.filter(|number| !is_socket(number)).and_then(net::process::inherited)
        };
        Self {
            limits: descriptor(LIMITS),
            tickets: descriptor(TICKETS),
            metrics: descriptor(METRICS),
        }
    }

    /// For a master: the inherited memory if it has the right layout, else new memory.
    pub fn or_create(self) -> Self {
        let created = |created: std::io::Result<OwnedFd>| {
            created.inspect_err(|error| alert!("memfd_create() failed{}", Errno(error))).ok()
        };
        let limits = self.limits.filter(|memory| match limits::check(memory.as_fd()) {
            Ok(()) => true,
            Err(error) => {
                notice!("upstream limits are not shared with the previous program: {error}");
                false
            }
        });
        let metrics = self.metrics.filter(|memory| metrics::check(memory.as_fd()).is_ok());
        Self {
            limits: limits.or_else(|| created(limits::create())),
            tickets: self.tickets.or_else(|| created(RotatingTicketKeys::create_shared())),
            metrics: metrics.or_else(|| created(metrics::create())),
        }
    }

    /// Counts in the shared memory from now on.
    pub fn join_metrics(&self) {
        if let Some(memory) = &self.metrics
            && let Err(error) = metrics::join(memory.as_fd())
        {
            let text = "metrics are not shared with other processes";
            observe::log(Level::Warn, format_args!("{text}: {error}"));
        }
    }

    /// For a worker process: shares everything from now on.
    pub fn join(self) {
        self.join_metrics();
        if let Some(memory) = self.limits
            && let Err(error) = limits::join(memory.as_fd())
        {
            let text = "upstream limits are not shared with other worker processes";
            observe::log(Level::Warn, format_args!("{text}: {error}"));
        }
        if let Some(memory) = self.tickets
            && let Err(error) = RotatingTicketKeys::join_shared(memory)
        {
            let text = "keys of session tickets are not shared with other worker processes";
            observe::log(Level::Warn, format_args!("{text}: {error}"));
        }
    }

    /// Passes it to a process that is about to be started.
    pub fn hand_to(&self, launch: Launch) -> Launch {
        let memory = [(LIMITS, &self.limits), (TICKETS, &self.tickets), (METRICS, &self.metrics)];
        memory.into_iter().fold(launch, |launch, (variable, memory)| match memory {
            Some(memory) => {
                launch.variable(variable, memory.as_raw_fd().to_string()).inherit(memory.as_fd())
            }
            None => launch,
        })
    }
}

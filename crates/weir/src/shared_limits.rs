//! The memory through which worker processes share upstream limits.
//!
//! The first master creates it. Worker processes inherit its descriptor, and so does the program
//! that replaces this one in an upgrade; an environment variable has the number. Without it each
//! worker process keeps its own limits, and the log says so.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use net::process::Launch;
use observe::{Errno, Level};

use crate::log::{alert, notice};

/// The variable that has the number of the descriptor.
const VARIABLE: &str = "WEIR_LIMITS";

/// The memory, if there is any.
#[derive(Default)]
pub struct SharedLimits(Option<OwnedFd>);

impl SharedLimits {
    /// The memory that was handed to this program. Call it before any file is opened. `sockets`:
    /// the descriptors that are inherited as sockets: `5;6;`.
    pub fn inherit(sockets: Option<&str>) -> Self {
        let number = std::env::var(VARIABLE).ok().and_then(|number| number.parse::<i32>().ok());
        let is_socket = |number: &i32| {
            let mut names = sockets.unwrap_or_default().split([';', ':']);
            names.any(|name| name.parse() == Ok(*number))
        };
        Self(number.filter(|number| !is_socket(number)).and_then(net::process::inherited))
    }

    /// For a master: the inherited memory if it has the right layout, else new memory.
    pub fn or_create(self) -> Self {
        if let Some(memory) = self.0 {
            match http::limits::check(memory.as_fd()) {
                Ok(()) => return Self(Some(memory)),
                Err(error) => {
                    notice!("upstream limits are not shared with the previous program: {error}")
                }
            }
        }
        let created = http::limits::create();
        Self(created.inspect_err(|error| alert!("memfd_create() failed{}", Errno(error))).ok())
    }

    /// For a worker process: shares the limits of the configurations that it reads from now on.
    pub fn join(self) {
        if let Some(memory) = self.0
            && let Err(error) = http::limits::join(memory.as_fd())
        {
            let text = "upstream limits are not shared with other worker processes";
            observe::log(Level::Warn, format_args!("{text}: {error}"));
        }
    }

    /// Hands it to a process that is to be started.
    pub fn hand_to(&self, launch: Launch) -> Launch {
        match &self.0 {
            Some(memory) => {
                launch.variable(VARIABLE, memory.as_raw_fd().to_string()).inherit(memory.as_fd())
            }
            None => launch,
        }
    }
}

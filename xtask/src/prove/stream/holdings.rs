//! What a server has at one time.

use std::thread;
use std::time::{Duration, Instant};

use processes::procfs;
use processes::server::MeasuredServer;

/// How long a server may take to close what its clients have closed.
const SETTLE_MAX: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Holdings {
    pub(super) descriptors: usize,
    pub(super) bytes: f64,
}

impl Holdings {
    pub(super) fn of(server: &MeasuredServer) -> Result<Self, String> {
        let descriptors = procfs::descriptors(server.pid());
        Ok(Self { descriptors, bytes: procfs::memory(server.pid())? })
    }
}

/// What the server has once it has at most so many descriptors, or time is up.
pub(super) fn settled(server: &MeasuredServer, descriptors: usize) -> Result<Holdings, String> {
    wait(server, |holdings| holdings.descriptors <= descriptors)
}

/// What it has once it has so many descriptors.
pub(super) fn settled_above(
    server: &MeasuredServer,
    descriptors: usize,
) -> Result<Holdings, String> {
    let holdings = wait(server, |holdings| holdings.descriptors >= descriptors)?;
    match holdings.descriptors >= descriptors {
        true => Ok(holdings),
        false => Err(format!("it has {} descriptors, of {descriptors}", holdings.descriptors)),
    }
}

fn wait(
    server: &MeasuredServer,
    is_settled: impl Fn(&Holdings) -> bool,
) -> Result<Holdings, String> {
    let end = Instant::now() + SETTLE_MAX;
    loop {
        let holdings = Holdings::of(server)?;
        if is_settled(&holdings) || Instant::now() > end {
            return Ok(holdings);
        }
        thread::sleep(LOOK);
    }
}

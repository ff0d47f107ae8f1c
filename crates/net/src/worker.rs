//! A worker: an event loop with its deadlines, and threads beside it for blocking disk operations.

use std::io;

use crate::timer::WheelDriver;
use crate::{event_loop, offload, spawn};

/// Runs a worker on this thread until `main` is done. The remaining tasks are dropped.
pub fn run<T>(main: impl Future<Output = T>) -> io::Result<T> {
    let done = event_loop::run(async {
        spawn(WheelDriver::new()?.run());
        Ok(main.await)
    });
    offload::close();
    done?
}

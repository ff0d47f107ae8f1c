//! Upstream limits that several worker processes share while they serve side by side, after a
//! reload or during an upgrade. The mechanism is `upstream::limit::SharedTable`; this connects it
//! with the process and its control thread.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use ::upstream::StateMemory;
use ::upstream::limit::{SharedTable, TICK_MS};
use net::clock;
use zones::Zones;

use crate::control_job::ControlJob;

/// Creates the memory that worker processes share. The master passes it to each process it starts.
pub fn create() -> io::Result<OwnedFd> {
    SharedTable::create()
}

/// Checks that memory made by another version of the program has the layout of this one.
pub fn check(memory: BorrowedFd<'_>) -> io::Result<()> {
    SharedTable::check(memory)
}

/// Registers this process. The limits of configurations read from now on are shared.
pub fn join(memory: BorrowedFd<'_>) -> io::Result<()> {
    SharedTable::join(memory, clock::machine_ms).map(|table| StateMemory::process().share(table))
}

/// From the first configuration on that this process serves, its maxima apply to all processes.
/// While requests wait for slots that other processes may free, this job checks for free slots.
#[derive(Default)]
pub struct LimitSharing {
    is_serving: bool,
}

impl<S> ControlJob<S> for LimitSharing {
    /// Later configurations change maxima, but not the sharing.
    fn adopt(&mut self, _: &S, _: &Zones) {
        if !std::mem::replace(&mut self.is_serving, true)
            && let Some(table) = StateMemory::process().table()
        {
            serve(table.clone());
        }
    }

    /// It continues, because requests may still wait.
    fn leave(&mut self) {}
}

fn serve(table: Arc<SharedTable>) {
    table.serve();
    let (sender, mut calls) = net::mailbox();
    table.on_waiting(move || sender.send(()));
    net::spawn(async move {
        while calls.next().await.is_some() {
            let mut goes_on = true;
            while goes_on {
                net::sleep(Duration::from_millis(TICK_MS)).await;
                goes_on = table.tick(|| StateMemory::process().settle_queues());
            }
        }
    });
}

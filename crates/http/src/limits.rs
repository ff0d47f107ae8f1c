//! Upstream limits that several worker processes share while they serve side by side, after a
//! reload or during an upgrade. The mechanism is `upstream::limit::SharedTable`; this connects it
//! with the process and its runtime.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use ::upstream::StateMemory;
use ::upstream::limit::{SharedTable, TICK_MS};
use net::clock;

/// Makes the memory that worker processes share. The master hands it to each process it starts.
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

/// This process begins to serve: its maxima hold for all processes. While requests wait for slots
/// that other processes may free, this thread checks for them.
pub fn serve() {
    let Some(table) = StateMemory::process().table().cloned() else { return };
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

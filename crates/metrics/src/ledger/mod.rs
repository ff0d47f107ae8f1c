//! The memory of all counters: blocks that worker processes share, each with one owner.
//!
//! A block belongs to a worker thread, which alone writes it, or to nobody since its worker has
//! ended; then the next worker that counts under the same name goes on with it. So a sum over the
//! blocks of a name is everything that was ever counted, whatever workers and processes came and
//! went, and there are never more blocks of a name than there were workers at once.
//!
//! A process registers under a number and holds a file lock for it, which the kernel releases with
//! the process. Whoever can take the lock of a number may take its blocks. Blocks are made under
//! one more lock; a process that is killed while it makes one leaves memory that nobody sees.

mod blocks;
mod names;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use net::SharedWords;

use blocks::{MAGIC, WORDS};

pub(crate) use names::{BlockName, Ledger, LedgerHandle};

/// Creates the memory. The master passes it to each process it starts.
pub fn create() -> io::Result<OwnedFd> {
    let file = SharedWords::create(WORDS)?;
    blocks::format(&SharedWords::map(file.as_fd(), WORDS)?);
    Ok(file)
}

/// Checks that memory made by another version of the program has the layout of this one.
pub fn check(memory: BorrowedFd<'_>) -> io::Result<()> {
    map(memory).map(drop)
}

/// Registers this process. What it counts from now on is in that memory.
pub fn join(memory: BorrowedFd<'_>) -> io::Result<()> {
    process().join(map(memory)?)
}

fn map(memory: BorrowedFd<'_>) -> io::Result<SharedWords> {
    let words = SharedWords::map(memory, WORDS)?;
    match blocks::magic(&words) {
        MAGIC => Ok(words),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "another version's memory")),
    }
}

/// The ledger of this process.
pub(crate) fn process() -> MutexGuard<'static, Ledger> {
    static PROCESS: LazyLock<Mutex<Ledger>> = LazyLock::new(Mutex::default);
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for a process that has joined none.
fn own_memory() -> io::Result<SharedWords> {
    map(create()?.as_fd())
}

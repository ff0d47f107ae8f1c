//! The [table](SharedTable) as a file in memory, which processes inherit.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use net::SharedWords;

use super::layout::{ALL, MAGIC};
use super::table::SharedTable;

impl SharedTable {
    /// A new table, in which no process is registered.
    pub fn create() -> io::Result<OwnedFd> {
        let file = SharedWords::create(ALL)?;
        SharedWords::map(file.as_fd(), ALL)?[0].store(MAGIC, SeqCst);
        Ok(file)
    }

    /// Checks that a file is a table with this program's layout.
    pub fn check(file: BorrowedFd<'_>) -> io::Result<()> {
        map(file).map(drop)
    }

    /// Registers this process. `clock`: milliseconds, the same for all processes.
    pub fn join(file: BorrowedFd<'_>, clock: fn() -> u64) -> io::Result<Arc<Self>> {
        Self::join_words(map(file)?, clock)
    }
}

fn map(file: BorrowedFd<'_>) -> io::Result<SharedWords> {
    let words = SharedWords::map(file, ALL)?;
    match words[0].load(SeqCst) {
        MAGIC => Ok(words),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "another version's memory")),
    }
}

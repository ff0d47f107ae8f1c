//! The exact limit on requests in progress towards a server, and the fair queue of those that wait.
//!
//! A pure machine: no clock, no timer, no socket. Callers on any thread tell it the time, own the
//! timers, and say what a reusable connection is (`G`, the gift).
//!
//! ```text
//!   Slots::try_take ── a slot is free, nobody waits ──────────────> Slot ── drop, release_with
//!        │ none                                                      ^              │
//!        v                                                           │              v
//!   Line::join ── a place ──> Waiter ── poll: granted ───────────────┘      nobody waits: free
//!        │                       │                                          else: to the oldest
//!        v                       ├── poll: no server left                   waiter who may use
//!       Full                     └── give_up, drop                          that server
//! ```
//!
//! What holds at every moment, over all threads:
//! - never more slots of a server are in use than its maximum (once that is lowered: none is given
//!   until enough have come back);
//! - who may use a server gets it in the order of joining, and nobody overtakes;
//! - nobody waits for a server that has a free slot;
//! - every slot comes back: a grant whose waiter is gone goes to the next one.
//!
//! The rule that carries this: each server has one atomic [`word`]. While nobody waits for the
//! server, anyone changes it with one compare-and-swap. While somebody waits, only the holder of
//! the line's mutex does.
//!
//! Worker processes that serve side by side for a while share their limits through a
//! [table](SharedTable) in shared memory. The first rule then holds over all of them. The order
//! holds within each process; the processes take turns. A slot that another process frees is given
//! within [`TICK_MS`].

#[cfg(not(all(weir_loom, test)))]
mod file;
mod layout;
mod line;
mod row;
mod slots;
mod table;
mod tally;
mod waiter;
mod word;
mod word_state;

pub use line::{Backlog, JoinRequest, QueueFull, WaitQueue};
pub use slots::{ServerSlot, ServerSlots};
pub use table::{SharedTable, TICK_MS};
pub use tally::LimitStats;
pub use waiter::{Grant, Waiter, WaiterAnswer};
pub use word_state::SLOTS_MAX;

#[cfg(all(weir_loom, test))]
mod loom;
#[cfg(all(not(weir_loom), test))]
mod simulation;
#[cfg(all(not(weir_loom), test))]
mod tests;
#[cfg(all(not(weir_loom), test))]
mod threads;

/// The primitives that loom replaces to try every order of their operations.
mod sync {
    #[cfg(all(weir_loom, test))]
    pub(super) use super::loom::SharedWords;
    #[cfg(all(weir_loom, test))]
    pub(super) use ::loom::sync::{Mutex, MutexGuard, atomic::AtomicU64};
    #[cfg(not(all(weir_loom, test)))]
    pub(super) use net::SharedWords;
    #[cfg(not(all(weir_loom, test)))]
    pub(super) use std::sync::{Mutex, MutexGuard, atomic::AtomicU64};
}

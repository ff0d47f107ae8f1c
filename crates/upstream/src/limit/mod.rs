//! The exact limit on requests in progress towards a server, and the fair queue of those that wait.
//!
//! A pure machine: no clock, no timer, no socket. Callers on any thread pass the time, have the
//! timers, and choose the type of a connection that is handed over (`H`).
//!
//! ```text
//!   Slots::try_take ── a slot is free, none waits  ──────────────> Slot ── drop, release_with
//!        │ none                                                      ^              │
//!        v                                                           │              v
//!   Queue::join ── queued ──> Waiter ── poll: granted ───────────────┘      none waits: free
//!        │                       │                                          else: to the oldest
//!        v                       ├── poll: no server left                   waiter who may use
//!       Full                     └── give_up, drop                          that server
//! ```
//!
//! Invariants, over all threads:
//! - never more slots of a server are in use than its maximum (once that is lowered: none is given
//!   until enough have come back);
//! - requests get a server in the order in which they joined;
//! - no request waits for a server that has a free slot;
//! - every slot comes back: a grant whose waiter is gone goes to the next one.
//!
//! The rule that carries this: each server has one atomic [`word`]. While no request waits for
//! the server, it changes by one compare-and-swap. While requests wait, only the holder of the
//! queue's mutex changes it.
//!
//! Worker processes that serve side by side for a while share their limits through a
//! [table](SharedTable) in shared memory. The first rule then holds over all of them. The order
//! holds within each process; the processes take turns. A slot that another process frees is given
//! within [`TICK_MS`].

#[cfg(not(all(weir_loom, test)))]
mod file;
mod layout;
mod queue;
mod row;
mod slots;
mod stats;
mod table;
mod waiter;
mod word;
mod word_state;

pub use queue::{Backlog, JoinRequest, QueueFull, WaitQueue};
pub use slots::{ServerSlot, ServerSlots};
pub use stats::LimitStats;
pub use table::{SharedTable, TICK_MS};
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

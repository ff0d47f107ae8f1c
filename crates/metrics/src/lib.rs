//! Counters, and the tree in which they are shown.
//!
//! A [`Metric`] is what is counted under one name: a zone, a server, a worker. Every worker counts
//! in a block of its own, so counting takes neither a lock nor a locked instruction; a reader adds
//! the blocks up. The blocks are in memory that all worker processes of a master share
//! ([`ledger`]), so they outlive workers, processes and reloads.
//!
//! Deliberately absent: what is counted, and any notion of requests or sessions.

mod fields;
mod histogram;
mod kind;
mod ledger;
mod metric;
mod newest_text;
mod statuses;
pub mod tree;
mod wanted;
mod workers;

pub use fields::{
    Counter, CounterRow, Latest, Newest, Reading, Tallies, Tally, UpDown, UpDownCounter,
};
pub use histogram::{BOUNDS, BUCKETS, Histogram, Times};
pub use kind::{BlockField, Kind, words_of};
pub use ledger::{check, create, join};
pub use metric::{Metric, Totals};
pub use newest_text::{LatestText, NewestText};
pub use statuses::{ByStatus, StatusCounters};
pub use wanted::{are_wanted, want};
pub use workers::{
    CounterTotals, InRequest, OpenConnection, WaitingConnection, WorkerCounters, Workers,
};

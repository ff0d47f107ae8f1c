//! `keyval`: a variable whose value is looked up in a table that changes while the server runs.
//!
//! A zone ([`KeyvalZone`]) has a table ([`KeyvalTable`]) of texts by key. Requests of the API
//! ([`KeyvalRequest`]) are decided by one process, which turns them into changes
//! ([`KeyvalChange`]); every process then makes the same changes.
//!
//! **Reading takes no lock.** A table is a persistent trie: a change copies the few nodes on its
//! path and shares all others with the table before. Each worker holds the table as of its last
//! lookup, together with its version; a lookup compares that with the zone's version, which is one
//! plain load. Only the first lookup after a change locks the zone, to take the new table. The
//! price: a worker without lookups keeps what was replaced since its last one.
//!
//! Deliberately absent: the API's addresses, who may use it, and how processes are told.

mod change;
mod declare;
mod entry;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod graves;
mod journal;
mod json;
mod key;
mod lengths;
mod merge;
mod plan;
mod readers;
mod record;
mod refusal;
mod replica;
mod request;
mod state;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod trie;
pub(crate) mod zone;

pub use change::{KeyvalChange, KeyvalOperation, KeyvalPair};
pub use declare::{declare, declare_zone};
pub use entry::KeyvalEntry;
pub use journal::{StateMark, journal_line, journal_path, read_journal};
pub use json::KeyvalJson;
pub use key::{KEY_BYTES_MAX, KeyvalType, VALUE_BYTES_MAX};
pub use merge::{KeyvalMerge, MergedKey};
pub use readers::KeyvalReaders;
pub use refusal::KeyvalRefusal;
pub use request::{KEYVAL_BODY_MAX, KeyvalRequest, RequestedPair};
pub use state::{KeyvalNow, KeyvalStateError, read_state};
pub use table::KeyvalTable;
pub use zone::KeyvalZone;

//! Caches of replies in files: nginx's cache directories, and the index of what is in them.
//!
//! ```text
//! key ---- MD5 ----> index: is there a file, may it be fetched now, by whom
//!                      |
//!                      +--> file: head of 336 bytes, key, head of the reply, body
//! ```
//!
//! A site can move from nginx with a warm cache, and back: names, levels and files are nginx's
//! ([`folder`], [`file_head`]). What a reply's fields say about storing it is in [`rules`] and
//! [`vary`]. A zone ([`zone`]) is the index that all workers share, with the fills in progress
//! ([`fills`]), which others may follow ([`progress`]); [`upkeep`] reads the directory at the start
//! and keeps it within its limits, as [`room`] does for what is being stored. An [`index_file`]
//! carries the index over a restart. What was purged is a list of rules with a journal ([`purge`]).
//!
//! Deliberately absent: sockets, exchanges, threads and clocks. Time is an argument, and whoever
//! waits for a fill leaves a waker. Cached replies are read and written by the caller; only the
//! upkeep and purges touch the directory itself.

pub mod checksum;
pub mod file_head;
mod file_time;
pub mod fills;
pub mod folder;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod index;
pub mod index_file;
pub mod key;
pub mod progress;
pub mod purge;
mod queue;
pub mod room;
pub mod rules;
pub mod upkeep;
mod variants;
pub mod vary;
pub mod zone;

pub use file_head::{FileHead, FileProblem};
pub use fills::{Fill, FillEnd, FillFailure, FillFailures};
pub use folder::{CacheFolder, DirectoryLevels};
pub use key::{CacheKey, KeyDigest};
pub use purge::PurgeSubject;
pub use purge::rules::PurgeRule;
pub use rules::Freshness;
pub use zone::{CacheZone, FileFacts, KeyState};

//! The layout of the [table](super::SharedTable), in words. Every change needs another [`MAGIC`],
//! since the two programs of an upgrade may be of different versions.

#![cfg_attr(weir_loom, allow(dead_code, reason = "loom has no files"))]

/// The first word. It changes with the layout, or with the meaning of any word.
pub(super) const MAGIC: u64 = u64::from_be_bytes(*b"weirlim\x01");

/// Processes that can be registered: one bit each.
#[cfg(not(all(weir_loom, test)))]
pub(super) const PROCESSES_MAX: usize = 64;
#[cfg(all(weir_loom, test))]
pub(super) const PROCESSES_MAX: usize = 2;
/// Servers that can be shared.
#[cfg(not(all(weir_loom, test)))]
pub(super) const ROWS_MAX: usize = 4096;
#[cfg(all(weir_loom, test))]
pub(super) const ROWS_MAX: usize = 1;

/// Identifies the table on all machines. Unlike the others, the word was added without another
/// [`MAGIC`]: 0 until the first process that knows it asks for it.
pub(super) const ID: usize = 1;

/// Words of a cache line, so that what is written often shares none with what is read often.
const LINE: usize = 8;

/// A bit for each registered process.
pub(super) const REGISTERED: usize = LINE;
/// The last epoch given out.
pub(super) const NEXT_EPOCH: usize = 2 * LINE;
/// By process: its epoch, the larger the later it began to serve; 0: it does not yet.
pub(super) const EPOCHS: usize = 3 * LINE;
/// By process: the time of its last tick, in milliseconds of the machine's clock.
pub(super) const BEATS: usize = EPOCHS + PROCESSES_MAX;
/// By row: the key of its server; 0: it was never used.
pub(super) const KEYS: usize = BEATS + PROCESSES_MAX;
pub(super) const FIRST_ROW: usize = KEYS + ROWS_MAX;

/// The length of a row. What follows are positions in it.
pub(super) const ROW_WORDS: usize = LINE + 2 * PROCESSES_MAX;
/// How many slots were given while several processes were registered.
pub(super) const GIVEN: usize = 0;
/// By process: its word.
pub(super) const WORDS: usize = LINE;
/// By process: the value of `GIVEN` with its last slot.
pub(super) const LAST_GIVEN: usize = LINE + PROCESSES_MAX;

pub(super) const ALL: usize = FIRST_ROW + ROWS_MAX * ROW_WORDS;

//! A header block on its way in.

use alloc::vec::Vec;

/// A header block that is not complete.
#[derive(Debug, Default)]
pub(super) struct HeaderBlock {
    /// Whether there is one.
    pub(super) is_open: bool,
    pub(super) stream: u32,
    /// Whether it is decoded for the sake of the table alone.
    pub(super) is_discarded: bool,
    pub(super) ends_stream: bool,
    pub(super) continuations: u32,
    /// What came of it before, unless all of it is in the input.
    pub(super) bytes: Vec<u8>,
}

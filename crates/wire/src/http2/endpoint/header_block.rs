//! A header block that is being received.

use alloc::vec::Vec;

/// A header block that has begun and is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialBlock {
    pub stream: u32,
    /// Whether its fields will be discarded.
    pub is_discarded: bool,
}

#[derive(Debug, Default)]
pub(super) struct HeaderBlock {
    /// Whether a block has begun and is not complete.
    pub(super) is_open: bool,
    pub(super) stream: u32,
    /// Whether it is decoded only to keep the HPACK table in step.
    pub(super) is_discarded: bool,
    pub(super) ends_stream: bool,
    pub(super) continuations: u32,
    /// The fragments received so far. Empty if the whole block is in the input.
    pub(super) bytes: Vec<u8>,
}

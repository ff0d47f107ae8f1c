//! What replies without an attack consist of.

use crate::attacks::frames::{END_HEADERS, HEADERS, frame};

/// The body of each reply that is not attacked.
pub(super) const BODY: &[u8] = b"hello\n";
/// The body of a reply that is more than a client can leave unread.
pub(super) const LARGE_BYTES: usize = 4 << 20;

/// `:status: 200`.
pub(super) fn head(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, b"\x88")
}

//! zlib-rs's compressors, which the worker keeps and lends to one body at a time.
//!
//! With default settings, a compressor takes [`BYTES`]: 64 KB for text (twice the window), 192 KB
//! for hash chains, 112 KB for symbols and output.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use zlib_rs::{Deflate, DeflateConfig};

/// The most unused compressors that a worker keeps.
const KEPT_MAX: usize = 4;

/// The approximate memory of a compressor.
const BYTES: usize = 374 * 1024;

/// The settings of a compressor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamKind {
    /// The level of zlib-rs.
    pub(super) level: u8,
    pub(super) window_bits: u8,
    pub(super) mem_level: u8,
}

thread_local! {
    static KEPT: RefCell<Vec<(StreamKind, Deflate)>> = const { RefCell::new(Vec::new()) };
}

/// A compressor that is given back when this is dropped.
pub(super) struct Lent {
    kind: StreamKind,
    /// `Some` until the drop.
    deflate: Option<Deflate>,
}

/// Lends a fresh compressor: the most recently used one of that kind, or a new one.
pub(super) fn lend(kind: StreamKind) -> Lent {
    let kept = KEPT.with_borrow_mut(|kept| {
        let at = kept.iter().rposition(|(own, _)| *own == kind)?;
        Some(kept.remove(at).1)
    });
    let deflate = match kept {
        Some(mut deflate) => {
            deflate.reset();
            deflate
        }
        None => make(kind),
    };
    Lent { kind, deflate: Some(deflate) }
}

/// zlib-rs's number for a gzip header and trailer, added to the bits of the window.
const GZIP: i32 = 16;

fn make(kind: StreamKind) -> Deflate {
    Deflate::new_with_config(DeflateConfig {
        level: kind.level.into(),
        window_bits: GZIP + i32::from(kind.window_bits),
        mem_level: kind.mem_level.into(),
        ..DeflateConfig::default()
    })
}

impl Deref for Lent {
    type Target = Deflate;
    fn deref(&self) -> &Deflate {
        self.deflate.as_ref().expect("`Some` until the drop")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Deflate {
        self.deflate.as_mut().expect("`Some` until the drop")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(deflate) = self.deflate.take() else { return };
        // At the end of the thread, the pool may be dropped first.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() == KEPT_MAX {
                kept.remove(0);
                net::memory::note_freed(BYTES);
            }
            kept.push((self.kind, deflate));
        });
    }
}

/// The number of kept compressors.
#[cfg(test)]
pub(super) fn kept() -> usize {
    KEPT.with_borrow(Vec::len)
}

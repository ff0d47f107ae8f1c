//! zlib-rs's compressors, lent to one body at a time and kept by the worker.
//!
//! One takes [`BYTES`] with the settings there are by default: 64 KB for text, twice the window,
//! 192 KB for where things were seen, 112 KB for symbols and output.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use zlib_rs::{Deflate, DeflateConfig};

/// Compressors that a worker keeps while no body needs them.
const KEPT_MAX: usize = 4;

/// About what one takes.
const BYTES: usize = 374 * 1024;

/// What makes one compressor unlike another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamKind {
    /// zlib-rs's.
    pub(super) level: u8,
    pub(super) window_bits: u8,
    pub(super) mem_level: u8,
}

thread_local! {
    static KEPT: RefCell<Vec<(StreamKind, Deflate)>> = const { RefCell::new(Vec::new()) };
}

/// A compressor that goes back when nobody needs it any more.
pub(super) struct Lent {
    kind: StreamKind,
    /// There until it is dropped.
    deflate: Option<Deflate>,
}

/// A compressor that has seen nothing: the one of that kind that was used last.
pub(super) fn lend(kind: StreamKind) -> Lent {
    let kept = KEPT.with_borrow_mut(|kept| {
        let place = kept.iter().rposition(|(own, _)| *own == kind)?;
        Some(kept.remove(place).1)
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

/// zlib-rs's number for a gzip head and end around the data, added to the bits of the window.
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
        self.deflate.as_ref().expect("there until dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Deflate {
        self.deflate.as_mut().expect("there until dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(deflate) = self.deflate.take() else { return };
        // At the thread's end there may be no place for it any more.
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

/// How many are kept.
#[cfg(test)]
pub(super) fn kept() -> usize {
    KEPT.with_borrow(Vec::len)
}

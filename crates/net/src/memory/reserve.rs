//! Address space reserved for the time when the system is out of memory.
//!
//! It is mapped and never touched, so it uses no memory: it counts only against limits.

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

use rustix::mm::{MapFlags, ProtFlags};

/// Bytes of a piece of the reserve.
const PIECE: usize = 4 * 1024 * 1024;
const PIECES: usize = 4;
/// With only this many pieces left, no new work is begun.
const SCARCE: usize = PIECES / 2;

/// The reserve of the process.
pub(super) static RESERVE: Reserve = Reserve::new();

/// Fills the reserve; called by processes that serve clients.
pub fn hold_reserve() {
    RESERVE.refill();
}

/// Whether part of the reserve is in use: optional memory should not be kept.
#[inline]
pub fn is_short() -> bool {
    RESERVE.is_used()
}

/// Whether so little memory is left that no new connection or request should begin.
#[inline]
pub fn is_scarce() -> bool {
    RESERVE.used.load(Relaxed) >= PIECES - SCARCE
}

/// Mapped pieces of address space.
pub(super) struct Reserve {
    pieces: [AtomicPtr<c_void>; PIECES],
    /// Pieces that were given up.
    used: AtomicUsize,
    /// Whether missing pieces have been logged.
    is_told: AtomicBool,
}

impl Reserve {
    pub(super) const fn new() -> Self {
        Self {
            pieces: [const { AtomicPtr::new(null_mut()) }; PIECES],
            used: AtomicUsize::new(0),
            is_told: AtomicBool::new(false),
        }
    }

    /// Whether some pieces are missing.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.used.load(Relaxed) > 0
    }

    /// Whether missing pieces have not been logged yet. True only once until the reserve is full
    /// again.
    pub(super) fn is_news(&self) -> bool {
        !self.is_told.swap(true, Relaxed)
    }

    /// Gives a piece to the allocator; false: none is left.
    pub(super) fn give_up_a_piece(&self) -> bool {
        let Some(piece) = self.pieces.iter().find_map(take) else { return false };
        self.used.fetch_add(1, Relaxed);
        // SAFETY: this is a mapping of that size, and only the reserve had its address.
        unsafe { rustix::mm::munmap(piece.as_ptr(), PIECE) }.is_ok()
    }

    /// Maps the missing pieces. Returns whether all are mapped.
    pub(super) fn refill(&self) -> bool {
        for place in &self.pieces {
            if !place.load(Relaxed).is_null() {
                continue;
            }
            let Some(piece) = map() else { break };
            match place.compare_exchange(null_mut(), piece, Relaxed, Relaxed) {
                Ok(_) => drop(self.used.fetch_update(Relaxed, Relaxed, |used| used.checked_sub(1))),
                // Another worker has refilled the piece.
                // SAFETY: the mapping was made above.
                Err(_) => drop(unsafe { rustix::mm::munmap(piece, PIECE) }),
            }
        }
        let is_full = !self.is_used();
        if is_full {
            self.is_told.store(false, Relaxed);
        }
        is_full
    }
}

fn take(place: &AtomicPtr<c_void>) -> Option<NonNull<c_void>> {
    NonNull::new(place.swap(null_mut(), Relaxed))
}

/// Writable, since some systems count only writable mappings.
fn map() -> Option<*mut c_void> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a mapping of its own, at an address that the system chooses.
    unsafe { rustix::mm::mmap_anonymous(null_mut(), PIECE, access, MapFlags::PRIVATE) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_given_up_singly_and_mapped_again() {
        let reserve = Reserve::new();
        assert!(!reserve.give_up_a_piece() && !reserve.is_used());
        for _ in 0..2 {
            assert!(reserve.refill() && !reserve.is_used());
            let given = (0..=PIECES).filter(|_| reserve.give_up_a_piece()).count();
            assert_eq!(given, PIECES);
            assert!(reserve.is_used() && reserve.is_news() && !reserve.is_news());
        }
        assert!(reserve.refill());
        (0..PIECES).for_each(|_| assert!(reserve.give_up_a_piece()));
    }
}

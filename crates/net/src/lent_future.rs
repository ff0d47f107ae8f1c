//! Boxed futures in lent memory, which is reused when a future ends, so that tasks that wait again
//! and again allocate nothing.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use crate::spare::SparePool;

/// Memory in units of 16 bytes. Futures with a stricter alignment do not compile.
type Memory = Box<[MaybeUninit<Unit>]>;
type Unit = u128;

/// Sizes in units; futures are rounded up to one of these, so that they share memory.
const SIZES: [usize; 4] = [16, 80, 128, 256];
/// Free pieces of each size that a worker keeps.
const KEPT_MAX: usize = 1024;

thread_local! {
    static FREE: RefCell<[SparePool<Memory>; SIZES.len()]> =
        const { RefCell::new([const { SparePool::new(KEPT_MAX) }; SIZES.len()]) };
}

/// A future in lent memory.
pub struct LentFuture<'a, T>(NonNull<dyn Future<Output = T> + 'a>);

impl<'a, T> LentFuture<'a, T> {
    /// Moves the future to lent memory. Inlined, so that a future that has not begun is built in
    /// place instead of being copied.
    #[inline(always)]
    pub fn new<F: Future<Output = T> + 'a>(future: F) -> Self {
        const { assert!(align_of::<F>() <= align_of::<Unit>(), "lent memory is aligned for it") };
        let memory = lend(units(size_of::<F>()));
        let place = NonNull::from(Box::leak(memory)).cast::<F>();
        // SAFETY: the memory is exclusively owned, aligned, and at least as large as the future.
        unsafe { place.write(future) };
        Self(place)
    }

    /// The size of the future in bytes.
    pub fn size(&self) -> usize {
        // SAFETY: the future is valid until the drop.
        size_of_val(unsafe { self.0.as_ref() })
    }
}

impl<T> Future for LentFuture<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // SAFETY: the future is valid until the drop, nothing else refers to it, and it does not
        // move: only the pointer to it does.
        unsafe { Pin::new_unchecked(self.0.as_mut()) }.poll(cx)
    }
}

impl<T> Drop for LentFuture<'_, T> {
    fn drop(&mut self) {
        let memory = NonNull::slice_from_raw_parts(self.0.cast(), units(self.size()));
        // SAFETY: `new` leaked this memory, and nothing uses it once the future in it is dropped.
        let _returned = Returned(unsafe { Box::from_raw(memory.as_ptr()) });
        // SAFETY: the future is valid, and dropped only here. Its memory is returned afterwards,
        // even if it panics.
        unsafe { self.0.drop_in_place() };
    }
}

/// Memory that is returned when this is dropped.
struct Returned(Memory);

impl Drop for Returned {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.0);
        let Some(at) = SIZES.iter().position(|size| *size == memory.len()) else { return };
        drop(FREE.with_borrow_mut(|free| free[at].put(memory)));
    }
}

/// The units of memory for a future of `bytes` bytes.
const fn units(bytes: usize) -> usize {
    let units = bytes.div_ceil(size_of::<Unit>());
    let mut at = 0;
    while at < SIZES.len() {
        if units <= SIZES[at] {
            return SIZES[at];
        }
        at += 1;
    }
    units
}

fn lend(units: usize) -> Memory {
    let at = SIZES.iter().position(|size| *size == units);
    let free = at.and_then(|at| FREE.with_borrow_mut(|free| free[at].take()));
    free.unwrap_or_else(|| Box::new_uninit_slice(units))
}

/// Frees some of the memory unused since the last call. Returns the number of bytes.
pub(crate) fn shrink() -> usize {
    FREE.with_borrow_mut(|free| {
        let freed = free.iter_mut().flat_map(SparePool::shrink);
        freed.map(|memory| size_of_val(&*memory)).sum()
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Counts its drops, and has a size.
    struct Witness<const N: usize>(Rc<Cell<u32>>, [u8; N]);

    impl<const N: usize> Drop for Witness<N> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + self.1.iter().map(|byte| u32::from(*byte)).sum::<u32>());
        }
    }

    fn sum<const N: usize>(drops: &Rc<Cell<u32>>) -> LentFuture<'_, usize> {
        let mut bytes = [0; N];
        bytes[N - 1] = 1;
        let witness = Witness(drops.clone(), bytes);
        LentFuture::new(async move {
            crate::yield_now().await;
            witness.1.len()
        })
    }

    #[test]
    fn futures_of_any_size_are_run_and_dropped_once() {
        let drops = Rc::default();
        crate::run(async {
            for round in 1..=3 {
                assert_eq!(sum::<1>(&drops).await, 1);
                assert_eq!(sum::<1000>(&drops).await, 1000);
                assert_eq!(sum::<10000>(&drops).await, 10000);
                drop((sum::<1>(&drops), sum::<3000>(&drops)));
                assert_eq!(drops.get(), round * 5);
            }
        })
        .unwrap();
    }

    #[test]
    fn returned_memory_is_lent_again() {
        let place = |future: &LentFuture<'_, usize>| future.0.cast::<u8>();
        let drops = Rc::default();
        let (first, second) = (sum::<500>(&drops), sum::<500>(&drops));
        let places = [place(&first), place(&second)];
        assert_ne!(places[0], places[1]);
        drop((first, second));
        let again = [place(&sum::<600>(&drops)), place(&sum::<400>(&drops))];
        assert!(again.iter().all(|place| places.contains(place)));
        assert!(sum::<500>(&drops).size() >= 500);
    }
}

//! Boxed futures in memory that is lent: where one has ended the next one begins, so that tasks
//! that wait over and over take nothing from the allocator.

use std::alloc::Layout;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// The unit of memory. Nothing with a stricter alignment is lent a place.
type Unit = MaybeUninit<u128>;

/// Sizes, in units: futures of up to so much share the same pieces of memory.
const SIZES: [usize; 4] = [16, 64, 128, 256];
/// Pieces of each size that a worker keeps for later.
const KEPT_MAX: usize = 1024;

thread_local! {
    static FREE: RefCell<[Vec<Vec<Unit>>; SIZES.len()]> =
        const { RefCell::new([const { Vec::new() }; SIZES.len()]) };
}

/// A future in lent memory.
pub struct LentFuture<'a, T> {
    /// In `memory`, which does not move while it is there.
    future: NonNull<dyn Future<Output = T> + 'a>,
    memory: Vec<Unit>,
}

impl<'a, T> LentFuture<'a, T> {
    /// Moves the future to lent memory.
    pub fn new<F: Future<Output = T> + 'a>(future: F) -> Self {
        const { assert!(align_of::<F>() <= align_of::<Unit>(), "lent memory is aligned for it") };
        let mut memory = lend(Layout::new::<F>());
        let place = NonNull::from(memory.spare_capacity_mut()).cast::<F>();
        // SAFETY: the memory is its own, aligned, and at least as large as the layout.
        unsafe { place.write(future) };
        Self { future: place, memory }
    }

    /// How large the future is.
    pub fn size(&self) -> usize {
        // SAFETY: the future is there until the drop.
        size_of_val(unsafe { self.future.as_ref() })
    }
}

impl<T> Future for LentFuture<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // SAFETY: the future is there until the drop, nothing else refers to it, and it does not
        // move: only the pointer to it does.
        unsafe { Pin::new_unchecked(self.future.as_mut()) }.poll(cx)
    }
}

impl<T> Drop for LentFuture<'_, T> {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let _returned = Returned(memory);
        // SAFETY: it is there, and dropped once. Its memory is returned after it, even if it panics.
        unsafe { self.future.drop_in_place() };
    }
}

/// Memory that goes back when this is dropped.
struct Returned(Vec<Unit>);

impl Drop for Returned {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.0);
        let Some(at) = SIZES.iter().position(|size| *size == memory.capacity()) else { return };
        FREE.with_borrow_mut(|free| {
            if free[at].len() < KEPT_MAX {
                free[at].push(memory);
            }
        });
    }
}

/// Memory for something of that layout.
fn lend(layout: Layout) -> Vec<Unit> {
    let units = layout.size().div_ceil(size_of::<Unit>());
    match SIZES.iter().position(|size| units <= *size) {
        Some(at) => FREE
            .with_borrow_mut(|free| free[at].pop())
            .unwrap_or_else(|| Vec::with_capacity(SIZES[at])),
        None => Vec::with_capacity(units),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Tells when it is dropped, and takes up room.
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
    fn memory_is_lent_again() {
        let place = |future: &LentFuture<'_, usize>| future.memory.as_ptr();
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

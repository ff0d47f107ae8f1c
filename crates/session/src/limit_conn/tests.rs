//! Counts are exact, from all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::counts::{CountExceeded, CountedKeys, Counts};
use crate::keyed::KeyedCounts;

#[test]
fn a_full_zone_refuses() {
    let state = KeyedCounts::<Counts>::of(8 * 4096);
    let take = |number: u32| CountedKeys::take(&state, &number.to_be_bytes(), 1);
    let held: Vec<CountedKeys> = (0..).map_while(|number| take(number).ok()).collect();
    assert_eq!(held.len(), 7 * 64);
    assert_eq!(take(u32::MAX).err(), Some(CountExceeded::Room));
    assert_eq!(take(0).err(), Some(CountExceeded::Limit));
    drop(held);
    assert!(take(u32::MAX).is_ok());
}

#[test]
fn counts_are_exact_over_threads() {
    const THREADS: u32 = 8;
    const ROUNDS: u32 = 20_000;
    const MOST: u32 = 3;
    let state = KeyedCounts::<Counts>::of(1 << 20);
    let under_way = Arc::new(AtomicU32::new(0));
    let (taken, refused) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    match CountedKeys::take(&state, b"key", MOST) {
                        Ok(held) => {
                            assert!(under_way.fetch_add(1, Ordering::SeqCst) < MOST);
                            taken.fetch_add(1, Ordering::Relaxed);
                            thread::yield_now();
                            under_way.fetch_sub(1, Ordering::SeqCst);
                            drop(held);
                        }
                        Err(_) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let (taken, refused) = (taken.into_inner(), refused.into_inner());
    assert_eq!(taken + refused, THREADS * ROUNDS);
    assert!(taken >= MOST && refused > 0, "{taken} {refused}");
    // All counts have ended.
    let held: Vec<_> =
        (0..=MOST).map(|_| CountedKeys::take(&state, b"key", MOST).is_ok()).collect();
    assert_eq!(held, [true; MOST as usize + 1]);
}

//! Waits for locks of the kernel, in the output of `perf script -F tid,time,event,trace`:
//!
//! ```text
//! 11392  1036.708651: lock:contention_begin: 0xffff888449652860 (flags=SPIN)
//! 11392  1036.708654:   lock:contention_end: 0xffff888449652860 (ret=0)
//! ```

use std::collections::HashMap;

pub(super) const EVENTS: &str = "lock:contention_begin,lock:contention_end";

/// All waits of a turn.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct LockWaits {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

/// Adds up the waits that have a begin and an end.
pub(crate) fn read(script: &str) -> LockWaits {
    let mut begun = HashMap::<(&str, &str), f64>::new();
    let mut waits = LockWaits::default();
    for line in script.lines() {
        let mut words = line.split_whitespace();
        let [Some(thread), Some(time), Some(event), Some(lock)] =
            std::array::from_fn(|_| words.next())
        else {
            continue;
        };
        let time = time.trim_end_matches(':').parse::<f64>().ok().filter(|time| time.is_finite());
        let Some(time) = time else { continue };
        match event {
            "lock:contention_begin:" => {
                begun.insert((thread, lock), time);
            }
            "lock:contention_end:" => {
                let since = begun.remove(&(thread, lock)).filter(|since| *since <= time);
                waits.count += u64::from(since.is_some());
                waits.seconds += since.map_or(0.0, |since| time - since);
            }
            _ => {}
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_wait_has_a_begin_and_an_end() {
        let script = "\
            7 10.5: lock:contention_begin: 0xa (flags=SPIN)\n\
            8 10.6: lock:contention_begin: 0xa (flags=MUTEX)\n\
            7 10.75:   lock:contention_end: 0xa (ret=0)\n\
            9 11.0:   lock:contention_end: 0xa (ret=0)\n\
            8 11.6:   lock:contention_end: 0xa (ret=0)\n\
            8 12.0: lock:contention_begin: 0xa\nlost\n7 x: lock:contention_end: 0xa\n";
        let waits = super::read(script);
        assert_eq!((waits.count, format!("{:.3}", waits.seconds)), (2, "1.250".to_owned()));
    }
}

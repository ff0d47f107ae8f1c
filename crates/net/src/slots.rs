//! Tables whose slots have numbers and are used again: giving back their memory.

/// A table of so few slots is left alone.
const SLOTS_MIN: usize = 256;

/// Drops the free slots at the end of a table in which most are free. From then on those with the
/// lowest numbers are used first, so that the next time more can be dropped.
pub(crate) fn shrink<T>(
    slots: &mut Vec<T>,
    free: &mut Vec<u32>,
    mut may_go: impl FnMut(&T) -> bool,
) {
    if slots.len() < SLOTS_MIN || free.len() < slots.len() / 4 * 3 {
        return;
    }
    free.sort_unstable();
    while let (Some(number), Some(slot)) = (free.last(), slots.last())
        && *number as usize + 1 == slots.len()
        && may_go(slot)
    {
        free.pop();
        slots.pop();
    }
    free.reverse();
    free.shrink_to_fit();
    slots.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_slots_at_the_end_go_and_low_numbers_come_first() {
        let (mut slots, mut free): (Vec<u32>, _) = ((0..1000).collect(), vec![]);
        free.extend((0..1000).rev().filter(|number| *number != 100 && *number != 7));
        shrink(&mut slots, &mut free, |_| true);
        assert_eq!((slots.len(), free.len(), free.last()), (101, 99, Some(&0)));
        assert!(free.iter().all(|number| *number < 101) && slots.capacity() < 1000);
    }

    #[test]
    fn a_table_in_use_and_slots_that_are_needed_stay() {
        let (mut slots, mut free): (Vec<u32>, _) = ((0..1000).collect(), vec![]);
        free.extend(300..1000);
        shrink(&mut slots, &mut free, |_| true);
        assert_eq!(slots.len(), 1000);
        free.extend(0..299);
        shrink(&mut slots, &mut free, |slot| *slot > 900);
        assert_eq!((slots.len(), free.len()), (901, 900));
    }
}

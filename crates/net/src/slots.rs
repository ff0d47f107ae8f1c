//! Returns the memory of tables whose slots are numbered and reused.

/// Smaller tables are not shrunk.
const SLOTS_MIN: usize = 256;

/// Drops the free slots at the end of a table in which most are free. Afterwards the slots with the
/// lowest numbers are used first, so that the next call can drop more.
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
    fn free_slots_at_the_end_are_dropped_and_low_numbers_reused_first() {
        let (mut slots, mut free): (Vec<u32>, _) = ((0..1000).collect(), vec![]);
        free.extend((0..1000).rev().filter(|number| *number != 100 && *number != 7));
        shrink(&mut slots, &mut free, |_| true);
        assert_eq!((slots.len(), free.len(), free.last()), (101, 99, Some(&0)));
        assert!(free.iter().all(|number| *number < 101) && slots.capacity() < 1000);
    }

    #[test]
    fn used_tables_and_needed_slots_are_kept() {
        let (mut slots, mut free): (Vec<u32>, _) = ((0..1000).collect(), vec![]);
        free.extend(300..1000);
        shrink(&mut slots, &mut free, |_| true);
        assert_eq!(slots.len(), 1000);
        free.extend(0..299);
        shrink(&mut slots, &mut free, |slot| *slot > 900);
        assert_eq!((slots.len(), free.len()), (901, 900));
    }
}

//! Searches for the highest rate at which a row's latency keeps the study's bound.
//!
//! A search is `weir load --search`. All rows are searched in random order before any is searched
//! again, each time with servers that were started anew: a repeat is to a search what a block is to
//! a turn.

use statistics::SplitMix;

use super::program::ServerProgram;
use super::subject::SubjectGround;
use super::turns::{self, TurnSettings};
use crate::hosts::{HostRole, StudyNetwork};
use crate::progress;
use crate::record::{SearchRecord, StudyRecord};

/// Takes the searches that the record lacks, and keeps the record after each repeat.
pub(super) fn take(
    record: &mut StudyRecord,
    programs: &[ServerProgram],
    network: &StudyNetwork,
    with: &TurnSettings<'_>,
    keep: &mut dyn FnMut(&StudyRecord) -> Result<(), String>,
) -> Result<(), String> {
    let Some(search) = record.study.search.clone() else { return Ok(()) };
    let first = complete(record);
    record.searches.retain(|search| search.repeat < first);
    let mut random = SplitMix::new(record.machine.began_unix_s + first as u64);
    let study = record.study.clone();
    for repeat in first..with.searches {
        let ground = SubjectGround { study: &study, network, machines: with.machines };
        let mut subjects = turns::start(&ground, programs, record, with)?;
        random.shuffle(&mut subjects);
        let count = subjects.len();
        for (number, running) in subjects.iter().enumerate() {
            with.go_on()?;
            let (repeat, repeats) = (repeat + 1, with.searches);
            progress::show(&format!("search {} of {count}, {repeat} of {repeats} ", number + 1));
            let client = with.machines.this_machine(HostRole::Client, &running.hosts);
            let found = client.search(&running.load, &search);
            let (rate, steps) = found.map_err(|why| turns::named(record, running, &why))?;
            let (program, row) = (running.subject.program, running.subject.row);
            record.searches.push(SearchRecord { program, row, repeat: repeat - 1, rate, steps });
        }
        progress::show("");
        keep(record)?;
    }
    Ok(())
}

/// The number of repeats with a search of each row.
fn complete(record: &StudyRecord) -> usize {
    let each = record.subjects().count();
    let count = |repeat: usize| record.searches.iter().filter(|of| of.repeat == repeat).count();
    (0..).take_while(|repeat| each > 0 && count(*repeat) == each).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_without_one_of_its_searches_is_taken_again() {
        let mut record = crate::testing::record(8);
        assert_eq!(complete(&record), 0);
        let search = |row, repeat| SearchRecord { program: 0, row, repeat, rate: 100.0, steps: 9 };
        record.searches = vec![search(0, 0), search(1, 0), search(1, 1)];
        assert_eq!(complete(&record), 1);
    }
}

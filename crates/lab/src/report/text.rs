//! The report for a terminal.

use std::fmt::Write as _;

use super::table;
use crate::record::StudyRecord;

/// The whole report.
pub(crate) fn of(record: &StudyRecord) -> String {
    let mut text = format!("{}\n", record.study.title);
    for (number, line) in table::warning(record).iter().enumerate() {
        let _ = writeln!(text, "{}{line}", if number == 0 { "\n" } else { "" });
    }
    for (program, of) in record.programs.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}", of.name);
        text.push_str(&aligned(&table::effects(record, program)));
        for cells in [table::factors(record, program), table::calls(record, program)] {
            text.push_str(
                &cells.map_or_else(String::new, |cells| format!("\n{}", aligned(&cells))),
            );
        }
    }
    if let Some(cells) = table::programs(record) {
        text.push('\n');
        text.push_str(&aligned(&cells));
    }
    text.push('\n');
    for line in table::doubts(record).iter().chain(&table::origin(record)) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// A table whose columns are as wide as their widest cell.
fn aligned(cells: &table::Cells) -> String {
    let columns = cells.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let widths = cells.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in cells {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::testing::record;

    #[test]
    fn a_report_has_the_results_and_their_conditions() {
        let mut record = record(8);
        for turn in record.turns.iter_mut().filter(|turn| turn.row == 1) {
            turn.measured.rate *= 2.0;
        }
        record.turns[3].marks = vec!["stolen".to_owned()];
        (record.turns[1].all_errors, record.turns[5].all_errors) = (1, 2);
        let text = super::of(&record);
        assert_eq!(
            text,
            "A <study>\n\nweir\n         \
             requests/s  effect                    CPU/request  \
             effect                                p99      source\n\
             default  3333        baseline                  5.00 us      \
             baseline                              0.10 ms\n\
             two      6666        +100.0 % [+100.0 +100.0]  5.00 us      \
             +0.0 % [+0.0 +0.0], none above 0.0 %  0.10 ms  +92 %\n\n\
             row \"two\" with weir: 3 requests failed\n\
             1 of 16 turns were disturbed by other machines on the same hardware, after repeats\n\
             8 blocks of turns of 300 ms\n8 connections\nserver and generator on a processor each\n\
             all parts on loopback addresses (as a test)\n\
             a processor, 2 processors, Linux 6.1\nweir 0.1.0\n\
             began 2023-11-14 22:13 UTC\nrepeat it: weir lab run study\n"
        );
    }

    #[test]
    fn machines_of_agents_are_told_with_their_clocks() {
        let mut record = record(8);
        record.agents.push(crate::record::AgentRecord {
            place: "10.0.0.3:7700".to_owned(),
            parts: vec!["server".to_owned(), "backend".to_owned()],
            system: "Linux 6.2".to_owned(),
            processor: "another".to_owned(),
            processors: 64,
            clock_offset_us: -1500.0,
            clock_error_us: 20.0,
        });
        let text = super::of(&record);
        let lines = "\nthis machine: a processor, 2 processors, Linux 6.1\n\
                     server and backend on 10.0.0.3:7700: another, 64 processors, Linux 6.2; its \
                     clock is -1.500 ms ± 0.020 ms from this machine's\n";
        assert!(text.contains(lines), "{text}");
        assert!(!text.contains("server and generator"), "{text}");
    }

    #[test]
    fn a_report_of_doubtful_turns_begins_with_a_warning() {
        let mut record = record(8);
        for turn in record.turns.iter_mut().take(9) {
            turn.marks = vec!["others".to_owned()];
        }
        let text = super::of(&record);
        let head = "A <study>\n\nMost turns were disturbed: repeat this on a quiet machine.\n\
                    9 of 16 turns were disturbed by other processes, after repeats\n\nweir\n";
        assert!(text.starts_with(head), "{text}");
        record.turns[0].marks.clear();
        assert!(!super::of(&record).contains("doubtful"));
    }

    #[test]
    fn a_source_without_findings_has_no_column() {
        let mut record = record(8);
        assert!(super::of(&record).contains("  source\n"));
        record.study.rows[1].found = None;
        assert!(!super::of(&record).contains("source"));
    }

    #[test]
    fn two_programs_are_set_side_by_side() {
        let mut record = record(8);
        let mut other = record.programs[0].clone();
        other.name = "nginx".to_owned();
        record.programs.push(other);
        let slower = record.turns.clone().into_iter().map(|mut turn| {
            turn.program = 1;
            turn.measured.cpu_us *= 2.0;
            turn
        });
        record.turns.extend(slower.collect::<Vec<_>>());
        let text = super::of(&record);
        assert!(text.contains("weir to nginx") && text.contains("-50.0 % [-50.0 -50.0]"), "{text}");
    }
}

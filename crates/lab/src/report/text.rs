//! The report for a terminal.

use std::fmt::Write as _;

use super::{table, why};
use crate::record::StudyRecord;

/// The whole report.
pub(crate) fn of(record: &StudyRecord) -> String {
    let interruption = table::interruption(record).map(|line| line + "\n\n");
    let mut text = format!("{}{}\n", interruption.unwrap_or_default(), record.study.title);
    for (number, line) in table::warning(record).iter().enumerate() {
        let _ = writeln!(text, "{}{line}", if number == 0 { "\n" } else { "" });
    }
    for (program, of) in record.programs.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}", of.name);
        text.push_str(&aligned(&table::effects(record, program)));
        for cells in table::further(record, program) {
            let _ = write!(text, "\n{}", aligned(&cells));
        }
    }
    for cells in [table::programs(record), table::baseline(record)].into_iter().flatten() {
        text.push('\n');
        text.push_str(&aligned(&cells));
    }
    text.push('\n');
    let lines = [table::doubts(record), table::origin(record), why::remarks(record)];
    for line in lines.iter().flatten() {
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
    use crate::distribution::LatencyCounts;
    use crate::record::LeftOutRecord;
    use crate::testing::{add_program, record};

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
             latency  p50                   p90                   p99                   \
             p99.9                 p99.99\n\
             default  80.6 us               81.0 us               101 us                \
             too few requests (8)  too few requests (0)\n\
             two      80.6 us               81.0 us               101 us                \
             too few requests (8)  too few requests (0)\n         \
             (+0.0 % [+0.0 +0.0])  (+0.0 % [+0.0 +0.0])  (+0.0 % [+0.0 +0.0])\n\n\
             row \"two\" with weir: 3 requests failed\n\
             1 of 16 turns were disturbed by other machines on the same hardware, after repeats\n\
             8 blocks of turns of 300 ms\n\
             latency: of all requests of all turns together; changes in parentheses may be chance\n\
             8 connections\nserver and generator on a processor each\n\
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
    fn a_report_of_an_interrupted_run_begins_with_that() {
        let mut record = record(4);
        record.blocks = 40;
        let text = super::of(&record);
        let head = "Interrupted after 4 of 40 blocks; --resume goes on.\n\nA <study>\n";
        assert!(text.starts_with(head) && text.contains("too few turns"), "{text}");
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
        add_program(&mut record, "nginx");
        for turn in record.turns.iter_mut().filter(|turn| turn.program == 1) {
            turn.measured.cpu_us *= 2.0;
            turn.measured.latencies = LatencyCounts::of([(160, 1000)]);
        }
        let text = super::of(&record);
        let (_, compared) = text.split_once("weir to nginx").expect("a table");
        let mut lines = compared.lines();
        let columns: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
        assert_eq!(columns, ["requests/s", "CPU/request", "p50", "p99", "p99.9"]);
        let row = lines.next().unwrap_or_default();
        let p50 = "-50.0 % [-50.0 -50.0]  -49.8 % [-49.8 -49.8]  -37.3 % [-37.3 -37.3]  too few ";
        assert!(row.contains(p50), "{text}");
    }

    #[test]
    fn rows_that_were_left_out_are_named() {
        let mut record = record(8);
        let why = "wrk is not installed".to_owned();
        record.left_out.push(LeftOutRecord { program: 0, row: 1, why });
        record.remarks.push("ab 2.3".to_owned());
        record.turns.retain(|turn| turn.row == 0);
        let text = super::of(&record);
        let lines = "row \"two\" with weir is left out: wrk is not installed\nab 2.3\n";
        assert!(text.contains(lines) && !text.contains("\ntwo "), "{text}");
        assert_eq!(record.complete_blocks(), 8);
    }
}

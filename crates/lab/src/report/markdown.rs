//! The report as Markdown; its charts are files beside it.

use super::charts::{self, FlameChart, ReportChart};
use super::table;
use super::why::{self, WhySection};
use crate::record::StudyRecord;

/// The whole report.
pub(crate) fn of(record: &StudyRecord) -> String {
    let study = &record.study;
    let mut text =
        format!("# {}\n\n{}\n", escaped(&study.title), escaped(study.explanation.trim()));
    if let Some(line) = table::interruption(record) {
        text.push_str(&format!("\n**{line}**\n"));
    }
    if !study.source.is_empty() {
        text.push_str(&format!("\nSource: {}\n", escaped(&study.source)));
    }
    for (number, line) in table::warning(record).iter().enumerate() {
        let line = escaped(line);
        text.push_str(&if number == 0 {
            format!("\n**{line}**\n\n")
        } else {
            format!("- {line}\n")
        });
    }
    for (program, of) in record.programs.iter().enumerate() {
        let images = images(&charts::of_program(record, program));
        let cells = rows(&table::effects(record, program));
        text.push_str(&format!("\n## {}\n\n{images}{cells}", of.name));
        for cells in table::further(record, program) {
            text.push_str(&format!("\n{}", rows(&cells)));
        }
        text.extend(why::sections(record, program).iter().map(reasons));
    }
    if let Some(cells) = table::programs(record) {
        let images = images(&charts::side_by_side(record));
        text.push_str(&format!("\n## Side by side\n\n{images}{}", rows(&cells)));
    }
    text.push_str("\n## How\n\n");
    let lines = [table::doubts(record), table::origin(record), why::remarks(record)];
    for line in lines.iter().flatten() {
        text.push_str(&format!("- {}\n", escaped(line)));
    }
    text.push_str(&format!("\n```nginx\n{}\n```\n", study.template.trim()));
    text
}

/// Why a row differs from its baseline.
fn reasons(of: &WhySection<'_>) -> String {
    let flame = |chart: &FlameChart<'_>| image(&chart.caption, &chart.file);
    let difference = of.difference.as_ref();
    let difference = difference.map(|(chart, cells)| format!("{}{}\n", flame(chart), rows(cells)));
    format!(
        "\n### {}\n\n{}<details><summary>The row alone</summary>\n\n{}</details>\n",
        escaped(&of.title),
        difference.unwrap_or_default(),
        flame(&of.flame)
    )
}

fn images(charts: &[ReportChart]) -> String {
    charts.iter().map(|chart| image(&chart.caption, &chart.file)).collect()
}

fn image(caption: &str, file: &str) -> String {
    let caption = escaped(caption).replace('[', "\\[").replace(']', "\\]");
    format!("![{caption}]({file})\n\n")
}

fn rows(cells: &table::Cells) -> String {
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut lines = cells.iter().map(line);
    let head = lines.next().unwrap_or_default();
    let rule = "|---".repeat(cells.first().map_or(0, Vec::len));
    format!("{head}{rule}|\n{}", lines.collect::<String>())
}

/// Text with the signs of markup escaped.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use crate::testing::{add_program, record};

    #[test]
    fn a_report_of_doubtful_turns_begins_with_a_warning() {
        let mut record = record(8);
        record.turns.iter_mut().for_each(|turn| turn.marks = vec!["errors".to_owned()]);
        let text = super::of(&record);
        let head = "\n**Most turns were disturbed: repeat this on a quiet machine.**\n\n\
                    - 16 of 16 turns had errors, after repeats\n\n## weir\n";
        assert!(text.contains(head), "{text}");
    }

    #[test]
    fn each_chart_precedes_the_tables_of_its_section() {
        let mut record = record(8);
        add_program(&mut record, "nginx");
        record.study.rows[0].name = "a [b".to_owned();
        let text = super::of(&record);
        for chart in super::charts::all(&record) {
            assert_eq!(text.matches(&format!("]({})\n", chart.file)).count(), 1, "{text}");
        }
        let places = [
            "## nginx\n\n![Req",
            "a \\[b\"",
            "-nginx-latency.svg)\n\n|",
            "## Side",
            ".svg)\n\n| weir",
        ];
        let mut rest = &text[..];
        for place in places {
            rest = rest.split_once(place).unwrap_or_else(|| panic!("{place:?} in {text}")).1;
        }
    }

    #[test]
    fn the_report_is_a_table_with_its_origin() {
        let text = super::of(&record(8));
        for part in [
            "# A &lt;study>\n\nWhat \\| it is.\n",
            "\nSource: seed 000\n",
            "|  | requests/s | effect | CPU/request | effect | p99 | source |\n|---|---|",
            "| two | 3333 | +0.0 % [+0.0 +0.0], none above 0.0 % | 5.00 us |",
            "- repeat it: weir lab run study\n",
            "```nginx\n%%a%% %%listen%%\n```\n",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }
}

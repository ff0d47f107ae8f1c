//! The report as one standalone HTML page with charts: no scripts, no fonts, no network.

use super::charts::{self, FlameChart, ReportChart};
use super::markup::escaped;
use super::table;
use super::why::{self, WhySection};
use crate::record::StudyRecord;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub(crate) fn of(record: &StudyRecord) -> String {
    let study = &record.study;
    let title = escaped(&study.title);
    let programs: String = (0..record.programs.len()).map(|at| program(record, at)).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{}{}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n{}<p>{}</p>\n{}{}{}{programs}{}</main>\n</body>\n</html>\n",
        charts::STYLE,
        charts::FLAME_STYLE,
        interruption(record),
        escaped(study.explanation.trim()),
        source(&study.source),
        warning(record),
        side_by_side(record),
        how(record),
    )
}

fn source(source: &str) -> String {
    match source {
        "" => String::new(),
        _ => format!("<p class=\"source\">Source: {}</p>\n", escaped(source)),
    }
}

fn interruption(record: &StudyRecord) -> String {
    table::interruption(record).map_or_else(String::new, |line| {
        format!("<p class=\"doubt\"><strong>{}</strong></p>\n", escaped(&line))
    })
}

/// A warning above the first chart if most turns were disturbed.
fn warning(record: &StudyRecord) -> String {
    let lines = table::warning(record);
    let Some((first, rest)) = lines.split_first() else { return String::new() };
    let rest: String = rest.iter().map(|line| format!("<br>{}", escaped(line))).collect();
    format!("<p class=\"doubt\"><strong>{}</strong>{rest}</p>\n", escaped(first))
}

fn program(record: &StudyRecord, program: usize) -> String {
    let more: String = table::further(record, program).iter().map(rows).collect();
    format!(
        "<section>\n<h2>{}</h2>\n{}{}{more}{}</section>\n",
        escaped(&record.programs[program].name),
        figures(&charts::of_program(record, program)),
        rows(&table::effects(record, program)),
        why::sections(record, program).iter().map(reasons).collect::<String>(),
    )
}

/// Why a row differs from its baseline.
fn reasons(of: &WhySection<'_>) -> String {
    let flame = |chart: &FlameChart<'_>| figure(&chart.caption, &chart.drawing());
    let difference = of.difference.as_ref();
    let difference = difference.map(|(chart, cells)| flame(chart) + &rows(cells));
    format!(
        "<h3>{}</h3>\n{}<details><summary>The row alone</summary>\n{}</details>\n",
        escaped(&of.title),
        difference.unwrap_or_default(),
        flame(&of.flame)
    )
}

/// The section that compares the first program with the second.
fn side_by_side(record: &StudyRecord) -> String {
    let Some(cells) = table::programs(record) else { return String::new() };
    format!(
        "<section>\n<h2>Side by side</h2>\n{}{}</section>\n",
        figures(&charts::side_by_side(record)),
        rows(&cells),
    )
}

fn figures(charts: &[ReportChart]) -> String {
    let of = |chart: &ReportChart| figure(&chart.caption, &chart.drawing("width=\"100%\""));
    charts.iter().map(of).collect()
}

/// A chart, which scrolls if it is too wide for the page.
fn figure(caption: &str, drawing: &str) -> String {
    format!(
        "<figure><figcaption>{}</figcaption>\n\
         <div class=\"chart\" tabindex=\"0\">{drawing}</div></figure>\n",
        escaped(caption)
    )
}

/// A table, which scrolls if it is too wide for the page.
fn rows(cells: &table::Cells) -> String {
    let line = |(number, row): (usize, &Vec<String>)| {
        let tag = if number == 0 { "th" } else { "td" };
        let cells = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let lines: String = cells.iter().enumerate().map(line).collect();
    format!("<div class=\"table\" tabindex=\"0\"><table>\n{lines}</table></div>\n")
}

/// The conditions of the measurement, and the command that repeats it.
fn how(record: &StudyRecord) -> String {
    let lines = [table::doubts(record), table::origin(record), why::remarks(record)];
    let lines: String =
        lines.into_iter().flatten().map(|line| format!("<li>{}</li>\n", escaped(&line))).collect();
    format!(
        "<section>\n<h2>How</h2>\n<ul>\n{lines}</ul>\n<details><summary>Configuration</summary>\n\
         <pre>{}</pre></details>\n</section>\n",
        escaped(record.study.template.trim())
    )
}

#[cfg(test)]
mod tests {
    use crate::testing::{add_program, profiled, record};

    #[test]
    fn a_page_has_the_results_and_their_conditions() {
        let charts = super::charts::all(&record(8));
        let html = super::of(&record(8));
        for part in [
            "<title>A &lt;study&gt;</title>",
            "<h2>weir</h2>",
            ">two <tspan x=\"100%\">+0.0 % [+0.0 +0.0], none above 0.0 %</tspan>",
            &charts[0].drawing("width=\"100%\""),
            &charts[1].drawing("width=\"100%\""),
            &charts[2].drawing("width=\"100%\""),
            "<li>a processor, 2 processors, Linux 6.1</li>",
            "<li>repeat it: weir lab run study</li>",
            "<pre>%%a%% %%listen%%</pre>",
        ] {
            assert!(html.contains(part), "{part:?} in {html}");
        }
    }

    #[test]
    fn a_page_of_doubtful_turns_begins_with_a_warning() {
        let mut record = record(8);
        assert!(!super::of(&record).contains("class=\"doubt\""));
        record.turns.iter_mut().for_each(|turn| turn.marks = vec!["stolen".to_owned()]);
        let html = super::of(&record);
        let warning = html.find("<p class=\"doubt\"><strong>Most turns were disturbed");
        assert!(warning.is_some() && warning < html.find("<svg"), "{html}");
        assert!(html.contains("<br>16 of 16 turns were disturbed by other machines"), "{html}");
    }

    #[test]
    fn text_from_studies_and_machines_is_escaped() {
        let mut record = record(8);
        let evil = "\"><script>alert(1)</script>";
        let names = [&mut record.study.title, &mut record.study.template, &mut record.study.source];
        names.into_iter().for_each(|text| *text = evil.to_owned());
        record.study.explanation = evil.to_owned();
        record.study.rows.iter_mut().for_each(|row| row.name = evil.to_owned());
        record.machine.processor = evil.to_owned();
        record.command = evil.to_owned();
        record.programs[0].name = evil.to_owned();
        record.programs[0].version = evil.to_owned();
        let html = super::of(&record);
        assert!(!html.contains("<script") && !html.contains("\"\">"), "{html}");
    }

    #[test]
    fn a_page_is_standalone() {
        let html = super::of(&profiled(8));
        assert_eq!(html.matches("class=\"flame\"").count(), 3);
        for part in ["http://", "https://", "src=", "url(", "@import"] {
            assert!(!html.contains(part), "{part}");
        }
    }

    #[test]
    fn two_programs_are_set_side_by_side() {
        let mut record = record(8);
        assert!(!super::of(&record).contains("Side by side"));
        add_program(&mut record, "nginx");
        assert!(super::of(&record).contains("of weir, compared with nginx"));
    }
}

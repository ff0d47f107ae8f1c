//! The report as one HTML page with charts. It needs nothing besides itself: no script, no font,
//! no network.

mod chart;
mod effects;
mod latency;
mod markup;
mod scale;
mod scaling;

use effects::ShownEffect;
use markup::escaped;
use statistics::Interval;

use super::table;
use crate::effect::{effect, ratio};
use crate::factorial::{self, FactorialEffect};
use crate::figures::{CPU, RATE, StudyMeasure};
use crate::record::{StudyRecord, Subject};

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
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p>{}</p>\n{}{}{}{programs}{}</main>\n</body>\n</html>\n",
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

/// A warning above the first chart if most turns were disturbed.
fn warning(record: &StudyRecord) -> String {
    let lines = table::warning(record);
    let Some((first, rest)) = lines.split_first() else { return String::new() };
    let rest: String = rest.iter().map(|line| format!("<br>{}", escaped(line))).collect();
    format!("<p class=\"doubt\"><strong>{}</strong>{rest}</p>\n", escaped(first))
}

fn program(record: &StudyRecord, program: usize) -> String {
    let effects = |measure: StudyMeasure| {
        let shown = |row: usize| {
            let subject = Subject { program, row };
            let ratio = effect(record, subject, measure).filter(|_| record.has(subject))?;
            Some(ShownEffect { name: record.study.label(row), ratio })
        };
        (0..record.rows().len()).filter_map(shown).collect::<Vec<_>>()
    };
    let first = record.rows().first().map_or("", |row| row.name.as_str());
    let caption = |what: &str| format!("{what}, compared with \"{first}\" (95 % intervals)");
    let more = [table::factors(record, program), table::calls(record, program)];
    let more: String = more.into_iter().flatten().map(|cells| rows(&cells)).collect();
    format!(
        "<section>\n<h2>{}</h2>\n{}{}{}{}{}{}{more}</section>\n",
        escaped(&record.programs[program].name),
        factors(record, program),
        effects::chart(&caption("Requests per second"), &effects(RATE), true),
        effects::chart(&caption("CPU time per request"), &effects(CPU), false),
        scaling::chart(record, program),
        latency::chart(record, program),
        rows(&table::effects(record, program)),
    )
}

/// The factors of a factorial study, ranked.
fn factors(record: &StudyRecord, program: usize) -> String {
    if record.study.factorial.is_empty() {
        return String::new();
    }
    let effects = factorial::effects(record, program);
    let of = |ratio: fn(&FactorialEffect) -> Option<Interval>| {
        let shown = |effect: &FactorialEffect| ShownEffect {
            name: effect.name.clone(),
            ratio: ratio(effect),
        };
        effects.iter().map(shown).collect::<Vec<_>>()
    };
    let caption = |what: &str| {
        format!("{what}: each factor on average over the others, and two beyond both (ranked)")
    };
    effects::chart(&caption("Requests per second"), &of(|effect| effect.rate), true)
        + &effects::chart(&caption("CPU time per request"), &of(|effect| effect.cpu), false)
}

/// The first program compared with the second.
fn side_by_side(record: &StudyRecord) -> String {
    let Some(cells) = table::programs(record) else { return String::new() };
    let [own, other] = [0, 1].map(|at| record.programs[at].name.as_str());
    let effects = |measure: StudyMeasure| {
        let effect = |(row, of): (usize, &crate::study::StudyRow)| {
            let [own, other] = [0, 1].map(|program| Subject { program, row });
            let ratio = ratio(record, own, other, measure);
            let has_both = record.has(own) && record.has(other);
            has_both.then(|| ShownEffect { name: of.name.clone(), ratio })
        };
        record.rows().iter().enumerate().filter_map(effect).collect::<Vec<_>>()
    };
    let caption = |what: &str| format!("{what} of {own}, compared with {other} (95 % intervals)");
    format!(
        "<section>\n<h2>Side by side</h2>\n{}{}{}</section>\n",
        effects::chart(&caption("Requests per second"), &effects(RATE), true),
        effects::chart(&caption("CPU time per request"), &effects(CPU), false),
        rows(&cells),
    )
}

/// A table that scrolls by itself where it is too wide.
fn rows(cells: &table::Cells) -> String {
    let line = |(number, row): (usize, &Vec<String>)| {
        let tag = if number == 0 { "th" } else { "td" };
        let cells = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let lines: String = cells.iter().enumerate().map(line).collect();
    format!("<div class=\"table\" tabindex=\"0\"><table>\n{lines}</table></div>\n")
}

/// How it was measured, and how to repeat it.
fn how(record: &StudyRecord) -> String {
    let lines = table::doubts(record).into_iter().chain(table::origin(record));
    let lines: String = lines.map(|line| format!("<li>{}</li>\n", escaped(&line))).collect();
    format!(
        "<section>\n<h2>How</h2>\n<ul>\n{lines}</ul>\n<details><summary>Configuration</summary>\n\
         <pre>{}</pre></details>\n</section>\n",
        escaped(record.study.template.trim())
    )
}

#[cfg(test)]
mod tests {
    use crate::testing::record;

    #[test]
    fn a_page_has_what_was_found_and_where() {
        let html = super::of(&record(8));
        for part in [
            "<title>A &lt;study&gt;</title>",
            "<h2>weir</h2>",
            "two: no effect seen [+0.0 +0.0]</title>",
            "<li>a processor, 2 processors, Linux 6.1</li>",
            "<li>repeat it: weir lab run study</li>",
            "<pre>%%a%% %%listen%%</pre>",
        ] {
            assert!(html.contains(part), "{part:?} in {html}");
        }
    }

    #[test]
    fn a_page_of_doubtful_turns_says_so_before_its_first_chart() {
        let mut record = record(8);
        assert!(!super::of(&record).contains("class=\"doubt\""));
        record.turns.iter_mut().for_each(|turn| turn.marks = vec!["stolen".to_owned()]);
        let html = super::of(&record);
        let warning = html.find("<p class=\"doubt\"><strong>Most turns are doubtful");
        assert!(warning.is_some() && warning < html.find("<svg"), "{html}");
        assert!(html.contains("<br>16 of 16 turns were disturbed by other machines"), "{html}");
    }

    #[test]
    fn nothing_from_a_study_or_a_machine_is_markup() {
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
    fn a_page_needs_nothing_from_elsewhere() {
        let html = super::of(&record(8));
        for part in ["http://", "https://", "src=", "url(", "@import"] {
            assert!(!html.contains(part), "{part}");
        }
    }

    #[test]
    fn two_programs_are_set_side_by_side() {
        let mut record = record(8);
        assert!(!super::of(&record).contains("Side by side"));
        let mut other = record.programs[0].clone();
        other.name = "nginx".to_owned();
        record.programs.push(other);
        assert!(super::of(&record).contains("of weir, compared with nginx"));
    }
}

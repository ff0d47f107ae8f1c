//! Pages of docs/ as parts of man pages: the Markdown that they use, and no more.

use super::roff::ManPage;

/// What headings of the second level become; those of the third are one level below.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum HeadingLevel {
    Section,
    Subsection,
}

/// Appends a text. Its title is left out.
pub(super) fn append(page: &mut ManPage, markdown: &str, level: HeadingLevel) {
    let mut block: Vec<&str> = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            flush(page, &mut block);
            page.example(lines.by_ref().take_while(|line| !line.starts_with("```")));
        } else if line.is_empty() {
            flush(page, &mut block);
        } else if let Some((marks, title)) = heading(line) {
            flush(page, &mut block);
            match (marks, level) {
                (1, _) => {}
                (2, HeadingLevel::Section) => page.section(title),
                (2, HeadingLevel::Subsection) | (_, HeadingLevel::Section) => {
                    page.subsection(title)
                }
                _ => page.paragraph(&format!("**{title}**")),
            }
        } else {
            if line.starts_with("- ") || line.starts_with('|') {
                flush(page, &mut block);
            }
            block.push(line);
        }
    }
    flush(page, &mut block);
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let marks = line.len() - title.len();
    Some((marks, title.strip_prefix(' ')?)).filter(|_| marks > 0)
}

fn flush(page: &mut ManPage, block: &mut Vec<&str>) {
    if block.is_empty() {
        return;
    }
    let text = block.drain(..).map(str::trim).collect::<Vec<_>>().join(" ");
    if let Some(point) = text.strip_prefix("- ") {
        page.point(point);
    } else if let Some(row) = text.strip_prefix('|') {
        table_row(page, row.trim_end_matches('|'));
    } else {
        page.paragraph(&text);
    }
}

/// The row of a table, whose first cell is a term.
fn table_row(page: &mut ManPage, row: &str) {
    let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim()).collect();
    let is_line = |cell: &&str| cell.contains("---") || cell.is_empty();
    let Some((term, rest)) = cells.split_first().filter(|(term, _)| !is_line(term)) else { return };
    if term.starts_with('`') {
        page.item(&term.replace('`', ""), &rest.join("; "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_pages_use_is_converted() {
        let mut page = ManPage::new("x", "5", "2026-11-27", "1");
        let text = "# Title\n\nTwo\nlines.\n\n## One\n\n- a\n- b\n  c\n\n### Two\n\n\
                    ```nginx\n.x;\n```\n\n| variable | value |\n|---|---|\n| `$a` | One. |\n";
        append(&mut page, text, HeadingLevel::Subsection);
        let written = page.finish();
        let expected = ".PP\nTwo lines.\n.SS \"One\"\n.IP \\(bu 2\na\n.IP \\(bu 2\nb c\n\
                        .PP\n\\fBTwo\\fR\n.PP\n.RS 4\n.EX\n\\&.x;\n.EE\n.RE\n\
                        .TP\n.B $a\nOne.\n";
        assert!(written.ends_with(expected), "{written}");
    }
}

//! Text in the notation of man pages (man(7)).

use std::fmt::Write;

/// A man page that is being written.
pub(super) struct ManPage(String);

impl ManPage {
    /// Begins a page: `weir`, `8`, the date, the version.
    pub(super) fn new(name: &str, section: &str, date: &str, version: &str) -> Self {
        let title = argument(&name.to_uppercase());
        Self(format!(
            ".\\\" Written by cargo xtask man.\n\
             .TH {title} {section} {date} {} {}\n",
            argument(&format!("Weir {version}")),
            argument("Weir")
        ))
    }

    /// The line that makewhatis(8) reads.
    pub(super) fn name(&mut self, name: &str, summary: &str) {
        self.section("Name");
        let _ = writeln!(self.0, "{} \\- {}", literal(name), line(summary));
    }

    /// The forms of a command.
    pub(super) fn usage(&mut self, forms: &[String]) {
        for (at, form) in forms.iter().enumerate() {
            let between = if at > 0 { ".br\n" } else { "" };
            let (command, rest) = form.split_once(" [").map_or((&**form, ""), |(c, r)| (c, r));
            let rest = if rest.is_empty() { String::new() } else { literal(&format!(" [{rest}")) };
            let _ = writeln!(self.0, "{between}{}{rest}", bold(command));
        }
    }

    pub(super) fn section(&mut self, title: &str) {
        let _ = writeln!(self.0, ".SH {}", argument(&title.to_uppercase()));
    }

    pub(super) fn subsection(&mut self, title: &str) {
        let _ = writeln!(self.0, ".SS {}", argument(title));
    }

    /// A paragraph of marked-up text.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.begin_paragraph();
        self.text(text);
    }

    /// A heading begins a paragraph itself.
    fn begin_paragraph(&mut self) {
        let last = self.0.lines().next_back().unwrap_or_default();
        if !last.starts_with(".SH") && !last.starts_with(".SS") {
            self.0.push_str(".PP\n");
        }
    }

    /// Text that follows a heading.
    pub(super) fn text(&mut self, text: &str) {
        let _ = writeln!(self.0, "{}", line(text));
    }

    /// A term and its explanation.
    pub(super) fn item(&mut self, term: &str, text: &str) {
        let _ = writeln!(self.0, ".TP\n.B {}\n{}", bold_argument(term), line(text));
    }

    /// A point of a list.
    pub(super) fn point(&mut self, text: &str) {
        let _ = writeln!(self.0, ".IP \\(bu 2\n{}", line(text));
    }

    /// Lines that stay as they are.
    pub(super) fn example<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.begin_paragraph();
        self.0.push_str(".RS 4\n.EX\n");
        for text in lines {
            let _ = writeln!(self.0, "{}", guarded(&literal(text)));
        }
        self.0.push_str(".EE\n.RE\n");
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Marked-up text: `code`, **strong**, [text](address).
fn line(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        out += &plain(&rest[..at]);
        rest = &rest[at..];
        let (shown, after) = marked(rest).unwrap_or_else(|| {
            let end = rest.chars().next().map_or(0, char::len_utf8);
            (plain(&rest[..end]), &rest[end..])
        });
        out += &shown;
        rest = after;
    }
    out += &plain(rest);
    guarded(&out)
}

/// The marked text that this begins with, and what follows it.
fn marked(text: &str) -> Option<(String, &str)> {
    if let Some(code) = text.strip_prefix('`') {
        let (code, after) = code.split_once('`')?;
        return Some((bold(code), after));
    }
    if let Some(strong) = text.strip_prefix("**") {
        let (strong, after) = strong.split_once("**")?;
        return Some((bold(strong), after));
    }
    let (shown, after) = text.strip_prefix('[')?.split_once("](")?;
    let (_, after) = after.split_once(')')?;
    (!shown.contains(']')).then(|| (line(shown), after))
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", literal(text))
}

/// Text in which a dash that begins a word is a minus, as it is typed.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    for letter in text.chars() {
        match letter {
            '-' if !before.is_alphanumeric() => out += "\\-",
            '-' => out.push('-'),
            _ => out += &literal_letter(letter),
        }
        before = letter;
    }
    out
}

/// Text that somebody may copy: all dashes are minuses.
fn literal(text: &str) -> String {
    text.chars()
        .map(|letter| if letter == '-' { "\\-".into() } else { literal_letter(letter) })
        .collect()
}

fn literal_letter(letter: char) -> String {
    match letter {
        '\\' => "\\e".into(),
        '\'' => "\\(aq".into(),
        '`' => "\\(ga".into(),
        '^' => "\\(ha".into(),
        '~' => "\\(ti".into(),
        letter => letter.into(),
    }
}

/// A line that begins with a dot is no request.
fn guarded(text: &str) -> String {
    if text.starts_with('.') { format!("\\&{text}") } else { text.to_owned() }
}

fn argument(text: &str) -> String {
    format!("\"{}\"", literal(text).replace('"', "\\(dq"))
}

/// The rest of a line after a request needs no quotes, except where it begins with one.
fn bold_argument(text: &str) -> String {
    guarded(&literal(text)).replace('"', "\\(dq")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_fonts_and_special_letters_are_escaped() {
        assert_eq!(
            line("a `b-c` **d** [e](f.md) g-h --i"),
            "a \\fBb\\-c\\fR \\fBd\\fR e g-h \\-\\-i"
        );
        assert_eq!(line(".x \\ 'y' [z] 2 * 3"), "\\&.x \\e \\(aqy\\(aq [z] 2 * 3");
    }
}

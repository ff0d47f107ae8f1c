//! Errors as shown to people: nginx's line, then the source with the place marked.
//!
//! ```text
//! nginx: [emerg] unknown directive "proxy_pas" in /etc/nginx/nginx.conf:7
//!     7 |         proxy_pas http://backend;
//!       |         ^^^^^^^^^
//!       did you mean "proxy_pass"?
//! ```
//!
//! The first line equals nginx's byte for byte, because tools search for it. The caller decides
//! where it is printed, and which text comes before the level. Control characters of the source
//! text are not printed.

use std::fmt::Write;

use crate::{Error, Sources, Span};

/// The length at which nginx cuts a message.
const MESSAGE_BYTES_MAX: usize = 1024;
/// The most columns shown of a source line; a longer one is cut around the mark.
const COLUMNS_MAX: usize = 120;
/// The most columns shown before the mark in a line that is cut.
const COLUMNS_BEFORE_MARK: usize = 40;
/// The most bytes examined on each side of the mark's start: a minified file may be a single line.
const WINDOW_BYTES: usize = 2048;
const TAB_COLUMNS: usize = 4;
const CUT: &str = "...";

/// An error with the texts it refers to.
#[derive(Clone, Copy, Debug)]
pub struct Diagnostic<'a> {
    pub error: &'a Error,
    /// The texts that the configuration was read from.
    pub sources: &'a Sources,
}

impl Diagnostic<'_> {
    /// The whole diagnostic, with the first line as nginx prints it to the terminal.
    pub fn render(&self, program: &str) -> String {
        format!("{program}: [{}] {}\n{}", self.error.level, self.headline(), self.excerpt())
    }

    /// nginx's line: the message and ` in FILE:LINE`.
    pub fn headline(&self) -> String {
        let message = &self.error.message;
        let message = &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)];
        let place = self.error.span.map(|span| self.sources.place(span)).unwrap_or_default();
        format!("{message}{place}")
    }

    /// The place and the advice in one line, for a log, which shows no lines below. Empty if
    /// nginx's line contains everything.
    fn remark(&self) -> String {
        let mark = self.error.mark.filter(|_| self.error.span.is_none());
        let place = mark.map(|mark| self.sources.place(mark)).unwrap_or_default();
        let advice = self.advice().collect::<Vec<_>>().join("; ");
        match (&advice[..], place.trim_start()) {
            ("", place) => place.into(),
            (_, "") => advice,
            (_, place) => format!("{place}: {advice}"),
        }
    }

    /// The message on a single line, for a log: nginx's message, with advice in parentheses.
    pub fn log_line(&self) -> String {
        match &self.remark()[..] {
            "" => self.headline(),
            remark => format!("{} ({remark})", self.headline()),
        }
    }

    /// The lines below the message: the second line that the error is about, and the help text.
    fn advice(&self) -> impl Iterator<Item = String> {
        let elsewhere = self.error.elsewhere.as_deref();
        let elsewhere = elsewhere.map(|(what, at)| format!("{what}{}", self.sources.place(*at)));
        elsewhere.into_iter().chain(self.error.help.clone())
    }

    /// The lines below the message, each with its line feed: the source with the mark, and the
    /// advice. Empty if there is nothing to show.
    pub fn excerpt(&self) -> String {
        let mut out = String::new();
        let mark = self.error.mark.or(self.error.span);
        if let Some(mark) = mark
            && let Some(source) = self.sources.source(mark.file)
            && let Some(marked) = Marked::new(&source.text, mark)
        {
            let number = mark.line;
            let gutter = number.to_string().len().max(5);
            // The place is shown unless nginx's line has it.
            if self.error.span.is_none_or(|span| span.file != mark.file) {
                let name = source.name();
                writeln!(out, "{:>gutter$} --> {name}:{number}", "").expect("a string takes all");
            }
            writeln!(out, "{number:>gutter$} | {}", marked.line).expect("a string takes all");
            writeln!(out, "{:>gutter$} | {}", "", marked.carets).expect("a string takes all");
        }
        for line in self.advice() {
            writeln!(out, "      {line}").expect("a string takes all");
        }
        out
    }
}

/// A source line as shown, and the line of carets to go below it.
struct Marked {
    line: String,
    carets: String,
}

impl Marked {
    /// `None` if there is no text to mark.
    fn new(text: &[u8], mark: Span) -> Option<Self> {
        let (start, end) = (mark.start as usize, mark.end as usize);
        let before = text.get(..start)?;
        let from = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let from = from.max(start.saturating_sub(WINDOW_BYTES));
        let window = &text[from..text.len().min(start + WINDOW_BYTES)];
        let line_end = window[start - from..].iter().position(|&byte| byte == b'\n');
        let line = &window[..line_end.map_or(window.len(), |len| start - from + len)];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let cells = cells(line);
        let column = |at: usize| -> usize {
            cells.iter().take_while(|cell| cell.at < at - from).map(|cell| cell.columns).sum()
        };
        let first = column(start);
        let last = column(end.max(start).min(from + line.len())).max(first + 1);
        Some(Self::cut(&cells, first, last))
    }

    /// Shows as much of the line as fits, with the columns `first..last` marked.
    fn cut(cells: &[Cell], first: usize, last: usize) -> Self {
        let whole: usize = cells.iter().map(|cell| cell.columns).sum();
        let skipped =
            if whole > COLUMNS_MAX { first.saturating_sub(COLUMNS_BEFORE_MARK) } else { 0 };
        let mut line = String::new();
        let mut column = 0;
        let mut shown_from = skipped;
        if skipped > 0 {
            line.push_str(CUT);
        }
        for cell in cells {
            if column < skipped {
                shown_from = column + cell.columns;
            } else if column + cell.columns > skipped + COLUMNS_MAX {
                line.push_str(CUT);
                break;
            } else {
                line.push_str(&cell.shown);
            }
            column += cell.columns;
        }
        let lead = if skipped > 0 { CUT.len() } else { 0 };
        let indent = lead + first - shown_from.min(first);
        let carets = last.min(skipped + COLUMNS_MAX).max(first + 1) - first;
        Self { line, carets: " ".repeat(indent) + &"^".repeat(carets) }
    }
}

/// One character of a line, as shown.
struct Cell {
    at: usize,
    shown: String,
    columns: usize,
}

fn cells(line: &[u8]) -> Vec<Cell> {
    let mut at = 0;
    let mut cells = Vec::new();
    for chunk in line.utf8_chunks() {
        for character in chunk.valid().chars() {
            cells.push(Cell::new(at, character));
            at += character.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            cells.push(Cell::new(at, char::REPLACEMENT_CHARACTER));
            at += chunk.invalid().len();
        }
    }
    cells
}

impl Cell {
    fn new(at: usize, character: char) -> Self {
        match character {
            '\t' => Self { at, shown: " ".repeat(TAB_COLUMNS), columns: TAB_COLUMNS },
            _ if character.is_control() || turns_direction(character) => {
                Self { at, shown: char::REPLACEMENT_CHARACTER.into(), columns: 1 }
            }
            _ => Self { at, shown: character.into(), columns: columns(character) },
        }
    }
}

/// Whether a character turns the direction of text, so that a terminal shows other text than the
/// file has.
fn turns_direction(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The columns of a terminal that a character takes: two for the East Asian wide ones, none for
/// combining ones. Coarse: a wrong guess only moves the carets.
fn columns(character: char) -> usize {
    const NONE: [(u32, u32); 5] =
        [(0x300, 0x36f), (0x200b, 0x200f), (0x20d0, 0x20ff), (0xfe00, 0xfe0f), (0xfeff, 0xfeff)];
    const TWO: [(u32, u32); 9] = [
        (0x1100, 0x115f),
        (0x2e80, 0xa4cf),
        (0xac00, 0xd7a3),
        (0xf900, 0xfaff),
        (0xfe30, 0xfe6f),
        (0xff00, 0xff60),
        (0xffe0, 0xffe6),
        (0x1f300, 0x1faff),
        (0x20000, 0x3fffd),
    ];
    let among = |ranges: &[(u32, u32)]| {
        ranges.iter().any(|&(from, to)| (from..=to).contains(&u32::from(character)))
    };
    if among(&NONE) { 0 } else { 1 + usize::from(among(&TWO)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileId, SourceText};

    fn excerpt(text: &str, marked: &str) -> String {
        let start = text.find(marked).unwrap();
        let line = 1 + text[..start].matches('\n').count() as u32;
        let (start, end) = (start as u32, (start + marked.len()) as u32);
        let span = Span { file: FileId(0), line, start, end };
        let mut sources = Sources::default();
        sources.add(SourceText { path: Some(b"/x"[..].into()), text: text.as_bytes().into() });
        Diagnostic { error: &Error::at(span, "no"), sources: &sources }.excerpt()
    }

    #[test]
    fn carets_are_below_the_marked_text() {
        let cases = [
            ("a b;\n", "b", "    1 | a b;\n      |   ^\n"),
            ("a\n\tb c;\r\nd", "b c", "    2 |     b c;\n      |     ^^^\n"),
            ("a \"b\nc\" d;", "\"b\nc\"", "    1 | a \"b\n      |   ^^\n"),
            ("値 b;", "b", "    1 | 値 b;\n      |    ^\n"),
            ("e\u{301} b;", "b", "    1 | e\u{301} b;\n      |   ^\n"),
            ("\u{202e}a\u{1b} b;", "b", "    1 | \u{fffd}a\u{fffd} b;\n      |     ^\n"),
            ("a\n \nb", " ", ""),
        ];
        for (text, marked, expected) in cases {
            assert_eq!(excerpt(text, marked), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark() {
        let text = format!("{} here; {}", "a".repeat(100_000), "b".repeat(100_000));
        let shown = excerpt(&text, "here");
        let (line, carets) = shown.split_once('\n').unwrap();
        assert!(line.len() < 140 && line.ends_with("bbb..."), "{line}");
        assert_eq!(line.find("here"), carets.find("^^^^"));
        let shown = excerpt(&text, &text[1..]);
        assert!(shown.lines().all(|line| line.len() < 140), "{shown}");
    }

    #[test]
    fn a_long_message_is_cut_as_in_nginx() {
        let error = Error::bare("é".repeat(1000));
        let sources = Sources::default();
        let diagnostic = Diagnostic { error: &error, sources: &sources };
        assert_eq!(diagnostic.headline().len(), MESSAGE_BYTES_MAX);
        assert_eq!(diagnostic.excerpt(), "");
    }

    #[test]
    fn the_excerpt_names_the_place_if_nginxs_line_does_not() {
        let mut sources = Sources::default();
        sources.add(SourceText { path: Some(b"/x"[..].into()), text: b"a b;"[..].into() });
        let span = Span { file: FileId(0), line: 1, start: 2, end: 3 };
        let error = Error::bare("no").marked(span).help("do");
        let diagnostic = Diagnostic { error: &error, sources: &sources };
        let expected = "weir: [emerg] no\n      --> /x:1\n    1 | a b;\n      |   ^\n      do\n";
        assert_eq!(diagnostic.render("weir"), expected);
        assert_eq!(diagnostic.log_line(), "no (in /x:1: do)");
        let error = Error::at(span, "no");
        assert_eq!(Diagnostic { error: &error, sources: &sources }.log_line(), "no in /x:1");
        let error = error.elsewhere("the other is", span).help("do");
        let diagnostic = Diagnostic { error: &error, sources: &sources };
        assert_eq!(diagnostic.log_line(), "no in /x:1 (the other is in /x:1; do)");
        assert!(diagnostic.excerpt().ends_with("^\n      the other is in /x:1\n      do\n"));
    }

    #[test]
    fn help_comes_last_and_the_level_first() {
        let error = Error::bare("no").help("do").level(crate::ErrorLevel::Warn);
        let sources = Sources::default();
        let shown = Diagnostic { error: &error, sources: &sources }.render("weir");
        assert_eq!(shown, "weir: [warn] no\n      do\n");
    }
}

//! Removes from a script or a style what only its authors need: indentation, lines that are
//! comments, spaces around punctuation, and line ends that cannot end a statement. Strings and
//! templates stay as they are; a template's further lines neither begin with spaces that matter nor
//! end with punctuation.

/// After these, a line end has no meaning.
const GOES_ON: [char; 11] = [',', ';', '{', '(', '[', '=', '>', '?', ':', '&', '|'];

/// Squeezes a text; `punctuation` needs no space beside it.
pub(super) fn squeeze(text: &str, punctuation: &[u8]) -> String {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.fold(String::with_capacity(text.len()), |mut out, line| {
        squeeze_line(line, punctuation, &mut out);
        if !line.ends_with(GOES_ON) {
            out.push('\n');
        }
        out
    })
}

fn squeeze_line(line: &str, punctuation: &[u8], out: &mut String) {
    let start = out.len();
    // The quote that a string began with.
    let mut quote = None;
    let mut chars = line.chars().peekable();
    let stands_alone = |c: char| punctuation.contains(&u8::try_from(c).unwrap_or(0));
    while let Some(c) = chars.next() {
        let is_first = out.len() == start;
        match (c, quote) {
            (' ', None) if !is_first && out.ends_with(stands_alone) => continue,
            (' ', None) if chars.peek().copied().is_some_and(stands_alone) => continue,
            ('\'' | '"' | '`', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        out.push(c);
        if c == '\\' {
            out.extend(chars.next());
        }
    }
}

//! Common causes of a rejected directive, independent of the message: a missing `;`, quotes from a
//! word processor, a byte order mark, a brace in a regular expression.

use crate::{Directive, Word, known, units};

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const TYPOGRAPHIC: [char; 5] = ['“', '”', '„', '‘', '’'];

/// Advice about a refused directive.
pub(crate) fn on(line: &Directive) -> Option<String> {
    if line.name.text.starts_with(BYTE_ORDER_MARK) {
        return Some("the file starts with a byte order mark; save it as UTF-8 without one".into());
    }
    if line.name.text.contains(&b'}') {
        let why = "outside quotes, \"{\" starts a block";
        return Some(format!("{why}; quote regular expressions that contain braces"));
    }
    let words = || std::iter::once(&line.name).chain(&line.args);
    if let Some(quote) = words().find_map(typographic) {
        return Some(format!("{quote} is not a quote; use \" or '"));
    }
    unfinished(line).or_else(|| other_sticky(line))
}

/// A `sticky` of nginx-sticky-module-ng: it has none of nginx's methods.
fn other_sticky(line: &Directive) -> Option<String> {
    let method = line.args.first().map(|word| &*word.text);
    let is_nginx = matches!(method, Some(b"cookie" | b"route" | b"learn"));
    (&*line.name.text == b"sticky" && !is_nginx).then(|| {
        "this form belongs to nginx-sticky-module-ng; nginx's own is \"sticky cookie NAME\"".into()
    })
}

fn typographic(word: &Word) -> Option<char> {
    let text = std::str::from_utf8(&word.text).ok()?;
    text.chars().find(|character| TYPOGRAPHIC.contains(character))
}

/// Finds a word at the beginning of a line that is a directive's name: it was probably meant to be
/// one, and the line before it lacks its `;`.
fn unfinished(line: &Directive) -> Option<String> {
    let mut before = &line.name;
    for word in &line.args {
        let is_quoted = word.span.end - word.span.start != word.text.len() as u32;
        let begins_line = word.span.line != before.span.line;
        if begins_line && !is_quoted && !known::find(&word.text).is_empty() {
            return Some(format!("line {} is probably missing its \";\"", before.span.line));
        }
        before = word;
    }
    None
}

/// The size that an invalid value was probably meant to be.
pub fn size(text: &[u8]) -> Option<String> {
    let (number, unit) = split(text)?;
    let meant = match &*unit {
        "kb" | "kib" | "kbytes" => format!("{number}k"),
        "mb" | "mib" | "mbytes" => format!("{number}m"),
        "g" | "gb" | "gib" => format!("{}m", number.parse::<u64>().ok()?.checked_mul(1024)?),
        "b" | "bytes" => number.to_owned(),
        _ => return None,
    };
    units::size(meant.as_bytes()).map(|_| meant)
}

/// The time that an invalid value was probably meant to be.
pub fn time(text: &[u8]) -> Option<String> {
    let (number, unit) = split(text)?;
    let unit = match &*unit {
        "msec" | "msecs" | "millis" | "milliseconds" => "ms",
        "sec" | "secs" | "second" | "seconds" => "s",
        "min" | "mins" | "minute" | "minutes" => "m",
        "hr" | "hrs" | "hour" | "hours" => "h",
        "day" | "days" => "d",
        _ => return None,
    };
    Some(format!("{number}{unit}"))
}

/// The switch that an invalid value was probably meant to be.
pub(crate) fn switch(text: &[u8]) -> Option<&'static str> {
    match &*text.to_ascii_lowercase() {
        b"yes" | b"true" | b"1" | b"enable" | b"enabled" => Some("on"),
        b"no" | b"false" | b"0" | b"none" | b"disable" | b"disabled" => Some("off"),
        _ => crate::suggest::nearest(text, ["on", "off"]),
    }
}

/// A number and the letters after it, in lower case.
fn split(text: &[u8]) -> Option<(&str, String)> {
    let text = std::str::from_utf8(text).ok()?;
    let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    (!number.is_empty()).then(|| (number, unit.trim().to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(text: &str) -> Option<String> {
        let tree = crate::parser::parse_alone(text.as_bytes()).unwrap();
        on(&tree.root[0])
    }

    #[test]
    fn a_directive_among_the_arguments_of_another_lacks_a_semicolon() {
        let lacks = |line: u32| Some(format!("line {line} is probably missing its \";\""));
        assert_eq!(advice("listen 80\n  root /srv;"), lacks(1));
        assert_eq!(advice("root\n/srv\n\nindex x;"), lacks(2));
        for fine in ["listen 80 root;", "log_format\n 'root'\n \"index\";", "root\n/srv;"] {
            assert_eq!(advice(fine), None, "{fine}");
        }
    }

    #[test]
    fn another_modules_sticky_is_recognised() {
        for line in ["sticky;", "sticky name=srv_id expires=1h;", "sticky hash=sha1 no_fallback;"] {
            assert!(advice(line).unwrap().contains("nginx-sticky-module-ng"), "{line}");
        }
        for line in ["sticky cookie;", "sticky route $a;", "sticky learn create=$a;", "root a b;"] {
            assert_eq!(advice(line), None, "{line}");
        }
    }

    #[test]
    fn foreign_characters_are_named() {
        assert!(advice("\u{feff}events {}").unwrap().contains("byte order mark"));
        assert!(advice("return 200 “a”;").unwrap().starts_with("“ is not a quote"));
        assert!(advice("2}$ {}").unwrap().contains("starts a block"));
        assert_eq!(advice("return 200 \"a\";"), None);
    }

    #[test]
    fn values_get_their_units() {
        assert_eq!(size(b"10mb").as_deref(), Some("10m"));
        assert_eq!(size(b"1 KiB").as_deref(), Some("1k"));
        assert_eq!(size(b"2g").as_deref(), Some("2048m"));
        assert_eq!(size(b"99999999999999999999g"), None);
        assert_eq!(size(b"mb"), None);
        assert_eq!(time(b"65sec").as_deref(), Some("65s"));
        assert_eq!(time(b"5 minutes").as_deref(), Some("5m"));
        assert_eq!(time(b"5 fortnights"), None);
        assert_eq!(switch(b"onn"), Some("on"));
        assert_eq!(switch(b"TRUE"), Some("on"));
        assert_eq!(switch(b"maybe"), None);
    }
}

//! Regular expressions, paths and times of objects, checked before they get into nginx.conf.

use pcre2::bytes::RegexBuilder;

const PATTERN_LENGTH_MAX: usize = 1024;

/// Refuses an expression that is invalid, alone or within a larger one, or that would set
/// variables.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), String> {
    let is_too_long = pattern.len() > PATTERN_LENGTH_MAX;
    if is_too_long || pattern.chars().any(char::is_control) {
        return Err("the regular expression is too long or has control characters".to_owned());
    }
    if has_named_group(pattern) || pattern.starts_with("(*") {
        return Err(format!("the regular expression {pattern:?} has named groups or options"));
    }
    for text in [pattern.to_owned(), format!("^(?:{pattern})\\z")] {
        RegexBuilder::new().build(&text).map_err(|error| format!("{pattern:?}: {error}"))?;
    }
    Ok(())
}

fn has_named_group(pattern: &str) -> bool {
    let is_name = |rest: &str| rest.starts_with(|next: char| next != '=' && next != '!');
    pattern.contains("(?P") || pattern.contains("(?'") || pattern.split("(?<").skip(1).any(is_name)
}

/// Paths that begin so are those of internal locations.
pub(crate) const OWN_PATHS: &str = "/.weir/";

/// The path as nginx compares it: decoded.
pub(crate) fn decoded_path(path: &str) -> Result<String, String> {
    let refuse = |why: &str| Err(format!("the path {path:?} {why}"));
    if !path.starts_with('/') || path.len() > 1024 {
        return refuse("does not begin with \"/\" or is too long");
    }
    let Some(bytes) = decode(path.as_bytes()) else {
        return refuse("is not encoded correctly");
    };
    let Ok(decoded) = String::from_utf8(bytes) else { return refuse("is not UTF-8") };
    if decoded.chars().any(char::is_control) {
        return refuse("has control characters");
    }
    if format!("{decoded}/").starts_with(OWN_PATHS) {
        return refuse("is Weir's own");
    }
    Ok(decoded)
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                out.push((digit(high)? * 16 + digit(low)?) as u8);
                rest = after;
            }
            (b'%', _) => return None,
            (other, after) => {
                out.push(*other);
                rest = after;
            }
        }
    }
    Some(out)
}

/// A duration of Gateway API (`1h30m`, `500ms`) in milliseconds.
pub(crate) fn duration_ms(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|next: char| !next.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok().filter(|_| digits <= 5)?;
        rest = &rest[digits..];
        let units: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
        let (unit, scale) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        total += number * scale;
        rest = &rest[unit.len()..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_could_break_out_are_refused() {
        for pattern in [
            "(",
            "a)(b",
            "a)|(?:b",
            "(?<host>a)",
            "(?P<a>b)",
            "(?'a'b)",
            "(?x)a # b",
            "(*UTF)a",
            "\\",
        ] {
            assert!(check_pattern(pattern).is_err(), "{pattern}");
        }
        for pattern in ["a.*", "/v[0-9]+/(?:x|y)", "(?<=a)b", "(?<!a)b", "a{2}", "^a$"] {
            assert_eq!(check_pattern(pattern), Ok(()));
        }
    }

    #[test]
    fn paths_are_decoded() {
        assert_eq!(decoded_path("/a%20b").unwrap(), "/a b");
        for path in ["", "a", "/%", "/%4", "/%zz", "/%0a", "/%ff", "/.weir", "/.weir/x", "/a\nb"] {
            assert!(decoded_path(path).is_err(), "{path:?}");
        }
        assert!(decoded_path("/.weird").is_ok());
    }

    #[test]
    fn durations_are_read() {
        for (text, ms) in [("500ms", 500), ("10s", 10_000), ("1h2m3s4ms", 3_723_004), ("0s", 0)] {
            assert_eq!(duration_ms(text), Some(ms));
        }
        for text in ["", "5", "s", "1d", "-1s", "999999s", "1s "] {
            assert_eq!(duration_ms(text), None, "{text}");
        }
    }
}

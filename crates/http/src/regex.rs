//! Regular expressions: PCRE2, as in nginx, so that patterns mean what they meant.

use conf::{Directive, Error, Word};
use pcre2::bytes::{CaptureLocations, Regex, RegexBuilder};

use crate::exchange::Exchange;

/// Compiles a pattern of the configuration.
pub fn compile(
    pattern: &[u8],
    caseless: bool,
    word: &Word,
    from: &Directive,
) -> Result<Regex, Error> {
    let text = String::from_utf8_lossy(pattern);
    RegexBuilder::new().caseless(caseless).jit_if_available(true).build(&text).map_err(|error| {
        let place = error.offset().map(|at| &text[at.min(text.len())..]).unwrap_or_default();
        let message = format!("pcre2_compile() failed: {error} in \"{text}\" at \"{place}\"");
        from.error_at(word, message)
    })
}

/// Whether the pattern has groups.
pub fn captures(pattern: &Regex) -> bool {
    pattern.captures_len() > 1
}

/// Whether the subject matches. The groups go into the exchange, for `$1` and named ones.
pub fn matches(pattern: &Regex, subject: &[u8], x: &mut Exchange) -> bool {
    if !captures(pattern) {
        return pattern.is_match(subject).unwrap_or(false);
    }
    let mut places = pattern.capture_locations();
    match pattern.captures_read(&mut places, subject) {
        Ok(Some(_)) => {
            keep(&places, subject, x);
            true
        }
        _ => false,
    }
}

fn keep(places: &CaptureLocations, subject: &[u8], x: &mut Exchange) {
    x.captures.subject.clear();
    x.captures.subject.extend_from_slice(subject);
    x.captures.groups.clear();
    let group = |number| places.get(number).map(|(start, end)| (start as u32, end as u32));
    x.captures.groups.extend((0..places.len()).map(group));
}

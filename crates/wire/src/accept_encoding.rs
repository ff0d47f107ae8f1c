//! Whether the value of an `Accept-Encoding` field allows gzip, as nginx reads it.
//!
//! nginx looks for the word `gzip` and reads its weight. Other codings, `*` and `x-gzip` have no
//! effect, and the first of several `gzip` decides.

const GZIP: &[u8] = b"gzip";

/// A weight has at most this many digits after the point (RFC 9110, section 12.4.2).
const WEIGHT_DIGITS_MAX: usize = 3;

/// Whether the client accepts gzip.
pub fn accepts_gzip(value: &[u8]) -> bool {
    // Nearly every browser sends a value that begins so.
    value.starts_with(b"gzip,") || after_gzip(value).is_some_and(is_allowed)
}

/// The text after the first `gzip` that begins a word.
fn after_gzip(value: &[u8]) -> Option<&[u8]> {
    let mut searched_from = 0;
    loop {
        let rest = &value[searched_from..];
        let at = rest.windows(GZIP.len()).position(|word| word.eq_ignore_ascii_case(GZIP))?;
        let after = searched_from + at + GZIP.len();
        // In nginx, a word can also begin directly after an earlier `gzip`.
        if at == 0 || matches!(rest[at - 1], b',' | b' ') {
            return Some(&value[after..]);
        }
        searched_from = after;
    }
}

fn is_allowed(parameters: &[u8]) -> bool {
    let parameters = skip_spaces(parameters);
    let weight = match parameters.split_first() {
        None | Some((b',', _)) => return true,
        Some((b';', weight)) => skip_spaces(weight),
        Some(_) => return false,
    };
    match weight {
        [] => true,
        [b'q' | b'Q', b'=', weight @ ..] => is_positive(weight),
        _ => false,
    }
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| *byte != b' ').unwrap_or(text.len());
    &text[start..]
}

/// Whether a weight is valid and not zero: 0.001 to 1.000.
fn is_positive(weight: &[u8]) -> bool {
    let end = weight.iter().position(|byte| matches!(byte, b',' | b' '));
    let (whole, fraction) = match &weight[..end.unwrap_or(weight.len())] {
        [whole @ (b'0' | b'1')] => return *whole == b'1',
        [whole @ (b'0' | b'1'), b'.', fraction @ ..] => (*whole, fraction),
        _ => return false,
    };
    let mut nonzero = false;
    for digit in fraction {
        if !digit.is_ascii_digit() {
            return false;
        }
        nonzero |= *digit != b'0';
    }
    let in_range = fraction.len() <= WEIGHT_DIGITS_MAX;
    in_range && (whole == b'1') != nonzero
}

#[cfg(test)]
mod tests {
    use super::accepts_gzip;

    #[test]
    fn words_and_weights() {
        for (value, accepted) in [
            ("gzip", true),
            ("gzip, deflate, br", true),
            ("gzip,", true),
            ("gzip,;q=0", true),
            ("GZIP", true),
            ("deflate, gzip", true),
            ("deflate,gzip;q=1.0", true),
            ("gzip;q=0.5", true),
            ("gzip ; q=0.001, *", true),
            ("gzip;q=1", true),
            ("gzip; Q=1.000", true),
            ("gzip;", true),
            ("gzip; ", true),
            ("gzip   ", true),
            ("gzipgzip", false),
            ("x-gzip", false),
            ("x-gzip, gzip", true),
            ("x-gzipgzip", true),
            ("gzip;q=0", false),
            ("gzip;q=0.", false),
            ("gzip;q=0.000", false),
            ("gzip;q=0, gzip", false),
            ("gzip;q=0.0000", false),
            ("gzip;q=0.0001", false),
            ("gzip;q=1.001", false),
            ("gzip;q=1.0000", false),
            ("gzip;q=2", false),
            ("gzip;q=.5", false),
            ("gzip;q=", false),
            ("gzip;q", false),
            ("gzip;q =1", false),
            ("gzip;v=1", false),
            ("gzip;q=0.5x", false),
            ("gzip;q=1x", false),
            ("gzipx", false),
            ("*", false),
            ("deflate", false),
            ("gzi", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(value.as_bytes()), accepted, "{value:?}");
        }
    }
}

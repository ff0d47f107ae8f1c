//! Numbers and times on a command line: `10k`, `1.5M`, `500ms`, `2m`.

use std::time::Duration;

/// A count: `400`, `10k`, `1M`, `2G`, as wrk takes them.
pub fn count(text: &str) -> Result<u64, String> {
    let scale = |unit: &str| match unit {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "m" | "M" => Some(1e6),
        "g" | "G" => Some(1e9),
        _ => None,
    };
    scaled(text, scale)
        .filter(|count| *count <= COUNT_MAX && count.fract() == 0.0)
        .map(|count| count as u64)
        .ok_or_else(|| format!("\"{text}\" is not a number, such as 400, 10k or 1M"))
}

/// A number of bytes: `512`, `4k`, `1m`, where k is 1024.
pub fn size(text: &str) -> Result<u64, String> {
    let scale = |unit: &str| match unit {
        "" => Some(1.0),
        "k" | "K" => Some(1024.0),
        "m" | "M" => Some(1024.0 * 1024.0),
        "g" | "G" => Some(1024.0 * 1024.0 * 1024.0),
        _ => None,
    };
    scaled(text, scale)
        .filter(|size| *size <= COUNT_MAX && size.fract() == 0.0)
        .map(|size| size as u64)
        .ok_or_else(|| format!("\"{text}\" is not a size, such as 512, 4k or 1m"))
}

/// A time: `2s`, `500ms`, `100us`, `1m`, `2h`; a plain number is in seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let scale = |unit: &str| match unit {
        "us" => Some(1e-6),
        "ms" => Some(1e-3),
        "" | "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    scaled(text, scale)
        .filter(|seconds| *seconds <= TIME_MAX_S)
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("\"{text}\" is not a time, such as 10s, 500ms or 2m"))
}

/// A share: `0.01`, `1%`.
pub fn share(text: &str) -> Result<f64, String> {
    let scale = |unit: &str| match unit {
        "" => Some(1.0),
        "%" => Some(0.01),
        _ => None,
    };
    scaled(text, scale)
        .filter(|share| *share <= 1.0)
        .ok_or_else(|| format!("\"{text}\" is not a share, such as 1% or 0.01"))
}

/// The largest number up to which every whole number is exact in a double.
const COUNT_MAX: f64 = 9_007_199_254_740_992.0;
/// Ten years.
const TIME_MAX_S: f64 = 10.0 * 365.0 * 24.0 * 3600.0;

/// A non-negative decimal number and its unit, with an optional space between them.
fn scaled(text: &str, scale: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some(number.parse::<f64>().ok()? * scale(unit.trim_start())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(count("400"), Ok(400));
        assert_eq!(count("1.5k"), Ok(1500));
        assert_eq!(count("2M"), Ok(2_000_000));
        for wrong in ["", "k", "-1", "1.5", "1x", "1e9", "99999999999G", "1..2"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(size("4k"), Ok(4096));
    }

    #[test]
    fn times() {
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        assert_eq!(time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(time("1.5 ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "s", "-1s", "1d", "9999999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares() {
        assert_eq!((share("1%"), share("0.5")), (Ok(0.01), Ok(0.5)));
        assert!(share("2").is_err());
    }
}

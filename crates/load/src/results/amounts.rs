//! Amounts as wrk writes them: two decimals and a unit that keeps the number short.

/// A unit and those above it.
struct Units {
    base: &'static str,
    scale: f64,
    above: &'static [&'static str],
}

// wrk has one more unit of each, which it never reaches: two hours are 120m.
const MICROSECONDS: Units = Units { base: "us", scale: 1000.0, above: &["ms"] };
const SECONDS: Units = Units { base: "s", scale: 60.0, above: &["m"] };
const BYTES: Units = Units { base: "", scale: 1024.0, above: &["K", "M", "G", "T"] };
const COUNT: Units = Units { base: "", scale: 1000.0, above: &["k", "M", "G", "T"] };

/// The share of the next unit from which wrk uses it: 850us are 0.85ms.
const NEXT_UNIT_AT: f64 = 0.85;

/// A measured time: `1.23ms`.
pub(crate) fn time_us(microseconds: f64) -> String {
    if microseconds >= 1e6 {
        write(microseconds / 1e6, &SECONDS, 2)
    } else {
        write(microseconds, &MICROSECONDS, 2)
    }
}

/// A configured time, in whole units: `30s`, `2m`.
pub(crate) fn time_s(seconds: f64) -> String {
    write(seconds, &SECONDS, 0)
}

/// A number of bytes without its B: `1.23K`.
pub(crate) fn bytes(bytes: f64) -> String {
    write(bytes, &BYTES, 2)
}

/// A number: `1.23k`.
pub(crate) fn count(count: f64) -> String {
    write(count, &COUNT, 2)
}

fn write(mut amount: f64, units: &Units, decimals: usize) -> String {
    let mut unit = units.base;
    for above in units.above {
        if amount < units.scale * NEXT_UNIT_AT {
            break;
        }
        amount /= units.scale;
        unit = above;
    }
    format!("{amount:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of wrk's own functions (src/units.c) for the same numbers.
    #[test]
    fn amounts_have_the_format_of_wrk() {
        let times = [
            (0.0, "0.00us"),
            (849.99, "849.99us"),
            (850.0, "0.85ms"),
            (1234.0, "1.23ms"),
            (999_999.0, "1000.00ms"),
            (1_000_000.0, "1.00s"),
            (50_990_000.0, "50.99s"),
            (51_000_000.0, "0.85m"),
            (7_200_000_000.0, "120.00m"),
        ];
        times.iter().for_each(|(us, text)| assert_eq!(time_us(*us), *text));
        let times = [(1.0, "1s"), (50.0, "50s"), (51.0, "1m"), (150.0, "2m"), (7200.0, "120m")];
        times.iter().for_each(|(s, text)| assert_eq!(time_s(*s), *text));
        let sizes = [
            (0.0, "0.00"),
            (870.0, "870.00"),
            (871.0, "0.85K"),
            (1048576.0, "1.00M"),
            (1e15, "909.49T"),
            (1e18, "909494.70T"),
        ];
        sizes.iter().for_each(|(n, text)| assert_eq!(bytes(*n), *text));
        let counts = [(849.0, "849.00"), (850.0, "0.85k"), (12345.0, "12.35k"), (9e6, "9.00M")];
        counts.iter().for_each(|(n, text)| assert_eq!(count(*n), *text));
    }
}

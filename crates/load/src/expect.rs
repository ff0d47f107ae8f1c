//! Expectations of a run: `p99<20ms`, `errors<0.1%`, `rate>5k`.
//!
//! ```text
//! quantity relation bound     p99, p99.9, mean, min, max          a time with its unit: 20ms
//!                             errors, unsent, status(404),        a count, or a share of all
//!                             status(5xx)                         requests: 0.1%
//!                             rate                                requests a second: 5k
//!                             transfer                            bytes a second: 10M
//! ```
//!
//! Only parses and judges; the caller handles broken expectations.

use std::ops::RangeInclusive;

use crate::results::{Judged, Percentile, Results, amounts};
use crate::units;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expectation {
    /// As it was written.
    text: String,
    quantity: Quantity,
    relation: Relation,
    bound: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Quantity {
    Latency(Latency),
    Requests(Which, ExpectedUnit),
    Rate,
    Transfer,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Latency {
    Mean,
    Min,
    Max,
    Percentile(Percentile),
}

/// Which requests are counted.
#[derive(Clone, Debug, PartialEq)]
enum Which {
    Errors,
    Unsent,
    Status(RangeInclusive<u16>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ExpectedUnit {
    Count,
    Percent,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
}

/// Longest first, because they are tried in order at one position.
const RELATIONS: [(&str, Relation); 6] = [
    ("<=", Relation::LessOrEqual),
    (">=", Relation::GreaterOrEqual),
    ("==", Relation::Equal),
    ("<", Relation::Less),
    (">", Relation::Greater),
    ("=", Relation::Equal),
];

impl Expectation {
    /// Parses an expectation. An error names the invalid part.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let no_relation =
            || format!("\"{text}\" is not of the form p99<20ms, errors<0.1%, rate>5k");
        let at = text.find(['<', '>', '=']).ok_or_else(no_relation)?;
        let (name, rest) = text.split_at(at);
        let known = RELATIONS.iter().find(|(sign, _)| rest.starts_with(sign));
        let (sign, relation) = known.ok_or_else(no_relation)?;
        let bound = rest[sign.len()..].trim();
        let (quantity, bound) = quantity(name.trim(), bound)?;
        Ok(Self { text: text.trim().to_owned(), quantity, relation: *relation, bound })
    }

    /// Judges a run. A value that could not be measured breaks the expectation.
    pub(crate) fn judge(&self, results: &Results) -> Judged {
        let measured = self.quantity.measure(results);
        Judged {
            expectation: self.text.clone(),
            kept: measured.is_some_and(|measured| self.relation.holds(measured, self.bound)),
            measured,
            shown: measured
                .map_or_else(|| "nothing: no reply".into(), |value| self.quantity.show(value)),
        }
    }
}

/// A quantity by its name, and the bound in its unit.
fn quantity(name: &str, bound: &str) -> Result<(Quantity, f64), String> {
    if let Some(latency) = latency(name)? {
        return Ok((Quantity::Latency(latency), microseconds(bound)?));
    }
    if let Some(which) = which(name)? {
        let (unit, bound) = requests(bound)?;
        return Ok((Quantity::Requests(which, unit), bound));
    }
    let per_second = bound.strip_suffix("/s").unwrap_or(bound);
    match name {
        "rate" => Ok((Quantity::Rate, units::count(per_second)? as f64)),
        "transfer" => {
            let size = per_second.strip_suffix('B').unwrap_or(per_second);
            Ok((Quantity::Transfer, units::size(size)? as f64))
        }
        _ => Err(format!(
            "\"{name}\" is not a quantity: pNN (p50, p99.9), mean, min, max, errors, unsent, \
             status(404), status(5xx), rate or transfer"
        )),
    }
}

fn latency(name: &str) -> Result<Option<Latency>, String> {
    Ok(Some(match name {
        "mean" => Latency::Mean,
        "min" => Latency::Min,
        "max" => Latency::Max,
        _ => match name.strip_prefix('p') {
            Some(percent) => Latency::Percentile(Percentile::parse(percent)?),
            None => return Ok(None),
        },
    }))
}

fn which(name: &str) -> Result<Option<Which>, String> {
    Ok(Some(match name {
        "errors" => Which::Errors,
        "unsent" => Which::Unsent,
        _ => match name.strip_prefix("status(").and_then(|rest| rest.strip_suffix(')')) {
            Some(status) => Which::Status(statuses(status)?),
            None => return Ok(None),
        },
    }))
}

/// `404`, or `5xx` for 500 to 599.
fn statuses(text: &str) -> Result<RangeInclusive<u16>, String> {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = |text: &str| text.parse::<u16>().ok().filter(|_| is_digits(text));
    let range = match text.strip_suffix("xx") {
        Some(class) if class.len() == 1 => whole(class).map(|class| class * 100..=class * 100 + 99),
        Some(_) => None,
        None if text.len() == 3 => whole(text).map(|status| status..=status),
        None => None,
    };
    range
        .filter(|range| *range.start() >= 100)
        .ok_or_else(|| format!("\"{text}\" is not a status, such as 404 or 5xx"))
}

/// A time in microseconds. Unlike elsewhere, the unit is required, because `p99<20` is not meant in
/// seconds.
fn microseconds(text: &str) -> Result<f64, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(format!("\"{text}\" needs a unit of time, such as {text}ms"));
    }
    units::time(text).map(|time| time.as_secs_f64() * 1e6)
}

fn requests(text: &str) -> Result<(ExpectedUnit, f64), String> {
    if text.ends_with('%') {
        return units::share(text).map(|share| (ExpectedUnit::Percent, share * 100.0));
    }
    let count = units::count(text).map(|count| (ExpectedUnit::Count, count as f64));
    count.map_err(|_| format!("\"{text}\" is neither a count, such as 10, nor a share, such as 1%"))
}

impl Quantity {
    fn measure(&self, results: &Results) -> Option<f64> {
        let tally = &results.tally;
        match self {
            Self::Latency(_) if tally.latency_us.is_empty() => None,
            Self::Latency(latency) => Some(match latency {
                Latency::Mean => tally.latency_us.mean(),
                Latency::Min => tally.latency_us.min() as f64,
                Latency::Max => tally.latency_us.max() as f64,
                Latency::Percentile(percentile) => percentile.of(&tally.latency_us) as f64,
            }),
            Self::Requests(which, unit) => {
                let count = match which {
                    Which::Errors => tally.failures(),
                    Which::Unsent => tally.unsent,
                    Which::Status(statuses) => tally.statuses.within(statuses),
                } as f64;
                match (unit, tally.requests()) {
                    (ExpectedUnit::Count, _) => Some(count),
                    (ExpectedUnit::Percent, 0) => None,
                    (ExpectedUnit::Percent, requests) => Some(count / requests as f64 * 100.0),
                }
            }
            Self::Rate => Some(results.replies_per_second()),
            Self::Transfer => Some(results.bytes_per_second()),
        }
    }

    fn show(&self, value: f64) -> String {
        match self {
            Self::Latency(_) => amounts::time_us(value),
            Self::Requests(_, ExpectedUnit::Count) => format!("{value}"),
            Self::Requests(_, ExpectedUnit::Percent) => format!("{value:.4}%"),
            Self::Rate => format!("{value:.2} requests/s"),
            Self::Transfer => format!("{}B/s", amounts::bytes(value)),
        }
    }
}

impl Relation {
    fn holds(self, measured: f64, bound: f64) -> bool {
        match self {
            Self::Less => measured < bound,
            Self::LessOrEqual => measured <= bound,
            Self::Greater => measured > bound,
            Self::GreaterOrEqual => measured >= bound,
            Self::Equal => measured == bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::results::testing::results;

    /// 1000 requests in ten seconds: 990 replies of 1 to 990 ms, 20 of which are errors.
    fn measured() -> Results {
        let mut results = results();
        results.elapsed = Duration::from_secs(10);
        let tally = &mut results.tally;
        (tally.replies, tally.bytes, tally.unsent) = (990, 10 << 20, 3);
        for (status, count) in [(200, 970), (404, 5), (429, 10), (503, 5)] {
            tally.statuses.add(status, count);
        }
        tally.errors.timeout = 10;
        (1..=990).for_each(|ms| tally.latency_us.record(ms * 1000).unwrap());
        results
    }

    fn judge(text: &str) -> (bool, String) {
        let judged = Expectation::parse(text).expect(text).judge(&measured());
        (judged.kept, judged.shown)
    }

    #[test]
    fn expectations_are_kept_or_broken() {
        for (kept, broken, shown) in [
            ("p50<500ms", "p50<0.4s", "495.10ms"),
            ("p99.9 >= 989ms", "p99.9 < 100us", "990.21ms"),
            ("mean<1s", "mean>1s", "495.50ms"),
            ("min<2ms", "min>1s", "1.00ms"),
            ("max<1m", "max<=1ms", "990.21ms"),
            ("errors<3.1%", "errors<3%", "3.0000%"),
            ("errors<=30", "errors<30", "30"),
            ("unsent<4", "unsent=0", "3"),
            ("status(404)==5", "status(404)=0", "5"),
            ("status(4xx)<2%", "status(4xx)<1.5%", "1.5000%"),
            ("status(5xx)<0.6%", "status(503)>0.6%", "0.5000%"),
            ("status(200)>90%", "status(2xx)>99%", "97.0000%"),
            ("rate>98/s", "rate>5k", "99.00 requests/s"),
            ("transfer<2MB/s", "transfer>1g", "1.00MB/s"),
        ] {
            assert_eq!(judge(kept), (true, shown.into()), "{kept}");
            assert_eq!(judge(broken), (false, shown.into()), "{broken}");
        }
    }

    /// A run without a reply has no latency that could be below a bound.
    #[test]
    fn an_unmeasured_value_breaks_an_expectation() {
        for text in ["p99<1h", "max>0s", "errors<1%", "status(5xx)<1%"] {
            let judged = Expectation::parse(text).unwrap().judge(&results());
            assert_eq!((judged.kept, judged.measured), (false, None), "{text}");
        }
    }

    #[test]
    fn invalid_expectations_are_refused() {
        for (text, expected) in [
            ("", "\"\" is not of the form p99<20ms, "),
            ("p99", "\"p99\" is not of the form p99<20ms, "),
            ("p99<20", "\"20\" needs a unit of time, such as 20ms"),
            ("p99<", "\"\" needs a unit of time"),
            ("p99<<20ms", "\"<20ms\" is not a time"),
            ("p99<-1ms", "\"-1ms\" is not a time"),
            ("p0<1ms", "\"0\" is not a percentile"),
            ("p101<1ms", "\"101\" is not a percentile"),
            ("pinf<1ms", "\"inf\" is not a percentile"),
            ("p+9<1ms", "\"+9\" is not a percentile"),
            ("p99!=1ms", "\"99!\" is not a percentile"),
            ("latency<1ms", "\"latency\" is not a quantity: pNN (p50, p99.9), "),
            ("<1ms", "\"\" is not a quantity"),
            ("errors<1.5", "\"1.5\" is neither a count, such as 10, nor a share, such as 1%"),
            ("errors<200%", "\"200%\" is not a share"),
            ("errors<few", "\"few\" is neither a count"),
            ("status()=0", "\"\" is not a status, such as 404 or 5xx"),
            ("status(0xx)=0", "\"0xx\" is not a status"),
            ("status(44)=0", "\"44\" is not a status"),
            ("status(4444)=0", "\"4444\" is not a status"),
            ("status(+44)=0", "\"+44\" is not a status"),
            ("status(404=0", "\"status(404\" is not a quantity"),
            ("rate>fast", "\"fast\" is not a number"),
            ("rate>5ms", "\"5ms\" is not a number"),
            ("transfer>1s", "\"1s\" is not a size"),
        ] {
            let error = Expectation::parse(text).expect_err(text);
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}

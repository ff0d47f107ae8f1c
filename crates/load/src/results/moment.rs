//! Summarises a second: a few numbers, and its packed latencies.
//!
//! The histogram of a second takes a hundred kilobytes, a packed one a few hundred or thousand
//! bytes, so that a run of hours stays small.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use super::{Moment, Second};

impl From<&Second> for Moment {
    fn from(second: &Second) -> Self {
        let latency = &second.tally.latency_us;
        Self {
            at: second.at,
            replies: second.tally.replies,
            errors: second.tally.failures(),
            mean_us: latency.mean(),
            p50_us: latency.value_at_quantile(0.5),
            p99_us: latency.value_at_quantile(0.99),
            max_us: latency.max(),
            packed: pack(latency),
        }
    }
}

impl Moment {
    pub(super) fn latencies(&self) -> Result<Histogram<u64>, String> {
        let read = Deserializer::new().deserialize(&mut &self.packed[..]);
        read.map_err(|error| error.to_string())
    }
}

/// Packs latencies. A count beyond 2⁶³, which exceeds the format, gives nothing.
fn pack(latencies: &Histogram<u64>) -> Vec<u8> {
    let mut packed = Vec::new();
    let written = V2Serializer::new().serialize(latencies, &mut packed);
    packed.truncate(written.unwrap_or(0));
    packed.shrink_to_fit();
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::second;

    #[test]
    fn latencies_are_unpacked_again() {
        for second in [second(1.0, 7, 5_000_000), second(2.0, 0, 0)] {
            let moment = Moment::from(&second);
            assert!(moment.packed.len() < 200, "{}", moment.packed.len());
            assert_eq!(moment.latencies().unwrap(), second.tally.latency_us);
        }
    }
}

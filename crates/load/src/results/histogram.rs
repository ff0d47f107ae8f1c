//! Histograms.

use hdrhistogram::Histogram;

/// Significant digits of histograms.
const DIGITS: u8 = 3;

/// A histogram that grows with its values, as used in tallies.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("a number of digits that it has")
}

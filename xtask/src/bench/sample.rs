//! The measurements of a server.

use super::answer::BenchAnswer;

/// One measurement of one server.
pub(super) struct Sample {
    /// Microseconds of CPU per request, or bytes per connection.
    pub(super) figure: f64,
    /// What went wrong without stopping the measurement.
    pub(super) complaint: Option<String>,
}

/// All measurements of one server for a row.
pub(super) struct ContenderSamples {
    pub(super) samples: Vec<Sample>,
    pub(super) answer: BenchAnswer,
}

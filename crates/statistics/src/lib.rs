//! Estimates from measurements, and their uncertainty.
//!
//! One module for all comparisons: `weir lab`, `weir load compare`, `weir load --against` and
//! `cargo xtask bench`. It knows nothing of servers. Deliberately absent: hypothesis tests with a
//! p-value; an [`Interval`] shows whether there is an effect, and how large it is.

mod bootstrap;
mod interval;
mod order;
mod random;
mod student;

pub use bootstrap::{interval_of_samples, median_interval, resampled};
pub use interval::Interval;
pub use order::{median, quantile};
pub use random::SplitMix;
pub use student::{geometric_mean, ratio_of_means, t_95};

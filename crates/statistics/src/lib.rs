//! What measurements say, and how sure that is.
//!
//! One module for everything that compares: `weir lab`, `weir load compare`, `weir load --against`
//! and `cargo xtask bench`. It knows nothing of servers. Deliberately absent: tests of hypotheses
//! with a p-value; an [`Interval`] says whether there is an effect, and how large it is.

mod bootstrap;
mod interval;
mod order;
mod random;
mod student;

pub use bootstrap::median_interval;
pub use interval::Interval;
pub use order::{median, quantile, quartiles};
pub use random::SplitMix;
pub use student::{geometric_mean, mean_ratio, ratio_of_means, t_95};

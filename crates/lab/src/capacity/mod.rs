//! How the rate grows with a number (workers, clients, backends): the rows that differ only in this
//! number are a series, to which the Universal Scalability Law is fitted. And the highest rate of
//! each row that keeps a bound on latency, if it was searched.

mod fit;
pub(crate) mod searched;
mod series;

pub(crate) use fit::{CapacityFit, SeriesFit};
pub(crate) use series::ScalingSeries;

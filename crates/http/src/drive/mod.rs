//! What every driver does with an exchange, whatever protocol its client speaks.

mod context;
pub(crate) mod limit_rate;
pub(crate) mod redirect;

pub(crate) use context::WorkerContext;

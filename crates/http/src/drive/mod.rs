//! What every driver does with an exchange, whatever protocol its client speaks.

pub(crate) mod limit_rate;
pub(crate) mod redirect;

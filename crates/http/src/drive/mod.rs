//! What every driver does with an exchange, whatever protocol its client speaks.

mod context;
pub(crate) mod limit_rate;
pub(crate) mod redirect;

pub(crate) use context::WorkerContext;

/// What a driver is given of a connection whose first bytes have been read.
#[derive(Default)]
pub(crate) struct Preread {
    /// Bytes that have arrived and are the protocol's.
    pub(crate) bytes: Vec<u8>,
    /// The rest of the time for the first head, where some of it is over.
    pub(crate) left_ms: Option<u64>,
}

//! What tests use instead of the network and the clock.

mod relay;
mod toy;

pub use relay::{Side, relay};
pub use toy::{Toy, ToyTransport};

//! Replacements for the network and the clock in tests.

mod full_listener;
mod relay;
mod time;
pub mod tls;
mod toy;

pub use crate::event_loop::longest_poll;
pub use full_listener::FullListener;
pub use relay::{RelaySide, pause_for_relays, relay};
pub use time::{advance, settle, simulate, start_clock, stop_clock};
pub use toy::{Toy, ToyTransport};

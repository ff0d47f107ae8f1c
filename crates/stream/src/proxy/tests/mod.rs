//! Relays between socket pairs with a stopped clock, and sessions with real backends.

mod intake;
mod relays;
mod sessions;
mod transfers;

//! Relays between socket pairs, by a clock that stands still, and sessions with real backends.

mod intake;
mod relays;
mod sessions;
mod transfers;

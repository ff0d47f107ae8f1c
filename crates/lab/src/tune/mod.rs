//! `weir lab tune`: finds the settings that a configuration gains from, under its own load.
//!
//! The [`candidates`] are edits of the configuration that are worth trying. Copies of it run beside
//! the real server, each in a sandbox (crate `sandbox`). [`halving`] finds the candidates that gain
//! something, [`confirmation`] those that still do beside the others, and [`patch`] prints them.
//! Only [`copies`] knows servers and load: a search uses a [`TuneBlocks`](gain::TuneBlocks).

mod arguments;
mod candidates;
mod confirmation;
mod copies;
mod disturbance;
mod edits;
mod gain;
mod goal;
mod halving;
mod patch;
mod placing;
mod run;
mod server;
mod settings;
#[cfg(test)]
mod simulation;
mod text_change;

pub use arguments::{TuneArguments, USAGE};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use candidates::candidates;
pub use run::run;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use server::TunedServer;

//! `weir lab tune`: which settings a configuration gains from, under its own load.
//!
//! A configuration is read into a [`tree`], which can be edited and written. The [`candidates`] are
//! edits worth trying. Copies of the configuration run in a [`sandbox`] beside the real server.
//! [`halving`] finds the candidates that gain something, [`confirmation`] those that still do
//! beside the others, and [`patch`] shows them. Only [`copies`] knows servers and load: a search
//! asks a [`TuneBlocks`].

mod address;
mod arguments;
mod candidates;
mod confirmation;
mod copies;
mod edits;
mod gain;
mod goal;
mod halving;
mod patch;
mod placing;
mod run;
mod sandbox;
mod server;
mod settings;
#[cfg(test)]
mod simulation;
mod tree;
mod writing;

pub use arguments::{TuneArguments, USAGE};
pub(crate) use candidates::candidates;
pub use run::run;
pub(crate) use server::TunedServer;
pub(crate) use tree::TuneTree;

//! HTTP: exchanges, virtual servers, locations, phases, features, and the drivers of HTTP/1 and
//! HTTP/2.
//!
//! Deliberately absent: the event loop (`net`), and access of a feature to another feature's
//! settings.

mod accept;
mod admit;
mod answer;
mod backend;
mod builtin;
mod compile;
mod control_pages;
mod credentials;
mod drive;
mod exchange;
mod features;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod gateway;
mod h1;
mod h2;
mod header_text;
mod health;
mod mime_types;
mod paths;
mod phases;
mod places;
mod random_ids;
mod regex;
mod site;
mod status_page;
mod subrequest;
#[cfg(test)]
mod testing;
mod variables;
mod worker;

pub use backend::cache::CachePurgeChange;
pub use compile::{BLOCKS, HttpPlan, read, variable_docs};
pub use control_pages::{ControlPage, control_page};
pub use features::aio::ThreadPools;
pub use features::otel::{TraceTotals, totals as trace_totals};
pub use features::{TABLES, control_jobs};
pub use files::{TempFolder, TempPaths};
pub use places::{FAMILIES, Places, family_temp};
pub use session::{Client, identity};
use session::{client, decimal, keyed, lru, rate, wildcards};
pub use site::{Generation, Listen, Site};
pub use worker::Worker;

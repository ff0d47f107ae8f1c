//! Measures servers: a load generator like wrk, and a backend for tests and measurements.
//!
//! ```text
//! command line -> settings -> run: threads -> a task for each connection -> a tally each
//!                                    `- schedule                 results: text, JSON, .hlog <-'
//! ```
//!
//! It sends exactly the requested load, and reports only measured values: nothing is corrected
//! afterwards. Deliberately absent: the server's configuration, and sockets (crate `net`).

pub mod backend;
mod background;
mod called_as;
mod choices;
mod command;
mod expect;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
pub mod options;
pub mod replies;
pub mod requests;
pub mod results;
pub mod run;
pub mod script;
mod search;
mod settings;
pub mod target;
mod tls;
pub mod units;

pub use called_as::CalledAs;
pub use command::{CommandError, command};

/// Prints to standard error. Unlike `eprintln!`, it does not panic if that is closed.
fn tell(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}

//! Measuring servers: a load generator of wrk's class, and a backend to measure with.
//!
//! ```text
//! command line -> settings -> run: threads -> a task for each connection -> a tally each
//!                                    `- schedule                 results: text, JSON, .hlog <-'
//! ```
//!
//! What it is told to send it sends, and what it reports it has seen: nothing is corrected
//! afterwards. Deliberately absent: the server's configuration, and sockets (crate `net`).

pub mod backend;
mod choices;
mod command;
mod expect;
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

pub use command::{CalledAs, CommandError, command};

/// Says something beside the results. Nobody need read it: unlike `eprintln!` it does not panic.
fn tell(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}

//! Requests for changes of a group's servers: which are allowed, and the answers.
//!
//! A pure machine: a roster and a request give an operation, or a refusal in the words of NGINX
//! Plus. Deliberately absent: connections, and making the change known to those who serve.

mod list;
mod patch;
mod read_json;
mod request;
mod rules;
#[cfg(test)]
mod tests;

pub use list::RosterDifference;
pub use patch::{SpecPatch, StatusPatch};
pub use request::{ServersAnswer, ServersPath, percent_decoded};
pub use rules::{GroupRules, SpecRefusal};

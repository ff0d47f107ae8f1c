//! A backend behind a server, both in this process: what either is told of the other.

mod cookies;
mod redirects;
mod requests;
mod variables;

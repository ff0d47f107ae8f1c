//! Passing requests on, end to end: a backend behind a server, both in this process.

mod bodies;
mod cache;
mod cache_lock;
mod cache_rules;
mod early_hints;
mod logs;
mod purge;
mod queue;
mod replies;
mod requests;
mod store;
mod streams;
mod turns;

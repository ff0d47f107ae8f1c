//! The engine, end to end: a backend behind a server, both in this process.

mod logs;
mod replies;
mod store;

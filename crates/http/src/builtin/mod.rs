//! The variables that every exchange has: of its client, its connection, its request and its reply.
//!
//! Variables of a feature stand in the feature's folder.

mod absent;
mod client;
mod connection;
pub(crate) mod fields;
mod files;
mod program;
mod proxy_protocol;
mod reply;
mod request;
mod time;

pub(crate) use client::port;
pub(crate) use fields::cookie_in;
pub(crate) use time::now;

use crate::variables::BuiltIn;

/// Their tables.
pub(crate) const VARIABLES: &[&[BuiltIn]] = &[
    absent::TABLE,
    client::TABLE,
    proxy_protocol::TABLE,
    connection::TABLE,
    request::TABLE,
    fields::TABLE,
    reply::TABLE,
    files::TABLE,
    time::TABLE,
    program::TABLE,
];

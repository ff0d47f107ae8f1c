//! The variables that every exchange has beside those of every session: of its client, its
//! connection, its request and its reply.
//!
//! Variables of a feature stand in the feature's folder.

mod absent;
mod client;
mod connection;
pub(crate) mod fields;
mod files;
mod reply;
mod request;

pub(crate) use fields::cookie_in;

use session::backend::BackendVariables;
use session::builtin::Common;

use crate::exchange::Exchange;
use crate::variables::BuiltIn;

/// Their tables.
pub(crate) const VARIABLES: &[&[BuiltIn]] = &[
    Common::<Exchange>::TABLE,
    BackendVariables::<Exchange>::TABLE,
    absent::TABLE,
    client::TABLE,
    connection::TABLE,
    request::TABLE,
    fields::TABLE,
    reply::TABLE,
    files::TABLE,
];

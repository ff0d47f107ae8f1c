//! The variables that every exchange has in addition to those of every session: of its client, its
//! connection, its request and its reply.
//!
//! Variables of a feature are in the feature's folder.

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
use crate::variables::VariableTable;

pub(crate) const VARIABLES: &[VariableTable] = &[
    VariableTable::new(CORE, Common::<Exchange>::TABLE),
    VariableTable::new(UPSTREAM, BackendVariables::<Exchange>::TABLE),
    VariableTable::new("ngx_http_v3_module", absent::HTTP3),
    VariableTable::new(CORE, client::TABLE),
    VariableTable::new(CORE, connection::TABLE),
    VariableTable::new(CORE, request::TABLE),
    VariableTable::new(CORE, fields::TABLE),
    VariableTable::new(CORE, reply::TABLE),
    VariableTable::new(CORE, files::TABLE),
];

const CORE: &str = "ngx_http_core_module";
const UPSTREAM: &str = "ngx_http_upstream_module";

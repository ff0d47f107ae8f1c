//! The variable of nginx's default for `TE`.

use super::request::accepts_trailers;
use crate::variables::{BuiltIn, VariableTable, some};

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_grpc_module",
    &[BuiltIn::fresh(
        "grpc_internal_trailers",
        "`trailers` if the client accepts trailers; for the program's own use.",
        |x, out| accepts_trailers(x) && some(out, b"trailers"),
    )],
);

//! The variables of sessions, in addition to those that sessions of any subsystem have.

use ::session::backend::{BackendVariables, write_times};
use ::session::builtin::Common;
use ::session::decimal;
use ::session::variables::{BuiltIn, VariableTable, number, some};

use crate::session::StreamSession;

pub(crate) const VARIABLES: &[VariableTable<StreamSession>] = &[
    VariableTable::new(CORE_MODULE, Common::<StreamSession>::TABLE),
    VariableTable::new(CORE_MODULE, SESSION),
    VariableTable::new(UPSTREAM_MODULE, BackendVariables::<StreamSession>::TABLE),
    VariableTable::new(UPSTREAM_MODULE, UPSTREAM),
];

const CORE_MODULE: &str = "ngx_stream_core_module";
const UPSTREAM_MODULE: &str = "ngx_stream_upstream_module";

const SESSION: &[BuiltIn<StreamSession>] = &[
    // As in nginx, the first value is kept.
    BuiltIn::cached("bytes_sent", "The number of bytes that were sent to the client.", |x, out| {
        number(out, x.bytes_sent)
    }),
    BuiltIn::cached("bytes_received", "The number of bytes that the client sent.", |x, out| {
        number(out, x.bytes_received)
    }),
    BuiltIn::fresh(
        "session_time",
        "The age of the session, in seconds with milliseconds.",
        |x, out| {
            decimal::write_seconds(x.age_ms(), out);
            true
        },
    ),
    BuiltIn::fresh(
        "status",
        "How the session ended: 200, 400 (bad PROXY protocol header), 403 (access denied), 500, \
         502 (no server) or 503 (`limit_conn`).",
        |x, out| {
            decimal::write_three(x.status.into(), out);
            true
        },
    ),
    BuiltIn::fresh("protocol", "`TCP` or `UDP`.", |x, out| {
        some(out, if x.client.is_udp { b"UDP" } else { b"TCP" })
    }),
    BuiltIn::fresh(
        "server_name",
        "The first name of the server block that serves the session.",
        |x, out| some(out, &x.server().name),
    ),
];

/// Variables of backends, in addition to those that `http` has as well.
const UPSTREAM: &[BuiltIn<StreamSession>] = &[
    BuiltIn::fresh(
        "upstream_first_byte_time",
        "The time until each server's first byte, in seconds with milliseconds.",
        |x, out| write_times(x, out, |tried| tried.header_ms.get()),
    ),
    BuiltIn::fresh(
        "upstream_session_time",
        "The time that each server's part of the session took, in seconds with milliseconds.",
        |x, out| write_times(x, out, |tried| tried.response_ms.get()),
    ),
];

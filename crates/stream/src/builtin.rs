//! The variables of sessions, beside those that every session of any subsystem has.

use ::session::backend::{BackendVariables, write_times};
use ::session::builtin::Common;
use ::session::decimal;
use ::session::variables::{BuiltIn, number, some};

use crate::session::TcpSession;

/// Their tables.
pub(crate) const VARIABLES: &[&[BuiltIn<TcpSession>]] =
    &[Common::<TcpSession>::TABLE, SESSION, BackendVariables::<TcpSession>::TABLE, UPSTREAM];

const SESSION: &[BuiltIn<TcpSession>] = &[
    // As in nginx, the first answer holds.
    BuiltIn::cached("bytes_sent", |x, out| number(out, x.bytes_sent)),
    BuiltIn::cached("bytes_received", |x, out| number(out, x.bytes_received)),
    BuiltIn::fresh("session_time", |x, out| {
        decimal::write_seconds(x.age_ms(), out);
        true
    }),
    BuiltIn::fresh("status", |x, out| {
        decimal::write_three(x.status.into(), out);
        true
    }),
    BuiltIn::fresh("protocol", |x, out| some(out, if x.client.is_udp { b"UDP" } else { b"TCP" })),
    BuiltIn::fresh("server_name", |x, out| some(out, &x.server().name)),
];

/// What came of servers, beside what `http` tells as well.
const UPSTREAM: &[BuiltIn<TcpSession>] = &[
    BuiltIn::fresh("upstream_first_byte_time", |x, out| {
        write_times(x, out, |tried| tried.header_ms.get())
    }),
    BuiltIn::fresh("upstream_session_time", |x, out| {
        write_times(x, out, |tried| tried.response_ms.get())
    }),
];

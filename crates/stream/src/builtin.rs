//! The variables of sessions, beside those that every session of any subsystem has.

use ::session::builtin::Common;
use ::session::decimal;
use ::session::variables::{BuiltIn, number, some};

use crate::session::TcpSession;

/// Their tables.
pub(crate) const VARIABLES: &[&[BuiltIn<TcpSession>]] =
    &[Common::<TcpSession>::TABLE, SESSION, ABSENT];

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
    BuiltIn::fresh("protocol", |_, out| some(out, b"TCP")),
    BuiltIn::fresh("server_name", |x, out| some(out, &x.server().name)),
];

/// What nginx makes of variables of backends for a session that has none.
const ABSENT: &[BuiltIn<TcpSession>] = &[
    absent("upstream_addr"),
    absent("upstream_bytes_received"),
    absent("upstream_bytes_sent"),
    absent("upstream_connect_time"),
    absent("upstream_first_byte_time"),
    absent("upstream_session_time"),
];

const fn absent(name: &'static str) -> BuiltIn<TcpSession> {
    BuiltIn::fresh(name, |_, _| false)
}

//! Now: `$time_local`, `$time_iso8601`, `$msec`.

use observe::Stamps;

use crate::decimal;
use crate::variables::{BuiltIn, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("msec", |_, out| {
        decimal::write_seconds(net::clock::unix_ms(), out);
        true
    }),
    BuiltIn::fresh("time_local", |_, out| some(out, &now().log)),
    BuiltIn::fresh("time_iso8601", |_, out| some(out, &now().iso8601)),
];

/// The second that the worker's clock shows.
pub(crate) fn now() -> Stamps {
    Stamps::of((net::clock::unix_ms() / 1000) as i64)
}

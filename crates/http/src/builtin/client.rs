//! Variables of the client: `$remote_user`. Those of every session are in `session::builtin`.

use crate::credentials;
use crate::variables::BuiltIn;

pub(super) const TABLE: &[BuiltIn] = &[BuiltIn::fresh(
    "remote_user",
    "The user name that the client sent with basic authentication.",
    |x, out| {
        let start = out.len();
        let user = credentials::append(x, out);
        out.truncate(start + user.unwrap_or(0));
        user.is_some()
    },
)];

//! Who answers: `$hostname`, `$pid`, `$nginx_version`.

use crate::variables::{BuiltIn, number, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("hostname", |_, out| some(out, observe::system().hostname.as_bytes())),
    BuiltIn::fresh("pid", |_, out| number(out, std::process::id().into())),
    BuiltIn::fresh("nginx_version", |_, out| {
        some(out, crate::identity::identity().version.as_bytes())
    }),
];

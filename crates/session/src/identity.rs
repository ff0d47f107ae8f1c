//! The program's name: `weir`, or `nginx` when it is run under that name.

use std::sync::OnceLock;

/// Names and tokens for replies.
pub struct ProgramIdentity {
    /// `weir` or `nginx`.
    pub name: &'static str,
    /// The version that goes with the name.
    pub version: &'static str,
    token: String,
}

static IDENTITY: OnceLock<ProgramIdentity> = OnceLock::new();

/// Sets the name; the first call counts.
pub fn settle(name: &'static str, version: &'static str) {
    let token = || format!("{name}/{version}");
    IDENTITY.get_or_init(|| ProgramIdentity { name, version, token: token() });
}

/// The name.
pub fn identity() -> &'static ProgramIdentity {
    settle("weir", env!("CARGO_PKG_VERSION"));
    IDENTITY.get().expect("settled above")
}

/// `nginx/1.31.3` or `weir/0.1.0`.
pub fn token() -> &'static str {
    &identity().token
}

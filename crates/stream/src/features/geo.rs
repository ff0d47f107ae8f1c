//! `geo`: a variable whose value is looked up by address (`session::geo`).

use std::sync::Arc;

use ::session::geo::{self, Forwarded};
use conf::{Directive, Load, Result};

use crate::session::StreamSession;
use crate::site::ServerBuilder;

conf::directives! {
    declare {
        /// Sets a variable by an address: the client's, or that of another variable. The most
        /// specific network wins. Inside: `default`, `include`, `ranges`, `delete`, `volatile`.
        ///
        /// Syntax: [$ADDRESS] $VARIABLE
        /// Differs: binary files (`FILE.bin`) are neither read nor written; the text beside them is
        /// read.
        ///
        /// ```nginx
        /// geo $internal {
        ///     default 0;
        ///     10.0.0.0/8 1;
        /// }
        /// ```
        geo(1..=2) {} in MAIN => declare;
    }

    in MAIN;
}

/// Installs nothing: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut ServerBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    geo::declare::<StreamSession>(Forwarded::Never, from, load)
}

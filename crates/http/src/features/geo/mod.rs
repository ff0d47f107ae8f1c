//! `geo`: a variable whose value is looked up by address (`session::geo`).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Directive, Load, Result};
use session::geo::{self, Forwarded};

use crate::exchange::Exchange;
use crate::site::LocationBuilder;

conf::directives! {
    declare {
        /// Sets a variable by an address: the client's, or that of another variable. The most
        /// specific network wins. Inside: `default`, `include`, `ranges`, `proxy`, `delete`,
        /// `volatile`.
        ///
        /// Syntax: [$ADDRESS] $VARIABLE
        /// Differs: binary files (`FILE.bin`) are neither read nor written; Weir reads the text
        /// file beside them.
        ///
        /// ```nginx
        /// geo $internal {
        ///     default 0;
        ///     10.0.0.0/8 1;
        ///     192.168.0.0/16 1;
        /// }
        /// ```
        geo(1..=2) {} in MAIN => declare;
    }

    in MAIN;
}

/// Installs nothing: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    geo::declare::<Exchange>(Forwarded::Believed, from, load)
}

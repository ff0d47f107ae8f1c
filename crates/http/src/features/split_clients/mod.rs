//! `split_clients`: a variable whose value depends on the hash of a text: each value has a
//! percentage, and the same text always has the same value.
//!
//! The hash is nginx's, so that clients keep their values after a migration.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use session::split_clients;

use crate::exchange::Exchange;
use crate::site::LocationBuilder;

conf::directives! {
    declare {
        /// Sets a variable to one of several values, by the hash of a text, for tests with a share
        /// of the clients. `*` matches the rest.
        ///
        /// Syntax: STRING $VARIABLE
        /// Differs: a line inside must have exactly two words; nginx ignores more.
        ///
        /// ```nginx
        /// split_clients $remote_addr $variant {
        ///     5% new;
        ///     * old;
        /// }
        /// ```
        split_clients(2..=2) {} in MAIN => split_clients::declare::<Exchange>;
    }

    in MAIN;
}

/// Installs nothing: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

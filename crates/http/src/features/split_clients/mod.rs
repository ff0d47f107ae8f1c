//! `split_clients`: a variable that shares out what it is asked for by hash: so many percent get
//! one value, so many another, and the same text always gets the same.
//!
//! The hash is nginx's, so that a client stays in its share when the server is exchanged.

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

/// Nothing hooks into a location: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

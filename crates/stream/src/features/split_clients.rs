//! `split_clients`: a variable with one of several values, by hash (`session::split_clients`).

use std::sync::Arc;

use ::session::split_clients;
use conf::Result;

use crate::session::StreamSession;
use crate::site::ServerBuilder;

conf::directives! {
    declare {
        /// Sets a variable to one of several values, by the hash of a text: for tests with a share
        /// of the clients. `*` takes the rest.
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
        split_clients(2..=2) {} in MAIN => split_clients::declare::<StreamSession>;
    }

    in MAIN;
}

/// Installs nothing: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut ServerBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

//! `map`: a variable whose value is looked up by another (`session::map`).

use std::sync::Arc;

use ::session::map;
use conf::{Number, Result};

use crate::session::StreamSession;
use crate::site::ServerBuilder;

conf::directives! {
    declare {
        /// Sets a variable by the value of a text: by exact strings, names with `*` (after
        /// `hostnames`), or regular expressions after `~` (`~*`: without regard to case). It is
        /// worked out when the variable is used. Inside: `default`, `hostnames`, `include`,
        /// `volatile`.
        ///
        /// Syntax: STRING $VARIABLE
        ///
        /// ```nginx
        /// map $server_port $greeting {
        ///     default hello;
        ///     9001 welcome;
        /// }
        /// ```
        map(2..=2) {} in MAIN => map::declare::<StreamSession>;
    }

    in MAIN;

    /// The largest size of nginx's tables of maps.
    ///
    /// Differs: no effect; the tables are sized by their contents.
    map_hash_max_size: Number = "2048",
    /// The size of a bucket in nginx's tables of maps.
    ///
    /// Differs: no effect; the tables are sized by their contents.
    map_hash_bucket_size: Number = "64",
}

/// Installs nothing: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut ServerBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

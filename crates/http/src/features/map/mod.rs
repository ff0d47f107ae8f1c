//! `map`: a variable whose value is looked up by another (`session::map`).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Number, Result};
use session::map;

use crate::exchange::Exchange;
use crate::site::LocationBuilder;

conf::directives! {
    declare {
        /// Sets a variable depending on a text: by exact strings, names with `*` (after
        /// `hostnames`), or regular expressions after `~` (`~*`: case-insensitive). It is evaluated
        /// when the variable is used. Inside: `default`, `hostnames`, `include`, `volatile`.
        ///
        /// Syntax: STRING $VARIABLE
        ///
        /// ```nginx
        /// map $http_upgrade $connection_upgrade {
        ///     default upgrade;
        ///     "" close;
        /// }
        /// ```
        map(2..=2) {} in MAIN => map::declare::<Exchange>;
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
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

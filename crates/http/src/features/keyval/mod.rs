//! `keyval`: a variable whose value is looked up in a table that changes while the server runs
//! (`session::keyval`).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use session::keyval;

use crate::exchange::Exchange;
use crate::site::LocationBuilder;

conf::directives! {
    declare {
        /// Defines a zone: a table of texts by key, which outlives reloads. `type` decides which
        /// key a text matches: the same text (`string`), the smallest network with the address
        /// (`ip`), or the longest key with which it begins (`prefix`). Entries are removed after
        /// `timeout`. The content is kept in the file of `state`, in the form that
        /// docs/keyval.md describes. With `sync=`, all machines that use the same store (Valkey or
        /// Redis) have the same table; docs/shared-limits.md describes the address. A full zone
        /// takes no further keys.
        ///
        /// Syntax: zone=NAME:SIZE [state=FILE] [sync=ADDRESS] [timeout=TIME] [type=TYPE]
        /// Differs: `sync` has the address of a store. The size counts the texts and 192 bytes for
        /// each key.
        ///
        /// ```nginx
        /// keyval_zone zone=blocked:1m type=ip timeout=1h state=/var/lib/weir/blocked.json;
        /// keyval $remote_addr $is_blocked zone=blocked;
        ///
        /// server {
        ///     if ($is_blocked) {
        ///         return 403;
        ///     }
        /// }
        /// ```
        keyval_zone(1..=5) in MAIN => keyval::declare_zone;
        /// Sets a variable to the value that the key matches in a zone; without a match, it has no
        /// value. It is looked up once per request, when the variable is used.
        ///
        /// Syntax: KEY $VARIABLE zone=NAME
        /// Differs: `set` gives the variable another value for this request and does not change the
        /// zone.
        ///
        /// ```nginx
        /// keyval_zone zone=canaries:64k type=prefix;
        /// keyval $uri $backend zone=canaries;
        /// ```
        keyval(3..=3) in MAIN => keyval::declare::<Exchange>;
    }

    in MAIN;
}

/// Installs nothing: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

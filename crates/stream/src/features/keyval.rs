//! `keyval`: a variable whose value is looked up in a table that changes while the server runs
//! (`session::keyval`).

use std::sync::Arc;

use ::session::keyval;
use conf::Result;

use crate::session::StreamSession;
use crate::site::ServerBuilder;

conf::directives! {
    declare {
        /// Defines a zone: a table of texts by key, which outlives reloads. `type` decides which
        /// key a text matches: the same text (`string`), the smallest network with the address
        /// (`ip`), or the longest key with which it begins (`prefix`). Entries are removed after
        /// `timeout`. The content is read from the file of `state` when the zone is new, in the
        /// form that docs/keyval.md describes. With `sync=`, all machines that use the same store
        /// (Valkey or Redis) have the same table; docs/shared-limits.md describes the address. A
        /// full zone takes no further keys.
        ///
        /// Syntax: zone=NAME:SIZE [state=FILE] [sync=ADDRESS] [timeout=TIME] [type=TYPE]
        /// Differs: `sync` has the address of a store. The size counts the texts and 192 bytes for
        /// each key.
        ///
        /// ```nginx
        /// keyval_zone zone=backends:64k;
        /// keyval $ssl_preread_server_name $backend zone=backends;
        /// ```
        keyval_zone(1..=5) in MAIN => keyval::declare_zone;
        /// Sets a variable to the value that the key matches in a zone; without a match, it has no
        /// value. It is looked up once per session, when the variable is used.
        ///
        /// Syntax: KEY $VARIABLE zone=NAME
        /// Differs: `set` gives the variable another value for this session and does not change the
        /// zone.
        ///
        /// ```nginx
        /// keyval_zone zone=backends:64k;
        /// keyval $ssl_preread_server_name $backend zone=backends;
        ///
        /// server {
        ///     listen 127.0.0.1:9443;
        ///     ssl_preread on;
        ///     proxy_pass $backend;
        /// }
        /// ```
        keyval(3..=3) in MAIN => keyval::declare::<StreamSession>;
    }

    in MAIN;
}

/// Installs nothing: the variable is the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut ServerBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

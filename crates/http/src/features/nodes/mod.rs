//! `nodes`: the number of nodes that share limits (`session::store::nodes`).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;
use session::store::nodes;

use crate::site::LocationBuilder;

conf::directives! {
    declare {
        /// Names the store, Valkey or Redis, that counts the nodes, for limits of `N/nodes`:
        /// `limit_conn` and `limit_upstream_conn`. Each node enforces its part, rounded down, at
        /// least one, and follows every change of the number at once. While the store is gone, the
        /// last known number holds. `nodes=` in the address is the number until the store has told
        /// it. See docs/shared-limits.md.
        ///
        /// Syntax: ADDRESS
        /// Differs: only Weir has this directive.
        ///
        /// ```nginx
        /// nodes valkey://127.0.0.1;
        /// limit_conn_zone $binary_remote_addr zone=clients:10m;
        /// limit_upstream_zone backends 1m;
        ///
        /// upstream app {
        ///     server 127.0.0.1:8001;
        ///     limit_upstream_conn zone=backends limit=200/nodes;
        /// }
        /// server {
        ///     limit_conn clients 20/nodes;
        /// }
        /// ```
        nodes(1..=1) in MAIN => nodes::declare;
    }

    in MAIN;
}

/// Installs nothing: the number reaches the limits by itself.
pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

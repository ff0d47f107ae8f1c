//! Sizes of nginx's hash tables. They are checked and have no effect, as their documentation says,
//! because tables are sized by their contents.

use std::sync::Arc;

use conf::{Number, Result};

use crate::site::LocationBuilder;

conf::directives! {
    in MAIN;
    /// The largest size of nginx's table of variables.
    ///
    /// Differs: no effect; the table is sized by its contents.
    variables_hash_max_size: Number = "1024",
    /// The size of a bucket in nginx's table of variables.
    ///
    /// Differs: no effect; the table is sized by its contents.
    variables_hash_bucket_size: Number = "64",
    /// The largest size of nginx's table of server names.
    ///
    /// Differs: no effect; the table is sized by its contents.
    server_names_hash_max_size: Number = "512",
    /// The size of a bucket in nginx's table of server names.
    ///
    /// Differs: no effect; the table is sized by its contents.
    server_names_hash_bucket_size: Number = "64",
}

pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

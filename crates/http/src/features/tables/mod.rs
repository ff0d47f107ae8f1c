//! Sizes of nginx's hash tables. Ours are sized by what they hold, so these are read, checked and
//! have no effect, which their documentation says.

use std::sync::Arc;

use conf::{Number, Result};

use crate::site::Place;

conf::directives! {
    in MAIN;
    /// Read and checked; has no effect: tables of variables are sized by what they hold.
    variables_hash_max_size: Number = "1024",
    /// Read and checked; has no effect: tables of variables are sized by what they hold.
    variables_hash_bucket_size: Number = "64",
    /// Read and checked; has no effect: tables of names are sized by what they hold.
    server_names_hash_max_size: Number = "512",
    /// Read and checked; has no effect: tables of names are sized by what they hold.
    server_names_hash_bucket_size: Number = "64",
}

/// Nothing to hook in.
pub fn install(_: &Arc<Conf>, _: &mut Place<'_, '_>) -> Result<()> {
    Ok(())
}

//! Sizes of nginx's memory pools. They are checked and have no effect, as their documentation
//! says, because exchanges keep the memory that their requests needed.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Size, Value};

use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER;
    /// The size of nginx's memory pool for a connection.
    ///
    /// Syntax: SIZE
    /// Differs: checked, but has no effect; memory is allocated as needed.
    connection_pool_size: PoolSize = "512",
    /// The size of nginx's memory pool for a request.
    ///
    /// Syntax: SIZE
    /// Differs: checked, but has no effect; memory is allocated as needed.
    request_pool_size: PoolSize = "4k",
    /// The size of nginx's memory pool for an HTTP/2 connection.
    ///
    /// Syntax: SIZE
    /// Differs: checked, but has no effect; memory is allocated as needed.
    http2_pool_size: PoolSize = "4k",
}

const POOL_SIZE_LEAST: u64 = 112;
const POOL_ALIGNMENT: u64 = 16;

#[derive(Clone)]
struct PoolSize;

impl Value for PoolSize {
    const ARGS: RangeInclusive<usize> = 1..=1;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let Size(size) = Size::parse(from, load)?;
        if size < POOL_SIZE_LEAST {
            let why = format!("the pool size must be no less than {POOL_SIZE_LEAST}");
            return Err(from.error(why));
        }
        if !size.is_multiple_of(POOL_ALIGNMENT) {
            let why = format!("the pool size must be a multiple of {POOL_ALIGNMENT}");
            return Err(from.error(why));
        }
        Ok(Self)
    }
}

pub fn install(_: &Arc<Conf>, _: &mut LocationBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

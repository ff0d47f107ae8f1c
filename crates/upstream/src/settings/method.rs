//! The balancing method: one slot that a directive of each balancer fills.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value};

use crate::balance::Balance;

/// A balancing method.
#[derive(Clone, Debug)]
pub struct Method(Arc<dyn Balance>);

impl Value for Method {
    const ARGS: RangeInclusive<usize> = 0..=2;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Err(from.error(format!("unknown balancing method \"{}\"", from.name)))
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        load.warn(from.error("load balancing method redefined"));
        *self = Self::parse(from, load)?;
        Ok(())
    }
}

impl Method {
    pub(super) fn balance(&self) -> Arc<dyn Balance> {
        self.0.clone()
    }
}

/// What the method of the block that is being read does without, for the `server` lines below it:
/// nginx looks at them in this order, too.
#[derive(Default)]
pub(super) struct Reading {
    /// `backup` is refused.
    pub no_backup: bool,
    /// `slow_start=` is refused.
    pub no_slow_start: bool,
}

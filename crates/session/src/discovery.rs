//! Name discovery as a job of the control thread.

use std::sync::Arc;

use ::upstream::Discovery;
use conf::Zones;

use crate::control_job::ControlJob;
use crate::generation::Configuration;

impl<C: Configuration> ControlJob<Arc<C>> for Discovery {
    fn adopt(&mut self, site: &Arc<C>, _: &Zones) {
        *self = Self::of(site.groups());
    }

    /// Sessions that go on may still choose servers.
    fn leave(&mut self) {}
}

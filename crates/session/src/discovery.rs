//! Name discovery as a job of the control thread.

use std::sync::Arc;

use ::upstream::{Discovery, Group};
use zones::Zones;

use crate::control_job::ControlJob;
use crate::generation::Configuration;

/// Looks up the names of the newest configuration.
#[derive(Default)]
pub struct NameDiscovery(Discovery);

impl<C: Configuration> ControlJob<Arc<C>> for NameDiscovery {
    fn adopt(&mut self, site: &Arc<C>, _: &Zones) {
        self.0 = Discovery::of(site.groups());
    }

    fn changed(&mut self, group: &Arc<Group>) {
        self.0.changed(group);
    }

    /// Remaining sessions may still choose servers.
    fn leave(&mut self) {}
}
